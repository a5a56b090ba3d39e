"""The images of the node tier, without a registry: built by buildah from deploy/, unpacked once for all nodes.

Each image is an OCI archive in the cache, named by a hash of what it is made of, and made again only when that
changes. A store is containerd's root folder with a set of archives unpacked; nodes start from hard links to it.
"""

import contextlib
import fcntl
import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import processes
from cluster import BIN, CACHE, ROOT, missing

BASE = "docker.io/library/debian:trixie-slim"
WORKER = "localhost/ringmaster/worker:test"
OPERATOR = "localhost/ringmaster/operator:test"
SNAPSHOTS = "localhost/ringmaster/snapshots:test"  # the worker's with CRIU: made for those stories alone that need it
STORE = "localhost/ringmaster/versitygw:test"  # an object store, for jobs' checkpoints
PAUSE = "localhost/ringmaster/pause:test"
# What a chart may be upgraded to: the same operator under another tag, and a worker whose trainer says that it computes other bits.
OPERATOR_NEXT = "localhost/ringmaster/operator:next"
WORKER_NEXT = "localhost/ringmaster/worker:next"
# Images of somebody else's, with a program and nothing of ours.
STRANGER = "localhost/stranger/python:test"
STRANGER_MUSL = "localhost/stranger/musl:test"
STRANGER_TORCH = "localhost/stranger/torch:test"  # too large for every check: on no node until somebody loads torch_archive()

SOURCES = ("CMakeLists.txt", "CMakePresets.json", "cmake", "agent", "cli", "common", "coordinator", "operator", "python", "trainer",
           "deploy/Dockerfile", ".dockerignore", "deploy/examples/text")
KEPT = 4  # archives and stores of a kind that stay in the cache

ARCHIVES = CACHE / "images"
BUILDAH = CACHE / "buildah"

PAUSE_DOCKERFILE = 'FROM scratch\nCOPY pause /pause\nUSER 65535:65535\nENTRYPOINT ["/pause"]\n'
STORE_DOCKERFILE = 'FROM scratch\nCOPY versitygw /versitygw\nUSER 65532:65532\nENTRYPOINT ["/versitygw"]\n'
NEXT_DOCKERFILE = r"""ARG BASE
FROM $BASE
USER 0
RUN id=$(ringmaster-trainer fingerprint | sed -n 's/^numerics \([0-9a-f]\{16\}\),.*/\1/p') && test -n "$id" \
    && sed -i "s/$id/0123456789abcdef/" /usr/bin/ringmaster-trainer && ringmaster-trainer fingerprint | grep '^numerics 0123456789abcdef,'
USER 65532:65532
"""

# Debian's Python with a package of its, as root, without certificates, and what leads loaders astray: a library that ends our own programs, and files that are none under the names
# of those that they need.
STRANGER_DOCKERFILE = r"""FROM debian:trixie-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3 {package} \
    && rm -rf /var/lib/apt/lists/* /etc/ssl /etc/ca-certificates* /usr/share/ca-certificates
COPY trap.so /astray/trap.so
RUN for name in {astray}; do echo none >/astray/$name; done
COPY {programs} /program/
ENV LD_PRELOAD=/astray/trap.so LD_LIBRARY_PATH=/astray
"""
ASTRAY = ["libuv.so.1", "libjansson.so.4", "libwebsockets.so.19", "libcurl.so.4", "libyaml-0.so.2", "libwebsockets-evlib_uv.so"]
MUSL_PROGRAMS = ("lines", "counter")
MUSL_DOCKERFILE = f"FROM scratch\nCOPY ld-musl-x86_64.so.1 /lib/\nCOPY {' '.join(MUSL_PROGRAMS)} /bin/\n"
TRAP = """#include <string.h>
#include <unistd.h>
__attribute__((constructor)) static void start(void)
{
    char own[256] = "";
    if (readlink("/proc/self/exe", own, sizeof own - 1) > 0 && !strncmp(own, "/opt/ringmaster", 15))
        __builtin_trap();
}
"""
PROGRAMS = ROOT / "tests/programs"
MUSL = Path("/lib/ld-musl-x86_64.so.1")  # Debian's musl, and musl-tools to compile for it

CONTAINERD = """version = 3
root = "{root}"
state = "{state}"
disabled_plugins = ["io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.grpc.v1.cri",
 "io.containerd.internal.v1.opt", "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile",
 "io.containerd.snapshotter.v1.erofs", "io.containerd.differ.v1.erofs"]
[grpc]
  address = "{state}/socket"
"""


