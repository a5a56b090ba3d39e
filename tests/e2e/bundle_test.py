"""The bundle in images of somebody else's: nothing is installed there, and what they say to loaders is not for us."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

import pod_rig
import rig
import stranger_rig
from launch_test import program_job
from s3_rig import Place

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces for tests here")

# Leaves its environment as the kernel gave it to it, and stays until it is told.
PROGRAM = "cat /proc/$$/environ > /out/environ.part; mv /out/environ.part /out/environ; until [ -e /out/go ]; do sleep 0.05; done"


@pytest.fixture(name="bundle", scope="module")
def installed_bundle(tmp_path_factory):
    return stranger_rig.install(tmp_path_factory.mktemp("bundle"))


@pytest.fixture(name="pods")
def pods_of_a_program(launch, tmp_path):
    """One worker's coordinator, of this machine's own programs; the job's command is a shell's script."""
    made = []

    def make(script):
        run = launch(program_job(tmp_path / "job", ["true"], workers=1))
        pid = run.read_until("started")["coordinatorPid"]
        words = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
        spec = json.loads(Path(words[words.index("--job") + 1]).read_text(encoding="utf-8"))
        assert run.wait() == 0, run.tail()
        spec["spec"]["launch"]["command"] = ["sh", "-c", script]
        made.append(pod_rig.Pods(tmp_path / "pods", json.dumps(spec)))
        made[0].coordinator()
        return made[0]

    yield make
    for group in made:
        group.clean_up()


def worker_in(pods, image):
    return pods.worker(0, key="/key", over=[(pods.key, "/key")], image=image)


def children(pid):
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def loaded(pid):
    """Files that this process has code of."""
    lines = [line.split(None, 5) for line in Path(f"/proc/{pid}/maps").read_text().splitlines()]
    return {line[5] for line in lines if len(line) == 6 and "x" in line[1] and line[5].startswith("/")}


def check_nothing_else_is_loaded(pid):
    files = loaded(pid)
    assert any("libexec/ringmaster-agent" in name for name in files)
    assert len(files) > 10 and not [name for name in files if f"{stranger_rig.BUNDLE}/" not in name], files


@pytest.mark.parametrize("user, read_only", [(0, False), (stranger_rig.NOBODY, True)], ids=["root", "nobody, read-only root"])
def test_a_worker_runs_its_program_which_finds_its_image_as_it_was_made(pods, bundle, tmp_path, user, read_only):
    if user and os.geteuid():
        pytest.skip("only root becomes somebody else")
    image = stranger_rig.Image(tmp_path / "image", bundle, user, read_only)
    group = pods(PROGRAM)
    worker = worker_in(group, image)
    rig.until(lambda: (image.out / "environ").exists() or worker.process.poll() is not None, "the program's start")
    assert worker.process.poll() is None, worker.text()
    seen = dict(entry.split("=", 1) for entry in (image.out / "environ").read_text().split("\0") if entry)
    package = stranger_rig.BUNDLE / "share/ringmaster/python"  # behind all that the image has
    expected = {**image.variables, "PYTHONPATH": f"{image.variables['PYTHONPATH']}:{package}"}
    assert {name: seen.get(name) for name in expected} == expected
    own = {name for name in seen if name.startswith("RINGMASTER_")}
    assert own == {"RINGMASTER_HOSTS", "RINGMASTER_GENERATION", "RINGMASTER_SOCKET"}
    if os.geteuid() == 0:  # ours tell nobody else what they are made of
        [launcher] = children(worker.pid)
        for pid in (worker.pid, launcher):
            check_nothing_else_is_loaded(pid)
        assert "evlib_uv" in str(loaded(worker.pid))
        folder = os.stat(f"/proc/{worker.pid}/root{Path(seen['TORCHELASTIC_ERROR_FILE']).parent}")
        assert (folder.st_mode & 0o777, folder.st_uid) == (0o700, user)
    (image.out / "go").touch()
    assert worker.wait() == 0, worker.text()


def test_an_image_of_musl_runs_its_own_program_with_its_own_preload(pods, bundle, tmp_path):
    image = stranger_rig.Image(tmp_path / "image", bundle).with_musl()
    group = pods("program > /out/said")
    worker = worker_in(group, image)
    assert worker.wait() == 0, worker.text()
    assert (image.out / "said").read_text() == "preloaded\n"


def run_in(image, program, *words, mounts=()):
    """A program that reads no key and no job, in the image's mounts and these."""
    script = " && ".join([*image.mounts([]), *mounts, 'exec "$@"'])
    return subprocess.run(["unshare", *pod_rig.namespace_flags(), "sh", "-c", script, "sh", *image.enter(program), *words],
                          capture_output=True, text=True, check=False)


