"""What stands in the tree for people to try is tried."""

import shutil

import rig


def test_the_example_trains(tmp_path, finish):
    shutil.copytree(rig.ROOT / "common", tmp_path / "text")
    run = finish(rig.ROOT / "deploy/examples/quickstart.yaml", "--set", f"spec.trainer.data.uri={tmp_path / 'text'}",
                 "--set", f"spec.checkpoint.uri={tmp_path / 'out'}", "--set", "spec.trainer.steps=6",
                 "--set", "spec.trainer.optimizer.warmupSteps=2", "--drill", "kill:1@2")
    assert run.code == 0, run.tail()
    assert run.the("complete")["step"] == 6 and len(run.of("recovered")) == 1
    assert (tmp_path / "out" / "final" / "manifest.json").exists()
