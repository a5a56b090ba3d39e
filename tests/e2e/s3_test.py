"""Checkpoints in a bucket of a real server: other machines go on, harm is found, trouble is told in a sentence."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import rig
from s3_rig import Place, faults, servers

FIELDS = {"trainer__steps": 60, "checkpoint__everySteps": 10, "checkpoint__keep": 2}
PROGRAM = str(rig.BIN / "ringmaster")


def make_job(folder, uri, **fields):
    return rig.make_job(folder, checkpoint__uri=uri, **{**FIELDS, **fields})


def sentence(run):
    """The last line of standard error, which is all that a person has to read."""
    lines = run.stderr.strip().splitlines()
    assert lines and lines[-1].startswith("ringmaster: "), run.stderr
    return lines[-1]


def saved_and_killed(launch, folder, s3, env=None, **fields):
    """A run that has saved at least two checkpoints and lost all its processes at once."""
    run = launch(make_job(folder, s3.uri, **fields), env=env or s3.env)
    run.read_until("checkpointSaved", step=lambda step: step >= 20)
    run.process.send_signal(signal.SIGKILL)
    run.clean_up()
    return run


def weights_of(s3, name):
    """The hash of a checkpoint's weights from its bytes in the bucket, worked out without the code under test."""
    raw = s3.get(f"{name}/model.safetensors")
    length = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8:8 + length])
    header.pop("__metadata__", None)
    body = raw[8 + length:]
    return hashlib.sha256(b"".join(body[slice(*header[key]["data_offsets"])] for key in sorted(header))).hexdigest()


@pytest.mark.sanitized
def test_killed_on_one_machine_it_goes_on_on_another_with_other_workers(tmp_path, launch, finish, s3, reference):
    saved_and_killed(launch, tmp_path / "one", s3, workers__target=2)
    shutil.rmtree(tmp_path / "one")
    run = finish(make_job(tmp_path / "two", s3.uri, workers__target=3), env=s3.env)
    resumed = run.the("resumed")
    assert resumed["step"] >= 20, run.tail()
    complete = rig.check_complete(run, last=60, first=resumed["step"] + 1)
    assert complete["weightsSha256"] == reference(trainer__steps=60)[0] == weights_of(s3, "final")
    assert complete["uri"] == f"{s3.uri}/final"
    assert s3.checkpoints()[0] == "final" and len(s3.checkpoints()) == 3
    assert s3.uploads() == []


def test_a_finished_run_leaves_nothing_but_what_is_told(tmp_path, finish, s3):
    s3.begin_upload("step-00000007/model.safetensors")  # of a step of which there is nothing else
    assert len(s3.uploads()) == 1
    run = finish(make_job(tmp_path, s3.uri, workers__target=2), env=s3.env)
    rig.check_complete(run, last=60)
    for name in s3.names():
        folder, _, rest = name.partition("/")
        assert not rest or folder == "final" or re.fullmatch(r"step-\d{8}", folder), name
    assert s3.uploads() == []
    for folder in s3.checkpoints():
        files = {name.split("/", 1)[1] for name in s3.names(f"{folder}/")}
        named = {file["name"] for file in json.loads(s3.get(f"{folder}/manifest.json"))["files"]}
        assert named | {"manifest.json"} | ({"README.md"} if folder == "final" else set()) == files, folder


POINTS = ["slice-written", "sums-written", "upload-begun", "config-written", "model-whole", "piece-settled", "before-manifest",
          "after-manifest", "before-delete"]


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("point", POINTS)
def test_an_agent_that_dies_while_it_saves_leaves_a_checkpoint_to_go_on_from(tmp_path, finish, s3, reference, point, workers):
    fields = {"workers__target": workers, "checkpoint__keep": 1 if point == "before-delete" else 3}
    run = finish(make_job(tmp_path / "one", s3.uri, **fields), env={**s3.env, "RINGMASTER_FAULT": f"{point}:2"})
    assert f"fault point {point}\n" in run.stderr and (run.of("workerLost") or run.code), f"nobody died at {point}: {run.tail()}"
    assert not run.left_over()
    again = finish(make_job(tmp_path / "two", s3.uri, **fields), env=s3.env)
    assert again.code == 0, again.tail()
    assert again.the("complete")["weightsSha256"] == reference(trainer__steps=60)[0]


def test_two_runs_on_one_prefix_are_told_apart(tmp_path, launch, finish, s3):
    first = launch(make_job(tmp_path / "one", s3.uri, trainer__steps=400), env=s3.env)
    first.read_until("step", step=5)
    second = finish(make_job(tmp_path / "two", s3.uri, trainer__steps=400), env=s3.env)
    assert second.code == 4, second.tail()
    assert s3.uri in sentence(second), second.stderr
    assert not second.of("step")
    first.interrupt()
    assert first.wait() == 130, first.tail()