def test_the_trainer_starts_beside_libraries_that_would_end_it(bundle, tmp_path):
    image = stranger_rig.Image(tmp_path / "image", bundle)
    image.variables = {}  # its agent, which starts it, has put them aside
    done = run_in(image, stranger_rig.BUNDLE / "libexec/ringmaster-trainer", "fingerprint")
    here = subprocess.run([rig.BIN / "ringmaster-trainer", "fingerprint"], capture_output=True, text=True, check=True)
    assert done.returncode == 0 and done.stdout == here.stdout, done.stderr


def trusting(bundle, authority, folder):
    """The bundle with this authority alone in its file of certificates."""
    shutil.copytree(bundle, folder, copy_function=os.link)
    (folder / "etc/ca-certificates.crt").unlink()
    shutil.copy(authority, folder / "etc/ca-certificates.crt")
    return folder


def test_the_built_in_trainer_reads_a_bucket_by_the_bundles_certificates_to_the_same_weights(launch, bundle, tmp_path, s3_tls_server):
    place = Place(s3_tls_server)
    place.put("data/a.txt", rig.make_text(30000).encode())
    job = rig.make_job(tmp_path / "alone", data=False, trainer__steps=30, trainer__data__uri=f"{place.uri}/data",
                       trainer__data__cache=str(tmp_path / "cache"), checkpoint__uri=f"{place.uri}/alone")
    text, sha256 = pod_rig.spec_of(launch, job, env=place.env)
    spec = json.loads(text)
    spec["spec"]["checkpoint"]["uri"] = f"{place.uri}/checkpoints"
    spec["spec"]["trainer"]["data"]["cache"] = "file:///tmp/cache"
    group = pod_rig.Pods(tmp_path / "pods", json.dumps(spec), env=place.env)
    image = stranger_rig.Image(tmp_path / "image", trusting(bundle, place.env["AWS_CA_BUNDLE"], tmp_path / "trusting"))
    image.variables["AWS_CA_BUNDLE"] = ""
    try:
        coordinator = group.coordinator()
        worker = worker_in(group, image)
        assert worker.wait() == 0 and coordinator.wait() == 0, group.tail()
        assert coordinator.last_word()["weightsSha256"] == sha256
    finally:
        group.clean_up()


INSTALL = stranger_rig.BUNDLE / "bin/ringmaster-agent", "install"


def files_of(folder):
    return {str(path.relative_to(folder)): path.is_file() and (path.read_bytes(), path.stat().st_mode & 0o777) for path in folder.rglob("*")}


def test_it_copies_itself_as_often_as_it_is_told_to(bundle, tmp_path):
    image = stranger_rig.Image(tmp_path / "image", bundle, stranger_rig.NOBODY if os.geteuid() == 0 else 0, read_only=True)
    copy = image.out / "copy"
    copy.mkdir()
    copy.chmod(0o777)
    for left in (None, b"half of it"):
        if left:
            (copy / "libexec/ringmaster-agent").unlink()
            (copy / "libexec/ringmaster-agent").write_bytes(left)
            (copy / "libexec").chmod(0o777)  # as a kubelet may find it after a power cut: nobody's folder, somebody's file
        done = run_in(image, *INSTALL, "/out/copy")
        assert (done.returncode, done.stderr) == (0, "")
        assert files_of(copy) == files_of(bundle)


