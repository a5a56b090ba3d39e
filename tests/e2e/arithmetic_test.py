"""Workers and checkpoints of other arithmetic: refused where the sums are exact, and never called exact."""

import json
import os
import subprocess

import rig

OTHER = {"RINGMASTER_TRAINER_ISA": "SSE41"}


def odd_one_out(folder):
    """A trainer program whose first process forces another instruction set, as if one machine were older."""
    wrapper, first = folder / "trainer", folder / "first"
    wrapper.write_text(f"#!/bin/sh\nif mkdir '{first}' 2>/dev/null; then export RINGMASTER_TRAINER_ISA=SSE41; fi\n"
                       f"exec '{rig.BIN / 'ringmaster-trainer'}' \"$@\"\n")
    wrapper.chmod(0o755)
    return {"RINGMASTER_TRAINER": str(wrapper)}


def stopped_run(launch, job, env=None):
    run = launch(job, env=env)
    run.read_until("step", step=10)
    run.interrupt()
    assert run.wait() == 130, run.tail()
    return run.the("interrupted")["step"]


def fingerprint(*options, env=None):
    run = subprocess.run([rig.BIN / "ringmaster-trainer", "fingerprint", *options], env={**os.environ, **(env or {})},
                         check=True, capture_output=True, text=True)
    return run.stdout.splitlines()


def test_a_machine_says_its_name_and_if_asked_what_it_computes():
    name, probe = fingerprint("--probe")
    assert [name] == fingerprint() and probe.startswith("probe ") and len(probe) == len("probe ") + 64
    assert fingerprint("--probe") == [name, probe], "the same each time"
    other, otherwise = fingerprint("--probe", env=OTHER)
    assert other != name and otherwise != probe, "another instruction set rounds otherwise"
    assert fingerprint("--probe", "--precision", "bf16")[1] != probe


def test_a_worker_of_other_arithmetic_is_refused_with_both_named(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2), env=odd_one_out(tmp_path))
    assert run.code == 3, run.tail()
    refusal = next(line for line in run.stderr.splitlines() if "fingerprint" in line)
    assert refusal.count("numerics") == 2 and "sse41" in refusal and "allowMixedHardware" in refusal, refusal
    reason = run.the("failed")["reason"]
    assert reason.count("numerics") == 2 and "sse41" in reason and "allowMixedHardware" in reason, reason
    assert not run.left_over()


def test_a_machine_of_the_same_name_that_computes_otherwise_is_refused_by_its_probe(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=2), env={"RINGMASTER_FAULT": "probe@1/fails"})
    assert run.code == 3, run.tail()
    reason = run.the("failed")["reason"]
    assert "although its machine is of the job's kind: its probe is " in reason and "one of the machines is faulty" in reason, reason
    assert not run.left_over()


def test_where_it_is_allowed_the_result_is_not_called_exact_also_after_a_resume(tmp_path, launch, finish):
    fields = {"workers__target": 2, "trainer__allowMixedHardware": True, "trainer__steps": 300}
    stopped_run(launch, rig.make_job(tmp_path, **fields), env=odd_one_out(tmp_path))
    complete = finish(rig.make_job(tmp_path, **fields)).the("complete")
    assert complete["exact"] is False, "the steps before the stop were not"


def test_a_checkpoint_of_other_arithmetic_is_refused_and_if_allowed_not_called_exact(tmp_path, launch, finish):
    stopped = stopped_run(launch, rig.make_job(tmp_path))
    refused = finish(rig.make_job(tmp_path), env=OTHER)
    assert refused.code == 3 and refused.stderr.count("numerics") == 2, refused.tail()
    run = finish(rig.make_job(tmp_path, trainer__allowMixedHardware=True), env=OTHER)
    complete = rig.check_complete(run, first=stopped + 1)
    assert complete["exact"] is False, run.tail()
    manifest = json.loads((rig.folder_of(complete["uri"]) / "manifest.json").read_text())
    assert manifest["exact"] is False


def test_a_checkpoint_of_another_build_says_so_and_what_can_be_done(tmp_path, launch, finish):
    """Its numerics id is another, as after a release that changed a source of bits: the machine is not to blame."""
    stopped = stopped_run(launch, rig.make_job(tmp_path))
    manifest = tmp_path / f"checkpoints/step-{stopped:08}/manifest.json"
    manifest.write_bytes(rig.sealed_anew(manifest.read_bytes(), rb"numerics [0-9a-f]{16}", b"numerics 0123456789abcdef"))
    job = rig.make_job(tmp_path)
    check = subprocess.run([rig.BIN / "ringmaster", "check", job], check=False, capture_output=True, text=True)
    refused = finish(job)
    for code, said in ((check.returncode, check.stderr), (refused.code, refused.stderr)):
        assert code == 3, said
        for words in ("was made by another build (numerics 0123456789abcdef, ", "; this one: numerics ", "go on with the programs that made it",
                      "allowMixedHardware: true (the result is then not exact)", "--overwrite"):
            assert words in said, said
    run = finish(job, "--set", "spec.trainer.allowMixedHardware=true")
    assert rig.check_complete(run, first=stopped + 1)["exact"] is False
    card = (tmp_path / "checkpoints/final/README.md").read_text()
    assert "| exact | no: its sums are exact, but a part of it was computed by other arithmetic |" in card, card


def test_bf16_goes_on_from_its_own_checkpoint(tmp_path, launch, finish, reference):
    bf16 = {"trainer__precision": "bf16"}
    stopped = stopped_run(launch, rig.make_job(tmp_path, **bf16))
    run = finish(rig.make_job(tmp_path, workers__target=2, **bf16))
    assert rig.check_complete(run, first=stopped + 1)["weightsSha256"] == reference(**bf16)[0]
