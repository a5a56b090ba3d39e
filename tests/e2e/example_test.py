"""What stands in the tree for people to try is tried."""

import re
import shutil
import sys

import pytest

import rig

sys.path.append(str(rig.ROOT / "tests"))

import examples  # noqa: E402  (its folder is on the path only now)


def test_the_example_trains(tmp_path, finish):
    shutil.copytree(rig.ROOT / "common", tmp_path / "text")
    run = finish(rig.ROOT / "deploy/examples/quickstart.yaml", "--set", f"spec.trainer.data.uri={tmp_path / 'text'}",
                 "--set", f"spec.checkpoint.uri={tmp_path / 'out'}", "--set", "spec.trainer.steps=6",
                 "--set", "spec.trainer.optimizer.warmupSteps=2", "--drill", "kill:1@2")
    assert run.code == 0, run.tail()
    assert run.the("complete")["step"] == 6 and len(run.of("recovered")) == 1
    assert (tmp_path / "out" / "final" / "manifest.json").exists()


@pytest.mark.parametrize("name", examples.names())
def test_each_example_trains_to_its_end_with_as_many_workers_as_it_has_and_to_the_weights_of_one(tmp_path, finish, s3, name):
    """With a small model and few steps, and its data and checkpoints in a bucket that is there; the rest is the example's own."""
    s3.put("books/a.txt", rig.make_text(60000).encode())
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


@pytest.mark.parametrize("name", examples.programs())
def test_each_example_of_a_program_runs_another_one_as_well(tmp_path, finish, name):
    """What it starts is in nobody's image here; how many processes there are, and how they are told, is the example's own."""
    command = ["sh", "-c", f"echo $RANK of $WORLD_SIZE >>{tmp_path}/seen"]
    (tmp_path / "job.yaml").write_text(examples.program(name, command), encoding="utf-8")
    run = finish(tmp_path / "job.yaml")
    assert run.code == 0, run.tail()
    assert sorted((tmp_path / "seen").read_text(encoding="utf-8").splitlines()) == [f"{rank} of 6" for rank in range(6)]
