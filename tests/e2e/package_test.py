"""What people install: `cmake --install`, and a package of Debian's."""

import os
import re
import subprocess
import sys

import pytest

import rig
import shell_rig

BUILD = rig.BIN.parent
HAS = ["bin/ringmaster", "bin/ringmaster-agent", "bin/ringmaster-operator", "bin/ringmaster-trainer",
       "share/bash-completion/completions/ringmaster", "share/fish/vendor_completions.d/ringmaster.fish", "share/man/man1/ringmaster.1",
       "share/zsh/vendor-completions/_ringmaster"]
LIBRARY = ["include/ringmaster.h", "lib/libringmaster.so", "lib/libringmaster.so.1"]
PYTHON = [f"share/ringmaster/python/ringmaster/{path.name}" for path in (rig.ROOT / "python/ringmaster").glob("*.py")]
# What a program of one's own does first: the library is found, and it is the installed one.
LOADS = """
import ringmaster
from ringmaster import library
loaded = library.load()
print(ringmaster.__file__, [line.split()[-1] for line in open("/proc/self/maps") if "libringmaster" in line][0])
"""

pytestmark = pytest.mark.skipif(rig.SANITIZED, reason="nobody installs instrumented programs")


def done(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=rig.DEADLINE_S, **more).stdout


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check_library(prefix, tmp_path):
    """In Python, from its package, and in C, by its header and the name that compilers look for."""
    python = prefix / "share/ringmaster/python"
    told = done(sys.executable, "-B", "-c", LOADS, env={**os.environ, "PYTHONPATH": str(python)}).split()
    assert told == [str(python / "ringmaster/__init__.py"), str(prefix / "lib/libringmaster.so.1")]
    done("gcc", "-std=c11", f"-I{prefix}/include", rig.ROOT / "tests/programs/elastic.c", "-o", tmp_path / "elastic", f"-L{prefix}/lib", "-lringmaster")
    assert "libringmaster.so.1" in done("ldd", tmp_path / "elastic")


def check_completions(prefix, tmp_path):
    """Each shell finds its own where it looks; zsh takes another way the first time, so that line comes again."""
    (tmp_path / "home").mkdir()
    lines = ["comp", "run --outp", "checkpoint li", "comp"]
    wanted = [["completion"], ["run", "--output"], ["checkpoint", "list"], ["completion"]]
    zsh = [f"fpath=('{prefix}/share/zsh/vendor-completions' $fpath)", *shell_rig.ZSH]
    bash = [f"source '{prefix}/share/bash-completion/completions/ringmaster'"]
    for shell, setup in (("zsh", zsh), ("bash", bash)):
        assert shell_rig.on_terminal(shell, tmp_path / "home", tmp_path / "home", setup, lines) == wanted, shell
    assert shell_rig.in_fish(tmp_path / "home", tmp_path / "home", [], lines, prefix) == wanted


def check_installed(prefix, finish, tmp_path):
    """Its words are those of the program itself, and it trains."""
    assert files(prefix) == sorted(HAS + LIBRARY + PYTHON)
    program = prefix / "bin/ringmaster"
    assert (prefix / "share/man/man1/ringmaster.1").read_text(encoding="utf-8") == done(program, "manual")
    for shell, place in (("bash", HAS[4]), ("fish", HAS[5]), ("zsh", HAS[7])):
        assert (prefix / place).read_text(encoding="utf-8") == done(program, "completion", shell)
    check_completions(prefix, tmp_path)
    check_library(prefix, tmp_path)
    rig.check_complete(finish(rig.make_job(tmp_path, trainer__steps=4)), last=4)


def test_an_installed_one_is_whole_and_trains(tmp_path, finish, monkeypatch):
    done("cmake", "--install", BUILD, "--prefix", tmp_path / "usr")
    monkeypatch.setattr(rig, "BIN", tmp_path / "usr/bin")
    check_installed(tmp_path / "usr", finish, tmp_path)


def test_a_package_is_built_installed_and_leaves_nothing_when_it_is_removed(tmp_path, finish, monkeypatch):
    root = tmp_path / "root"
    for folder in ("updates", "info", "triggers"):
        (root / "var/lib/dpkg" / folder).mkdir(parents=True)
    (root / "var/lib/dpkg/status").touch()
    done("cpack", "--config", BUILD / "CPackConfig.cmake", "-G", "DEB", "-B", tmp_path / "made", cwd=tmp_path)
    (package,) = (tmp_path / "made").glob("*.deb")
    about = done("dpkg-deb", "--field", package)
    assert done("dpkg-deb", "--info", package, "triggers") == "activate-noawait ldconfig\n"
    needs = re.search("^Depends: (.*)$", about, re.MULTILINE).group(1)
    assert "Package: ringmaster\n" in about and all(name in needs for name in ("libuv1", "libjansson4", "libwebsockets", "libcurl", "libyaml-0-2")), about
    dpkg = ["dpkg", f"--root={root}", "--force-not-root", "--force-depends", f"--log={tmp_path}/log"]
    done(*dpkg, "--install", package, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    monkeypatch.setattr(rig, "BIN", root / "usr/bin")
    check_installed(root / "usr", finish, tmp_path)
    done(*dpkg, "--purge", "ringmaster", env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    assert not (root / "usr").exists() or not files(root / "usr")