def flip(s3, name, at=0.6):
    raw = bytearray(s3.get(name))
    raw[int(len(raw) * at)] ^= 0x04
    s3.put(name, bytes(raw))


@pytest.fixture(name="interrupted")
def interrupted_run(tmp_path, launch, s3):
    """A run interrupted after step 20, with two checkpoints, or one more that would go next; returns the names, newest last."""
    run = launch(make_job(tmp_path / "one", s3.uri, workers__target=2), env=s3.env)
    run.read_until("checkpointSaved", step=lambda step: step >= 20)
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert len(s3.checkpoints()) in (2, 3)
    return s3.checkpoints()


def test_bytes_flipped_in_any_object_are_found_before_use(tmp_path, finish, s3, interrupted, reference):
    """Each object of the newest checkpoint in turn, which is put right again; then one is left as it is."""
    *_, old, newest = interrupted
    victims = s3.names(f"{newest}/")
    assert len(victims) >= 4, victims
    for name in victims:
        right = s3.get(name)
        flip(s3, name)
        done = subprocess.run([PROGRAM, "checkpoint", "verify", s3.uri], env={**os.environ, **s3.env}, capture_output=True,
                              text=True, timeout=rig.DEADLINE_S, check=False)
        assert done.returncode == 3, f"{name}: {done.stdout} {done.stderr}"
        assert newest in done.stderr and old not in done.stderr, f"{name}: {done.stderr}"
        s3.put(name, right)
    flip(s3, f"{newest}/model.safetensors")
    run = finish(make_job(tmp_path / "two", s3.uri), env=s3.env)
    assert run.the("resumed")["step"] == int(old.removeprefix("step-")), run.tail()
    assert rig.check_complete(run, last=60, first=run.the("resumed")["step"] + 1)["weightsSha256"] == reference(trainer__steps=60)[0]


def of_version_99(text):
    """A manifest as a later program would write it."""
    return rig.sealed_anew(text, rb'("version"\s*:\s*)\d+\b', rb"\g<1>99")


def test_a_manifest_of_a_newer_version_is_left_alone(tmp_path, finish, s3, interrupted):
    newest = interrupted[-1]
    s3.put(f"{newest}/manifest.json", of_version_99(s3.get(f"{newest}/manifest.json")))
    run = finish(make_job(tmp_path / "two", s3.uri), env=s3.env)
    assert run.code == 3, run.tail()
    assert "newer" in sentence(run), run.stderr
    assert s3.checkpoints() == interrupted, "nothing is renamed and nothing deleted"


def without(env, *names):
    return {**{k: v for k, v in env.items() if k not in names}}


