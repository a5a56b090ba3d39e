"""Images of somebody else's, as root folders: a shell and hardly more, nothing of ours but the bundle, and everything in
them that could lead a program of ours astray."""

import os
import subprocess
from pathlib import Path

import rig

SHELL = Path("/bin/busybox")  # Debian's busybox-static
MUSL = Path("/lib/ld-musl-x86_64.so.1")
BUNDLE = Path("/opt/ringmaster")  # RINGMASTER_BUNDLE_PREFIX of the builds that are tested
NOBODY = 65534

# Loaded beside glibc, which only our own programs have in these images, it ends the process at once.
TRAP = """
extern const char *gnu_get_libc_version(void) __attribute__((weak));
int preloaded = 1;
__attribute__((constructor)) static void start(void)
{
    if (gnu_get_libc_version)
        __builtin_trap();
}
"""

# The user's own program in an image of musl: what its own loader took from LD_PRELOAD stays its affair.
MUSL_PROGRAM = """
#include <stdio.h>
extern int preloaded __attribute__((weak));
int main(void) { return puts(&preloaded ? "preloaded" : "alone") < 0; }
"""


def install(folder):
    """The bundle of the build that is tested."""
    done = subprocess.run(["cmake", "--install", str(rig.BIN.parent), "--component", "bundle", "--prefix", str(folder)],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "lib").exists(), f"{rig.BIN.parent} makes no bundle: it is built with sanitizers, or before there was one"
    folder.chmod(0o755)
    return folder


def compiled(compiler, text, to, *how):
    source = to.with_suffix(".c")
    source.write_text(text, encoding="ascii")
    subprocess.run([compiler, "-O1", "-fPIC", *how, "-o", str(to), str(source)], check=True)
    source.unlink()
    return to


class Image:
    """`variables` are the image's own, as its Dockerfile would set them."""

    def __init__(self, folder, bundle, user=0, read_only=False):
        self.root, self.bundle, self.user, self.read_only = folder / "root", bundle, user, read_only
        self.out = folder / "out"  # /out in there
        self.out.mkdir(parents=True)
        self.out.chmod(0o777)
        for name in ("bin", "dev", "proc", "tmp", "out", "etc", "astray", "lib64", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu",
                     str(BUNDLE).lstrip("/")):
            (self.root / name).mkdir(parents=True)
        for name in ("etc/hosts", "key"):
            (self.root / name).touch()
        (self.root / "bin/busybox").write_bytes(SHELL.read_bytes())
        (self.root / "bin/busybox").chmod(0o755)
        for name in ("sh", "cat", "mv", "sleep"):
            (self.root / "bin" / name).symlink_to("busybox")
        self._lead_astray()
        self.variables = {"LD_PRELOAD": "/astray/trap.so", "LD_LIBRARY_PATH": "/astray:", "LD_BIND_NOW": "", "PYTHONPATH": "/a:/b",
                          "PYTHONHOME": "/no/such", "GLIBC_TUNABLES": "glibc.rtld.nns=nonsense", "MALLOC_ARENA_MAX": "1",
                          "OPENSSL_CONF": "/astray/openssl.cnf", "GCONV_PATH": "/astray", "PATH": "/bin"}

    def _lead_astray(self):
        """Traps and garbage where loaders look: by variable, by /etc/ld.so.preload, in the folders of an older distribution."""
        trap = compiled("gcc", TRAP, self.root / "astray/trap.so", "-shared", "-nostdlib")
        for library in (self.bundle / "lib").iterdir():
            for folder in ("astray", "lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"):
                os.link(trap, self.root / folder / library.name)
        os.link(trap, self.root / "libwebsockets-evlib_uv.so")  # in the working directory
        (self.root / "lib64/ld-linux-x86-64.so.2").write_text("an older one")
        (self.root / "etc/ld.so.preload").write_text("/astray/trap.so\n")
        (self.root / "etc/ld.so.cache").write_text("garbage")
        (self.root / "etc/nsswitch.conf").write_text("hosts: trap files\n")
        os.link(trap, self.root / "lib/x86_64-linux-gnu/libnss_trap.so.2")

    def with_musl(self):
        (self.root / "lib" / MUSL.name).write_bytes(MUSL.read_bytes())
        (self.root / "lib" / MUSL.name).chmod(0o755)
        compiled("musl-gcc", MUSL_PROGRAM, self.root / "bin/program")
        return self

    def mounts(self, binds):
        """Commands for a mount namespace of its own; binds are (what, where in the image), the key is (its path, "/key")."""
        root = self.root
        commands = [f"mount --bind {root} {root}", f"mount --rbind /proc {root}/proc", f"mount --rbind /dev {root}/dev",
                    f"mount -t tmpfs -o mode=1777 tmpfs {root}/tmp", f"mount --bind {self.out} {root}/out",
                    f"mount --bind {self.bundle} {root}{BUNDLE}"]
        commands += [f"mount --bind {what} {root}{where}" for what, where in binds]
        return commands + ([f"mount -o remount,bind,ro {root}"] if self.read_only else [])

    def enter(self, program=BUNDLE / "bin/ringmaster-agent"):
        """In front of the arguments: the image's variables are set in there, by a program that is static."""
        user = [f"--userspec={self.user}:{self.user}"] if self.user else []
        return ["chroot", *user, str(self.root), "/bin/busybox", "env", *(f"{k}={v}" for k, v in self.variables.items()), str(program)]


def elf_violations(folder):
    """What in a bundle's programs and libraries would have the loader look elsewhere, as sentences."""
    wrong = []
    there = {path.name for path in (folder / "lib").iterdir()}
    for path in sorted([*(folder / "lib").iterdir(), *(folder / "libexec").iterdir()]):
        said = subprocess.run(["readelf", "-dlW", str(path)], capture_output=True, text=True, check=True).stdout
        dynamic = [line.split(")", 1) for line in said.splitlines() if line.lstrip().startswith("0x") and ")" in line]
        tags = [(tag.rsplit("(", 1)[1], value.strip()) for tag, value in dynamic]
        paths = [value for tag, value in tags if tag in ("RPATH", "RUNPATH")]
        program = path.parent.name == "libexec"
        wrong += [f"{path.name}: RUNPATH" for tag, _ in tags if tag == "RUNPATH"]
        wrong += [f"{path.name}: {value}" for value in paths if value != f"Library rpath: [{BUNDLE}/lib]"]
        wrong += [f"{path.name}: no RPATH" for _ in [0] if program and not paths]
        wrong += [f"{path.name}: another loader" for _ in [0] if program and f"interpreter: {BUNDLE}/lib/ld-linux" not in said]
        needed = [value.split("[")[1].rstrip("]") for tag, value in tags if tag == "NEEDED"]
        wrong += [f"{path.name}: needs {name}" for name in needed if name not in there]
    return wrong
