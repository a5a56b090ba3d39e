"""What people install: `cmake --install`, and a package of Debian's."""

import os
import re
import subprocess

import pytest

import rig

BUILD = rig.BIN.parent
HAS = ["bin/ringmaster", "bin/ringmaster-agent", "bin/ringmaster-operator", "bin/ringmaster-trainer",
       "share/bash-completion/completions/ringmaster", "share/fish/vendor_completions.d/ringmaster.fish", "share/man/man1/ringmaster.1",
       "share/zsh/vendor-completions/_ringmaster"]

pytestmark = pytest.mark.skipif(rig.SANITIZED, reason="nobody installs instrumented programs")


def done(*command, **more):
    return subprocess.run([str(word) for word in command], check=True, capture_output=True, text=True, timeout=rig.DEADLINE_S, **more).stdout


def files(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def check_installed(prefix, finish, tmp_path):
    """Its words are those of the program itself, and it trains."""
    assert files(prefix) == HAS
    program = prefix / "bin/ringmaster"
    assert (prefix / "share/man/man1/ringmaster.1").read_text(encoding="utf-8") == done(program, "manual")
    for shell, place in (("bash", HAS[4]), ("fish", HAS[5]), ("zsh", HAS[7])):
        assert (prefix / place).read_text(encoding="utf-8") == done(program, "completion", shell)
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
    needs = re.search("^Depends: (.*)$", about, re.MULTILINE).group(1)
    assert "Package: ringmaster\n" in about and all(name in needs for name in ("libuv1", "libjansson4", "libwebsockets", "libcurl", "libyaml-0-2")), about
    dpkg = ["dpkg", f"--root={root}", "--force-not-root", "--force-depends", f"--log={tmp_path}/log"]
    done(*dpkg, "--install", package, env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    monkeypatch.setattr(rig, "BIN", root / "usr/bin")
    check_installed(root / "usr", finish, tmp_path)
    done(*dpkg, "--purge", "ringmaster", env={**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"})
    assert not (root / "usr").exists() or not files(root / "usr")
