"""The numerics id: what changes it and what does not, and that no file of the model is forgotten in its list."""

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LIST = ROOT / "trainer/backend/cpu/model/numerics_cpu.cmake"
FOLDERS = ("trainer/backend/cpu", "trainer/exact", "trainer/state")

SOURCE = """#include "a.h"

/* Adds. */
float add(float a, float b)
{
    return a + b; // in this order
}
"""


def names_in(variable):
    text = LIST.read_text(encoding="utf-8")
    found = re.search(rf"set\({variable}\s([^)]*)\)", text)
    return found.group(1).split()


def id_of(folder, name, text):
    """numerics_sources_id of one file with that text."""
    (folder / name).write_text(text, encoding="utf-8")
    out = folder / "id.c"
    subprocess.run(["cmake", f"-DROOT={folder}", f"-DOUT={out}", f"-DSOURCES={name}", "-DCOMPILER=cc", "-P",
                    str(ROOT / "trainer/backend/cpu/model/numerics_id.cmake")], check=True, capture_output=True)
    return re.search(r'numerics_sources_id\[\] = "([0-9a-f]{16})"', out.read_text(encoding="utf-8")).group(1)


@pytest.mark.parametrize("what, name, text", [
    ("a comment", "a.c", SOURCE.replace("/* Adds. */", "/* Adds two numbers, as ** they * are. */ // and more")),
    ("white space", "a.c", SOURCE.replace("{\n", "\n{\n\n").replace("    ", "\t")),
    ("a file that moved", "b.c", SOURCE.replace("a.h", "there/a.h")),
    ("an assertion", "a.c", SOURCE.replace("{\n", "{\n    assert(a > (b - 1) && b);\n    RM_ASSERT(a,\n        \"no\");\n")),
    ("a static assertion", "a.c", SOURCE + "_Static_assert(sizeof(int) == 4, \"so it is\");\n"),
])
def test_the_id_stays_with(tmp_path, what, name, text):
    assert id_of(tmp_path, name, text) == id_of(tmp_path, "a.c", SOURCE), what


@pytest.mark.parametrize("text", [
    SOURCE.replace("a + b", "b + a"),
    SOURCE.replace("a + b", "a + b + 1e-9f"),
    SOURCE.replace("float add", "static float add"),
    SOURCE + "#define WIDE 1\n",
    SOURCE.replace("return a + b", "my_assert(b); return a + b"),
])
def test_the_id_changes_with_what_may_change_a_bit(tmp_path, text):
    assert id_of(tmp_path, "a.c", text) != id_of(tmp_path, "a.c", SOURCE)


def test_each_file_of_the_model_and_the_sums_is_in_the_id_or_said_not_to_be():
    in_id, not_in_id = names_in("numerics_cpu"), names_in("numerics_cpu_not") + names_in("numerics_cpu_portable")
    assert len(set(in_id + not_in_id)) == len(in_id + not_in_id)
    there = {str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.[ch]")}
    named = {name for name in in_id + not_in_id if name.startswith(FOLDERS)}
    assert there == named, sorted(there ^ named)
    assert all((ROOT / name).exists() for name in in_id)


def test_what_is_written_for_one_processor_is_there_for_others_too():
    """The build takes NAME_x86.c or NAME_portable.c; the id has the same of the two."""
    there = {str(path.relative_to(ROOT)) for top in ("common", "coordinator", "agent", "trainer", "cli", "operator") for path in (ROOT / top).rglob("*.c")}
    of_x86 = {name for name in there if name.endswith("_x86.c")}
    portable = {name for name in there if name.endswith("_portable.c")}
    assert of_x86 and {name.replace("_x86.c", "_portable.c") for name in of_x86} == portable
    assert {name.replace("_x86.c", "_portable.c") for name in names_in("numerics_cpu") if name in of_x86} == set(names_in("numerics_cpu_portable"))
