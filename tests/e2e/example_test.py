"""What stands in the tree for people to try is tried."""

import hashlib
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import rig

sys.path.append(str(rig.ROOT / "tests"))

import examples  # noqa: E402  (its folder is on the path only now)


TEXT_SHA256 = "bf1384a45646665035b4deb76156ee86a6a7ff89883c934ad3c03d1e7a0d5b36"
EXAMPLE = rig.ROOT / "deploy/examples/quickstart.yaml"


def test_the_example_trains(tmp_path, finish):
    run = finish(EXAMPLE, "--set", f"spec.checkpoint.uri={tmp_path / 'out'}", "--set", "spec.trainer.steps=6",
                 "--set", "spec.trainer.optimizer.warmupSteps=2", "--drill", "kill:1@2")
    assert run.code == 0, run.tail()
    assert run.the("complete")["step"] == 6 and len(run.of("recovered")) == 1
    assert (tmp_path / "out" / "final" / "manifest.json").exists()


def blank(text):
    return sum(character.isspace() for character in text) / len(text)


def test_what_the_quick_start_shows_at_its_end_is_words_and_not_white_space(tmp_path, finish):
    """With a fifth of its steps; prompt, seed and temperature are those of tools/quickstart."""
    command = next(line for line in (rig.ROOT / "tools/quickstart").read_text(encoding="utf-8").splitlines() if " generate " in line)
    words = shlex.split(command)
    run = finish(EXAMPLE, "--set", f"spec.checkpoint.uri={tmp_path / 'out'}", "--set", "spec.trainer.steps=150",
                 "--set", "spec.trainer.evaluation.everySteps=0")
    assert run.code == 0, run.tail()
    written = subprocess.run([rig.BIN / "ringmaster", "generate", tmp_path / "out/final", *words[words.index("generate") + 2:]],
                             capture_output=True, text=True, check=True, timeout=rig.DEADLINE_S).stdout
    assert len(written) > 300 and blank(written) < 1 / 3, written
    letters = sum(character.isalpha() for character in written)
    assert letters > len(written) / 2, written


def test_both_quick_starts_train_on_the_one_text_that_the_worker_image_brings():
    here, there = (Path(rig.ROOT / "deploy/examples" / name).read_text(encoding="utf-8")
                   for name in ("quickstart.yaml", "quickstart-cluster.yaml"))
    (place,) = re.findall(r"uri: file://(/usr/share/\S+)}", there)
    assert "      uri: text " in here
    assert f"COPY deploy/examples/text {place}\n" in (rig.ROOT / "deploy/Dockerfile").read_text(encoding="utf-8")
    assert "!deploy/examples/text" in (rig.ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


def test_the_text_of_the_quick_starts_never_changes():
    """What the quick starts end with is of this text; a model of another one would be another one."""
    files = sorted((rig.ROOT / "deploy/examples/text").iterdir())
    assert [file.name for file in files] == ["pages.txt"]
    assert hashlib.sha256(files[0].read_bytes()).hexdigest() == TEXT_SHA256
    assert blank(files[0].read_text(encoding="ascii")) < 0.2


@pytest.mark.parametrize("name", examples.names())
def test_each_example_trains_to_its_end_with_as_many_workers_as_it_has_and_to_the_weights_of_one(tmp_path, finish, s3, name):
    """With a small model and few steps, and its data and checkpoints in a bucket that is there; the rest is the example's own."""
    tokens = "format: Tokens16" in examples.job(name)
    text = rig.make_text(240000 if tokens else 60000).encode()  # some of it is held out
    s3.put("books/a.bin" if tokens else "books/a.txt", b"".join(bytes([byte, 0]) for byte in text) if tokens else text)
    (tmp_path / "job.yaml").write_text(examples.job(name), encoding="utf-8")
    target = int(re.search(r"target: (\d+)", examples.job(name)).group(1))
    told = []
    for folder, workers in (("one", 1), ("all", target)):
        # An endpoint of its own, where it names one, is that of the bucket, too.
        places = {"trainer.data.uri": f"{s3.uri}/books", "trainer.data.endpoint": s3.env["AWS_ENDPOINT_URL_S3"],
                  "checkpoint.uri": f"{s3.uri}/{folder}", "checkpoint.endpoint": s3.env["AWS_ENDPOINT_URL_S3"],
                  "trainer.data.cache": f"{tmp_path}/cache", "trainer.threads": 1, "workers.min": 1, "workers.target": workers,
                  "elasticity.joinWindow": "60s"}
        run = finish(tmp_path / "job.yaml", *(word for key, value in places.items() for word in ("--set", f"spec.{key}={value}")), env=s3.env)
        told.append(rig.check_complete(run, last=examples.STEPS)["weightsSha256"])
        assert run.of("ringFormed")[-1]["world"] == workers, run.tail()
    assert told[0] == told[1]


@pytest.mark.parametrize("name", examples.programs("Elastic"))
def test_each_example_of_a_program_that_stays_trains_another_one_to_the_weights_of_one_worker(tmp_path, finish, s3, name):
    loop = rig.ROOT / "tests/programs/elastic_numpy.py"
    (tmp_path / "job.yaml").write_text(examples.program(name, [sys.executable, str(loop)]), encoding="utf-8")
    target = int(re.search(r"target: (\d+)", examples.program(name, [])).group(1))
    told = []
    for folder, workers in (("one", 1), ("all", target)):
        places = {"checkpoint.uri": f"{s3.uri}/{folder}", "checkpoint.endpoint": s3.env["AWS_ENDPOINT_URL_S3"], "launch.steps": examples.STEPS,
                  "workers.target": workers, "elasticity.joinWindow": "60s"}
        run = finish(tmp_path / "job.yaml", *(word for key, value in places.items() for word in ("--set", f"spec.{key}={value}")),
                     env={**s3.env, "OMP_NUM_THREADS": "1"})
        assert run.code == 0 and run.of("ringFormed")[-1]["world"] == workers, run.tail()
        told.append(run.the("complete")["weightsSha256"])
    assert told[0] == told[1]


@pytest.mark.parametrize("name", examples.programs("Restart"))
def test_each_example_of_a_program_runs_another_one_as_well(tmp_path, finish, name):
    """What it starts is in nobody's image here; how many processes there are, and how they are told, is the example's own."""
    command = ["sh", "-c", f"echo $RANK of $WORLD_SIZE >>{tmp_path}/seen"]
    (tmp_path / "job.yaml").write_text(examples.program(name, command), encoding="utf-8")
    run = finish(tmp_path / "job.yaml")
    assert run.code == 0, run.tail()
    assert sorted((tmp_path / "seen").read_text(encoding="utf-8").splitlines()) == [f"{rank} of 6" for rank in range(6)]
