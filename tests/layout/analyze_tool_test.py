"""What tools/analyze knows to be clean it knows in every clone: a check begins in a new one, and would look at everything again."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '#include "common/base/assert.h"\nint half(int n);\nint half(int n)\n{\n    RM_ASSERT(n % 2 == 0, "%d is odd", n);\n    return n / 2;\n}\n'


def clone(folder):
    (folder / "tools").mkdir(parents=True)
    shutil.copy(ROOT / "tools/analyze", folder / "tools")
    shutil.copytree(ROOT / "tools/analyze_headers", folder / "tools/analyze_headers")
    shutil.copytree(ROOT / "common/base", folder / "common/base", ignore=shutil.ignore_patterns("*.c"))
    source = folder / "common/base/half.c"
    source.write_text(SOURCE)
    commands = [{"file": str(source), "directory": str(folder), "command": f"cc -I{folder} -std=gnu11 -c {source}"}]
    (folder / "compile_commands.json").write_text(json.dumps(commands))
    return folder


def analyze(folder, cache):
    done = subprocess.run([sys.executable, folder / "tools/analyze", "--build-dir", folder], capture_output=True, text=True, check=False,
                          env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "analyze: 1 files, 0 with findings\n"
    return {mark.name for mark in (cache / "ringmaster/analyze").iterdir()}


def test_what_is_clean_in_one_clone_is_not_looked_at_again_in_another(tmp_path):
    known = analyze(clone(tmp_path / "one"), tmp_path / "cache")
    assert len(known) == 1
    assert analyze(clone(tmp_path / "another"), tmp_path / "cache") == known
    changed = tmp_path / "another/common/base/half.c"
    changed.write_text(SOURCE.replace("is odd", "is not even"))
    assert len(analyze(tmp_path / "another", tmp_path / "cache")) == 2, "what has changed is looked at"
