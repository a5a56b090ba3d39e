"""libringmaster.so is loaded into processes that are not ours: what it needs and what it shows is held here."""

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin")).parent
GLIBC = (2, 17)
EXPORTS_MAX = 12


def told(*command):
    return subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout


def too_young(symbols):
    """Names of nm -D whose version is above that of the oldest C library that is promised."""
    found = re.findall(r"(\w+)@+GLIBC_(\d+)\.(\d+)", symbols)
    return sorted(name for name, major, minor in found if (int(major), int(minor)) > GLIBC)


@pytest.fixture(name="library")
def built_library():
    path = BUILD / "lib/libringmaster.so.1"
    assert path.exists(), f"there is no {path}: build first"
    return path


def test_the_library_needs_libc_alone_and_goes_by_its_name(library):
    dynamic = told("readelf", "-d", library)
    assert re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic) == ["libc.so.6"]
    assert re.findall(r"\(SONAME\).*\[(.*)\]", dynamic) == ["libringmaster.so.1"]
    assert "RPATH" not in dynamic and "RUNPATH" not in dynamic


def test_the_library_runs_with_a_c_library_of_2012(library):
    symbols = told("nm", "-D", "--undefined-only", library)
    assert "GLIBC_" in symbols and too_young(symbols) == []


def test_a_younger_symbol_would_be_seen():
    assert too_young(" U fstat@GLIBC_2.33\n U send@GLIBC_2.2.5\n U dlsym@GLIBC_2.34\n U getauxval@GLIBC_2.16\n") == ["dlsym", "fstat"]


def test_the_library_shows_what_its_header_has_and_nothing_else(library):
    shown = {line.split()[-1].split("@")[0] for line in told("nm", "-D", "--defined-only", library).splitlines()}
    header = (ROOT / "trainer/library/ringmaster.h").read_text()
    assert shown == set(re.findall(r"^RM_API[^;]*?\b(rm_\w+)\(", header, re.MULTILINE))
    assert 0 < len(shown) <= EXPORTS_MAX


def test_the_headers_program_compiles_as_it_stands(tmp_path, library):
    """The example in the header's first comment, within a function; as C11 and as C++, of the header alone."""
    text = (ROOT / "trainer/library/ringmaster.h").read_text()
    lines = re.search(r"( \*     struct rm_options.*?rm_close\(job\);\n)", text, re.DOTALL).group(1).splitlines()
    code = "\n".join(line[3:] for line in lines)
    (tmp_path / "example.c").write_text(
        '#include "ringmaster.h"\n#include <string.h>\nenum { N = 4 };\nint complain(const char *why);\n'
        "double backward(const float *w, const int64_t *samples, int64_t count, float *gradient);\n"
        "void apply(float *w, const float *gradient);\nint example(float *w);\nint example(float *w)\n{\n" + code + "\n    return 0;\n}\n")
    (tmp_path / "other.cc").write_text('#include "ringmaster.h"\nint (*one)(rm_job *, double) = rm_add;\n')
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-I", ROOT / "trainer/library", "-c", "-o", tmp_path / "out.o"]
    subprocess.run(["gcc", "-std=c11", *flags, tmp_path / "example.c"], check=True)
    if subprocess.run(["gcc", "-x", "c++", "-fsyntax-only", "/dev/null"], capture_output=True, check=False).returncode == 0:
        subprocess.run(["gcc", "-std=c++11", *flags, tmp_path / "other.cc"], check=True)