def test_where_there_is_no_room_for_it_that_is_said_and_the_machine_is_blamed(bundle, tmp_path):
    image = stranger_rig.Image(tmp_path / "image", bundle)
    (image.root / "room").mkdir()
    done = run_in(image, *INSTALL, "/room", "--termination-log", "/out/word", mounts=[f"mount -t tmpfs -o size=2m tmpfs {image.root}/room"])
    assert done.returncode == 4 and "no room for the bundle, which takes " in done.stderr, done.stderr
    word = json.loads((image.out / "word").read_text())
    assert word["elsewhere"] is True and word["exitCode"] == 4
    assert done.stderr == f"ringmaster-agent: {word['reason']}\n" and word["reason"].endswith("No space left on device")


def test_a_program_that_is_of_no_bundle_has_nothing_to_copy(tmp_path):
    done = subprocess.run([rig.BIN / "ringmaster-agent", "install", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and done.stderr == "ringmaster-agent: this one is of no bundle; start bin/ringmaster-agent of one\n"
    assert not list(tmp_path.iterdir())


def test_a_bundle_of_another_build_is_refused(pods, bundle, tmp_path):
    other = tmp_path / "other"
    shutil.copytree(bundle, other, copy_function=os.link)
    (other / "libexec/ringmaster-agent").unlink()
    (other / "libexec/ringmaster-agent").write_bytes((bundle / "libexec/ringmaster-agent").read_bytes() + b"0")
    (other / "libexec/ringmaster-agent").chmod(0o755)
    image, strange = stranger_rig.Image(tmp_path / "image", bundle), stranger_rig.Image(tmp_path / "strange", other)
    group = pods(PROGRAM)
    worker = worker_in(group, image)
    rig.until(lambda: (image.out / "environ").exists() or worker.process.poll() is not None, "the program's start")
    stranger = group.worker(1, key="/key", over=[(group.key, "/key")], image=strange)
    assert stranger.wait() == 3, stranger.text()
    word = stranger.last_word()
    assert word["elsewhere"] and "worker 1 runs other software than the job: it is 'launch, bundle " in word["reason"], word
    (image.out / "go").touch()
    assert worker.wait() == 0, worker.text()


def test_each_file_of_the_bundle_needs_the_bundle_alone(bundle):
    assert not stranger_rig.elf_violations(bundle)
    libraries = {path.name for path in (bundle / "lib").iterdir()}
    assert {"libwebsockets-evlib_uv.so", "libgcc_s.so.1", "libc.so.6"} <= libraries
    assert (bundle / "etc/ca-certificates.crt").read_text().count("BEGIN CERTIFICATE") > 50


def test_a_program_that_was_not_made_for_the_bundle_is_seen(bundle, tmp_path):
    other = tmp_path / "bundle"
    (other / "libexec").mkdir(parents=True)
    shutil.copy(rig.BIN / "ringmaster-agent", other / "libexec")
    (other / "lib").mkdir()
    shutil.copy(bundle / "lib/libc.so.6", other / "lib")
    wrong = stranger_rig.elf_violations(other)
    assert {"ringmaster-agent: no RPATH", "ringmaster-agent: another loader", "ringmaster-agent: needs libcurl.so.4"} <= set(wrong)
    assert "ringmaster-agent: needs libc.so.6" not in wrong


def test_a_bundle_at_another_place_says_where_it_has_to_lie(bundle, tmp_path):
    image = stranger_rig.Image(tmp_path / "image", bundle)
    shutil.copy(bundle / "bin/ringmaster-agent", image.root / "bin/agent")
    image.bundle = tmp_path / "nothing"
    image.bundle.mkdir()
    done = run_in(image, "/bin/agent", "work")
    assert done.returncode == 4
    assert done.stderr == ("ringmaster-agent: /opt/ringmaster/libexec/ringmaster-agent can't be run: the bundle must lie at "
                           "/opt/ringmaster, whole, and be made for this processor\n")