@contextlib.contextmanager
def only_one():
    """Builds wait for each other: clusters that start side by side make each image once."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with open(CACHE / "images.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def digest(*parts):
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


def tree_digest(root=ROOT):
    """Of all files of the tree that go into the images, as they lie there."""
    names = subprocess.run(["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *SOURCES],
                           check=True, capture_output=True, text=True).stdout.split("\0")
    total = hashlib.sha256()
    for name in sorted(filter(None, names)):
        path = root / name
        if path.is_file():
            total.update(f"{name}\0{path.stat().st_mode & 0o111:o}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()[:16]


def logged(step, command):
    """A step with its output in a log, its time on the standard error."""
    log = CACHE / "logs" / f"{step}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    (CACHE / "tmp").mkdir(exist_ok=True)
    started = time.monotonic()
    with open(log, "wb") as output:
        code = subprocess.call(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                               env={**os.environ, "TMPDIR": str(CACHE / "tmp")})
    if code:
        tail = "\n".join(log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])
        raise missing(f"{tail}\n{step}: failed; see {log}")
    print(f"tests/cluster: {step}: {time.monotonic() - started:.0f} s", file=sys.stderr, flush=True)


@functools.lru_cache
def driver():
    """overlay where the kernel takes it here; vfs copies every layer whole, which works anywhere."""
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        for part in ("lower", "upper", "work", "all"):
            os.mkdir(f"{folder}/{part}")
        layers = f"lowerdir={folder}/lower,upperdir={folder}/upper,workdir={folder}/work"
        mount = 'mount -t overlay -o "$1" overlay "$2" && umount "$2"'
        works = subprocess.run(["unshare", "--mount", "sh", "-c", mount, "sh", layers, f"{folder}/all"], capture_output=True, check=False)
        return "vfs" if works.returncode else "overlay"


def buildah(*arguments):
    return ["buildah", "--root", str(BUILDAH / driver()), "--runroot", str(BUILDAH / "run"), "--storage-driver", driver(), *arguments]


def buildah_says(*arguments):
    return subprocess.run(buildah(*arguments), check=True, capture_output=True, text=True).stdout.strip()


def has_image(name):
    return subprocess.run(buildah("inspect", "--type", "image", name), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          check=False).returncode == 0


def make_base():
    """What `FROM debian:trixie-slim` is here: Debian's own minimal system, from its packages."""
    if has_image(BASE):
        return
    tar = CACHE / "base.tar"
    logged("base", ["mmdebstrap", "--variant=minbase", "--include=ca-certificates",
                    "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/locale/*",
                    "--dpkgopt=path-exclude=/usr/share/man/*", "trixie", str(tar)])
    script = 'set -e; made=$("$@" from scratch); "$@" add "$made" "$tar" /; "$@" commit --rm "$made" "$base"'
    logged("base-image", ["env", f"tar={tar}", f"base={BASE}", "sh", "-c", script, "sh", *buildah()])
    tar.unlink()


def forget_old(folder, pattern, kept=KEPT):
    """Keeps the newest few."""
    for old in sorted(folder.glob(pattern), key=lambda p: p.stat().st_mtime, reverse=True)[kept:]:
        shutil.rmtree(old) if old.is_dir() else old.unlink()


def archive(kind, key, name, arguments, kept=KEPT):
    """The path of an archive; `arguments` are those of `buildah bud` where it isn't there yet. kept: how many of that kind stay."""
    ARCHIVES.mkdir(parents=True, exist_ok=True)
    path = ARCHIVES / f"{kind}-{key}.tar"
    if path.exists():
        path.touch()
        return path
    logged(f"image-{kind}", buildah("bud", "--isolation", "chroot", "--pull-never", "--layers", "-t", name, *arguments))
    new = path.with_suffix(".new")
    new.unlink(missing_ok=True)
    logged(f"archive-{kind}", buildah("push", "--disable-compression", name, f"oci-archive:{new}:{name}"))
    new.rename(path)
    forget_old(ARCHIVES, f"{kind}-*.tar", kept)
    return path


def single_file_archive(kind, name, program, dockerfile):
    key = digest(hashlib.sha256(program.read_bytes()).hexdigest(), dockerfile)
    with tempfile.TemporaryDirectory() as context:
        shutil.copy(program, context)
        (Path(context) / "Dockerfile").write_text(dockerfile, encoding="ascii")
        return archive(kind, key, name, [context])


def next_archive(worker):
    """Made of the worker's archive and not of its name, which may be another tree's by now."""
    with tempfile.TemporaryDirectory() as context:
        (Path(context) / "Dockerfile").write_text(NEXT_DOCKERFILE, encoding="ascii")
        return archive("next", digest(worker.name, NEXT_DOCKERFILE), WORKER_NEXT, ["--build-arg", f"BASE=oci-archive:{worker}", context])


def compiled(compiler, source, to, *how):
    subprocess.run([compiler, "-O1", *how, "-o", str(to), str(source)], check=True)