# what is wrong: (change of the environment, exit code, words of the sentence)
WRONG = {
    "no credentials": (lambda env: without(env, "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"), 2, ["credentials"]),
    "wrong secret": (lambda env: {**env, "AWS_SECRET_ACCESS_KEY": "wrong-but-secret-all-the-same"}, 2,
                     ["credentials from the environment", "SignatureDoesNotMatch"]),
    "unknown key": (lambda env: {**env, "AWS_ACCESS_KEY_ID": "AKNOBODYKNOWSTHIS"}, 2,
                    ["credentials from the environment", "InvalidAccessKeyId"]),
    "wrong region": (lambda env: {**env, "AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-west-2"}, 2,
                     ["us-west-2", servers.REGION]),
    "nobody answers": (lambda env: {**env, "AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{servers.free_port()}"}, 4, ["127.0.0.1"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_a_person_has_to_set_right_is_said_in_one_sentence(tmp_path, finish, s3, interrupted, name):
    change, code, words = WRONG[name]
    env = change(dict(s3.env))
    run = finish(make_job(tmp_path / "two", s3.uri), env=env)
    assert run.code == code, run.tail()
    for word in words:
        assert word.lower() in sentence(run).lower(), run.stderr
    assert not run.of("step")
    assert s3.checkpoints() == interrupted
    for secret in (s3.env["AWS_SECRET_ACCESS_KEY"], "wrong-but-secret-all-the-same"):
        assert secret not in run.stderr + json.dumps(run.events)


def test_over_tls_the_server_has_to_be_known(tmp_path, finish, s3_tls_server, reference):
    place = Place(s3_tls_server)
    stranger = finish(make_job(tmp_path / "one", place.uri), env={**place.env, "AWS_CA_BUNDLE": "/etc/ssl/certs/ca-certificates.crt"})
    assert stranger.code == 2, stranger.tail()
    assert "certificate" in sentence(stranger).lower(), stranger.stderr
    assert place.names() == []
    run = finish(make_job(tmp_path / "one", place.uri, workers__target=2), env=place.env)
    assert rig.check_complete(run, last=60)["weightsSha256"] == reference(trainer__steps=60)[0]


def test_a_bucket_that_is_not_there_is_named(tmp_path, finish, s3):
    run = finish(make_job(tmp_path, "s3://no-such-bucket/x"), env=s3.env)
    assert run.code == 2, run.tail()
    assert "no-such-bucket" in sentence(run)


# what the server says: (status, code, headers, words of the sentence)
SAYS = {
    "access denied": (403, "AccessDenied", {}, ["denied"]),
    "expired token": (400, "ExpiredToken", {}, ["expired"]),
    "another region": (301, "PermanentRedirect", {"x-amz-bucket-region": "ap-south-1"}, ["ap-south-1"]),
}


@pytest.mark.parametrize("name", SAYS)
def test_what_the_server_refuses_is_said_in_one_sentence(tmp_path, finish, s3, s3_proxy, name):
    status, code, headers, words = SAYS[name]
    s3_proxy.script = faults.Says(status, code, headers)
    run = finish(make_job(tmp_path, s3.uri), env=s3_proxy.environment)
    assert run.code == 2, run.tail()
    for word in words:
        assert word in sentence(run).lower(), run.stderr
    assert not run.of("step")
    assert len(s3_proxy.seen) < 20, "what can't succeed is not tried again and again"


@pytest.fixture(name="small_server")
def server_on_a_small_disk(tmp_path):
    """A server whose objects lie on a file system of 4 MiB; skipped where mounting is not allowed."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], capture_output=True, text=True,
                          check=False)
    if done.returncode:
        pytest.skip(f"cannot mount a small file system here: {done.stderr.strip()}")
    server = servers.start("versitygw", folder)
    yield server
    server.stop()
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    """Writes a file until nothing more fits; returns it."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file:
        for size in (1 << 16, 1 << 12):
            try:
                while True:
                    file.write(bytes(size))
            except OSError:
                continue
    return ballast


def test_a_full_bucket_ends_the_run_and_loses_nothing(tmp_path, launch, finish, small_server, reference):
    place = Place(small_server)
    run = launch(make_job(tmp_path / "one", place.uri, checkpoint__keep=3, checkpoint__endTimeout="3s"), env=place.env)
    run.read_until("checkpointSaved")
    ballast = fill(small_server.folder)
    run.wait()
    assert run.code == 4, run.tail()
    assert "full" in sentence(run), run.stderr
    assert not run.left_over()
    saved = [event["step"] for event in run.of("checkpointSaved")]
    ballast.unlink()
    again = finish(make_job(tmp_path / "two", place.uri, checkpoint__keep=3), env=place.env)
    assert again.the("resumed")["step"] >= saved[-1], again.tail()
    complete = rig.check_complete(again, last=60, first=again.the("resumed")["step"] + 1)
    assert complete["weightsSha256"] == reference(trainer__steps=60)[0]


def test_the_secret_key_is_in_no_event_log_command_line_or_file(tmp_path, launch, s3):
    run = launch(make_job(tmp_path, s3.uri, trainer__steps=200, workers__target=2), env={**s3.env, "RINGMASTER_LOG": "debug"})
    run.read_until("checkpointSaved")
    secret = s3.env["AWS_SECRET_ACCESS_KEY"].encode()
    for pid in rig.marked_processes(run.mark):
        assert secret not in Path(f"/proc/{pid}/cmdline").read_bytes()
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert secret.decode() not in run.stderr + json.dumps(run.events)
    for path in tmp_path.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes(), path
    for name in s3.names():
        assert secret not in s3.get(name), name


def test_a_store_that_is_away_for_a_while_costs_no_step(tmp_path, launch, s3, s3_proxy, reference):
    run = launch(make_job(tmp_path, s3.uri, workers__target=2, trainer__steps=200), env=s3_proxy.environment)
    run.read_until("checkpointSaved")
    s3_proxy.script = faults.Always("busy")
    away_from = run.read_until("step")["step"]
    run.read_until("step", step=away_from + 40)
    s3_proxy.script = faults.Quiet()
    run.wait()
    assert rig.check_complete(run, last=200)["weightsSha256"] == reference(trainer__steps=200)[0]
    assert "final" in s3.checkpoints()