def python_archive(kind, name, package, programs, needs=(), kept=KEPT):
    """An image of Debian's Python with that package and those programs. needs: which of the libraries that lead us astray are those of the package, too."""
    astray = " ".join(library for library in ASTRAY if library not in needs)
    dockerfile = STRANGER_DOCKERFILE.format(package=package, astray=astray, programs=" ".join(programs))
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        (context / "trap.c").write_text(TRAP, encoding="ascii")
        compiled("gcc", context / "trap.c", context / "trap.so", "-shared", "-fPIC")
        for program in programs:
            shutil.copy(PROGRAMS / program, context)
        (context / "Dockerfile").write_text(dockerfile, encoding="ascii")
        key = digest(dockerfile, TRAP, *[(PROGRAMS / program).read_text(encoding="utf-8") for program in programs])
        return archive(kind, key, name, [folder], kept)


def torch_archive():
    """That of torch."""
    with only_one():
        make_base()
        return python_archive("torch", STRANGER_TORCH, "python3-torch", ["ddp.py", "elastic_odd.py"], needs=["libuv.so.1"], kept=1)


def make_snapshots():
    """That which has CRIU, under its name."""
    with only_one():
        make_base()
        logged("image-snapshots", buildah("bud", "--isolation", "chroot", "--pull-never", "--layers", "-t", SNAPSHOTS, "--target", "snapshots",
                                          "-f", str(ROOT / "deploy/Dockerfile"), str(ROOT)))


def snapshots_archive():
    """That of the same."""
    with only_one():
        make_base()
        return archive("snapshots", tree_digest(), SNAPSHOTS, ["--target", "snapshots", "-f", str(ROOT / "deploy/Dockerfile"), str(ROOT)], kept=1)


def stranger_archives():
    """Those of programs of somebody else's."""
    made = [python_archive("stranger", STRANGER, "python3-numpy", ["lines.py", "elastic_numpy.py"])]
    sources = [PROGRAMS / f"{name}.c" for name in MUSL_PROGRAMS]
    with tempfile.TemporaryDirectory() as folder:
        context = Path(folder)
        for source in sources:
            compiled("musl-gcc", source, context / source.stem)
        shutil.copy(MUSL, context)
        (context / "Dockerfile").write_text(MUSL_DOCKERFILE, encoding="ascii")
        made.append(archive("musl", digest(MUSL_DOCKERFILE, *(source.read_text(encoding="utf-8") for source in sources)), STRANGER_MUSL, [folder]))
    return made


def archives():
    """All that the nodes have, in a list; made where sources are newer."""
    made = [single_file_archive("pause", PAUSE, BIN / "pause", PAUSE_DOCKERFILE),
            single_file_archive("versitygw", STORE, BIN / "versitygw", STORE_DOCKERFILE)]
    make_base()
    made += stranger_archives()
    key = tree_digest()
    for target, name in (("worker", WORKER), ("operator", OPERATOR)):
        if target == "worker" or (ROOT / "operator/main.c").exists():
            made.append(archive(target, key, name, ["--target", target, "-f", str(ROOT / "deploy/Dockerfile"), str(ROOT)]))
            if target == "worker":
                made.append(next_archive(made[-1]))
    return made


def archive_of(kind):
    """The archive of this tree's "worker" or "operator", which the nodes have."""
    with only_one():
        key = tree_digest()
        found, = (path for path in archives() if path.name == f"{kind}-{key}.tar")
        return found


def store():
    """The folder with all images unpacked for containerd."""
    with only_one():
        made = archives()
        folder = CACHE / f"store-{digest(*[path.name for path in made])}"
        if not folder.exists():
            unpack(made, folder)
        folder.touch()
        forget_old(CACHE, "store-*")
        return folder


def unpack(made, folder):
    """A containerd of its own imports the archives; its folder is the store."""
    new = folder.with_suffix(".new")
    shutil.rmtree(new, ignore_errors=True)
    with tempfile.TemporaryDirectory() as state:
        config = Path(state) / "config.toml"
        config.write_text(CONTAINERD.format(root=new, state=state), encoding="ascii")
        daemon = processes.spawn([str(BIN / "containerd"), "-c", str(config)], CACHE / "logs/store.log", tied=True)
        try:
            load_all(made, f"{state}/socket")
        finally:
            daemon.terminate()
            daemon.wait()
    new.rename(folder)


def load_all(made, socket):
    ctr = [str(BIN / "ctr"), "-a", socket]
    processes.until(lambda: subprocess.run([*ctr, "version"], capture_output=True, check=False).returncode == 0, "containerd")
    for path in made:
        logged(f"unpack-{path.stem.split('-')[0]}", import_command(ctr, path))
    logged("tag", [*ctr, "-n", "k8s.io", "images", "tag", OPERATOR, OPERATOR_NEXT])


def import_command(ctr, path):
    return [*ctr, "-n", "k8s.io", "images", "import", "--local", "--label", "io.cri-containerd.image=managed", str(path)]


def link_store(source, disk):
    """A node's images: hard links to files that nobody writes, true copies of the databases."""
    if disk.exists():
        return
    subprocess.run(["cp", "-alT", f"{source.resolve()}", str(disk)], check=True)
    for database in disk.rglob("*.db"):
        original = source / database.relative_to(disk)
        database.unlink()
        shutil.copy2(original, database)
