"""A user's own program whose processes stay (launch.mode: Elastic): one result whatever happened, and survivors that
keep their pids."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess

import pytest

import rig
from launch_test import alive, program_job

STEPS = 24


@pytest.fixture(name="squares", scope="session")
def squares_program(tmp_path_factory):
    """The program of tests/programs/squares.c, which speaks with its trainer itself."""
    program = tmp_path_factory.mktemp("programs") / "squares"
    subprocess.run(["gcc", "-O1", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE", "-ffp-contract=off", "-I", str(rig.ROOT), "-o",
                    str(program), str(rig.ROOT / "tests/programs/squares.c"), "-lm"], check=True)
    return program


def squares_job(folder, squares, *words, steps=STEPS, **fields):
    settings = {"launch__mode": "Elastic", "launch__steps": steps, "launch__batch__lanes": 8,
                "launch__batch__laneSequences": 2, "checkpoint__uri": "out"}
    settings.update(fields)
    return program_job(folder, [squares, *words], **settings)


def slow(pause_us=10000):
    """Lanes that take so long that something can happen in them."""
    return "--pause-us", str(pause_us)


SOON = {"elasticity__joinWindow": "200ms"}  # for those who come back, or are new
TOGETHER = {"elasticity__joinWindow": "1h"}  # the first ring has all that are expected, however late one of them comes: with two nobody decides who is right


def said(run, what):
    """What the program said of that kind: its worker, and numbers by name."""
    found = []
    for line in "".join(run._errors).splitlines():
        match = re.match(r"\[(\d+)\] squares: " + what + r" (.*)", line)
        if match:
            found.append({"worker": int(match[1]), **{k: int(v) for k, v in re.findall(r"(\w+)=(\d+)", match[2])}})
    return found


@pytest.fixture(name="hash_of", scope="module")
def hash_of_an_undisturbed_run(squares, tmp_path_factory):
    """hash_of(steps): of the weights that one worker alone ends with."""
    known = {}

    def hash_of(steps=STEPS):
        if steps not in known:
            run = rig.Run(squares_job(tmp_path_factory.mktemp("alone"), squares, steps=steps, workers=1))
            try:
                assert run.wait() == 0, run.tail()
                known[steps] = run.the("complete")["weightsSha256"]
            finally:
                run.clean_up()
        return known[steps]

    return hash_of


def check_ended_with(run, expected):
    assert run.code == 0, run.tail()
    end = run.the("complete")
    assert end["weightsSha256"] == expected and end["exact"], run.tail()


def check_survivors(run, workers):
    """Trainers and programs of these were started once, and came to the end."""
    rings = run.of("ringFormed")
    first = {m["worker"]: m for ring in reversed(rings) for m in ring["members"]}
    last = {m["worker"]: m for m in rings[-1]["members"]}
    begun, ended = said(run, "begin"), said(run, "end")
    for worker in workers:
        assert first[worker] == last[worker]
        pids = [line["pid"] for line in begun if line["worker"] == worker]
        assert len(pids) == 1
        assert [line["pid"] for line in ended if line["worker"] == worker] == pids, run.tail()


@pytest.mark.parametrize("workers", [1, 2, 3, 5])
def test_the_weights_do_not_depend_on_how_many_workers_there_are(finish, tmp_path, squares, hash_of, workers):
    run = finish(squares_job(tmp_path, squares, workers=workers))
    check_ended_with(run, hash_of())
    check_survivors(run, range(workers))
    assert all((line["updates"], line["loads"]) == (STEPS, 0) for line in said(run, "end"))


def test_the_weights_that_are_named_are_those_that_lie_in_final(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, workers=2))
    tensors = rig.read_safetensors(tmp_path / "out/final/model.safetensors")
    assert {"model.weight", "optimizer.momentum", "step"} <= set(tensors)
    for step in run.of("step"):
        assert step["samplesPerSecond"] > 0 and step["gradientNorm"] > 0, step
        assert not {"tokensPerSecond", "clipFactor", "learningRate"} & set(step), "it has no tokens, and an optimizer of its own"
    weights = tensors["model.weight"]
    assert run.code == 0 and len(weights) == 4 * 1001
    assert hashlib.sha256(weights).hexdigest() == run.the("complete")["weightsSha256"]
    manifest = json.loads((tmp_path / "out/final/manifest.json").read_text())
    assert manifest["weightsSha256"] == run.the("complete")["weightsSha256"]
    again = finish(squares_job(tmp_path, squares, workers=2))
    assert again.code == 0 and again.the("complete")["weightsSha256"] == manifest["weightsSha256"]


@pytest.mark.parametrize("drill", ["kill:2@9", "kill:0@9"])
def test_a_sudden_loss_leaves_the_others_as_they_are(finish, tmp_path, squares, hash_of, drill):
    run = finish(squares_job(tmp_path, squares, *slow(), workers=4), "--drill", drill)
    check_ended_with(run, hash_of())
    lost = int(drill[5])
    assert run.the("workerLost")["worker"] == lost
    assert run.the("recovered")["stepsRedone"] <= 1
    check_survivors(run, {0, 1, 2, 3} - {lost})
    rig.until(lambda: not any(alive(line["pid"]) for line in said(run, "begin")), "the end of the lost worker's program")


def test_an_announced_leave_redoes_no_step(finish, tmp_path, squares, hash_of):
    run = finish(squares_job(tmp_path, squares, *slow(), workers=4), "--drill", "term:1@9")
    check_ended_with(run, hash_of())
    assert run.the("recovered")["stepsRedone"] == 0
    check_survivors(run, {0, 2, 3})
    left = [line for line in said(run, "end") if line["worker"] == 1]
    assert len(left) == 1 and left[0]["step"] >= 9


@pytest.mark.parametrize("drill", ["stop:3@9", "coordinator@9"])
def test_what_else_may_happen_changes_nothing(finish, tmp_path, squares, hash_of, drill):
    run = finish(squares_job(tmp_path, squares, *slow(), workers=4), "--drill", drill)
    check_ended_with(run, hash_of())
    check_survivors(run, {0, 1, 2, 3} if drill.startswith("coordinator") else {0, 1, 2})


def test_a_newcomer_gets_the_state_from_the_members_memory(finish, tmp_path, squares, hash_of):
    run = finish(squares_job(tmp_path, squares, *slow(), steps=60, workers=2, **SOON), "--drill", "join@9")
    check_ended_with(run, hash_of(60))
    check_survivors(run, {0, 1})
    came = [line for line in said(run, "end") if line["worker"] == 2]
    assert len(came) == 1 and came[0]["loads"] == 1 and 0 < came[0]["updates"] < 60, run.tail()
    assert not run.of("resumed")


def kill_program(run, worker, step):
    run.read_until("step", step=step)
    pid = next(line["pid"] for line in said(run, "begin") if line["worker"] == worker)
    os.kill(pid, signal.SIGKILL)


def test_a_program_that_is_killed_is_started_anew_with_its_trainer(launch, tmp_path, squares, hash_of):
    run = launch(squares_job(tmp_path, squares, *slow(), steps=80, workers=3, **SOON))
    kill_program(run, 1, 9)
    run.wait()
    check_ended_with(run, hash_of(80))
    assert "killed by signal 9" in run.of("workerLost")[0]["cause"], run.tail()
    check_survivors(run, {0, 2})
    assert len([line for line in said(run, "begin") if line["worker"] == 1]) == 2


def test_a_trainer_that_is_killed_takes_its_program_along(finish, tmp_path, squares, hash_of):
    run = finish(squares_job(tmp_path, squares, *slow(), steps=80, workers=3, **SOON), "--drill", "trainer:1@9")
    check_ended_with(run, hash_of(80))
    assert run.of("workerLost")[0]["cause"] == "the trainer was killed by signal 9", run.tail()
    check_survivors(run, {0, 2})
    pids = [line["pid"] for line in said(run, "begin") if line["worker"] == 1]
    assert len(pids) == 2
    assert [line["pid"] for line in said(run, "end") if line["worker"] == 1] == [pids[1]]


def test_a_program_that_fails_is_named_with_its_last_word(finish, tmp_path, squares, hash_of):
    once = tmp_path / "once"
    run = finish(squares_job(tmp_path, squares, *slow(), "--fail-at", "9", "--once", str(once), steps=80, workers=3, **SOON))
    check_ended_with(run, hash_of(80))
    lost = run.of("workerLost")
    assert len(lost) == 1 and "exit code 3: squares: the numbers ran out" in lost[0]["cause"]
    failed = run.the("programFailed")
    assert (failed["worker"], failed["programExitCode"]) == (lost[0]["worker"], 3) and "rank" not in failed, failed
    assert failed["reason"] == "exit code 3: squares: the numbers ran out" and "squares: the numbers ran out" in failed["output"], failed
    check_survivors(run, {0, 1, 2} - {lost[0]["worker"]})


def test_one_that_always_fails_ends_the_job(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, "--fail-at", "9", workers=2, failurePolicy__maxRestarts=1))
    assert run.code == 5, run.tail()
    assert "exit code 3: squares: the numbers ran out" in run.the("failed")["reason"]


def test_a_gradient_that_is_not_finite_ends_the_job_behind_the_last_sound_step(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, "--nan-at", "9", workers=2))
    assert run.code == 5, run.tail()
    assert "not finite" in run.the("failed")["reason"] and run.of("step")[-1]["step"] == 8, run.tail()


@pytest.mark.parametrize("words, fields, code, sentence", [
    (["--sleepy"], {"elasticity__startTimeout": "4s"}, 2,
     "mode is Elastic, but the program did not call ringmaster.connect(); call it, or write mode: Restart, or, if 2 s are too few to come to that, a longer startTimeout"),
    (["--tensors", "1200"], {}, 2, "the program has more than 1156 tensors with gradients"),
    (["--samples", "0"], {}, 2, "the program has 0 samples; there must be one at least"),
], ids=["never connects", "too many tensors", "no samples"])
def test_what_can_not_be_is_refused_with_a_sentence(finish, tmp_path, squares, words, fields, code, sentence):
    run = finish(squares_job(tmp_path, squares, *words, workers=2, **fields))
    assert sentence in run.the("failed")["reason"], run.tail()
    assert run.code == code


def test_different_first_weights_are_refused(finish, tmp_path, squares):
    words = ["-c", f'exec {squares} --weights $$']
    run = finish(squares_job(tmp_path, "sh", *words, workers=2))
    assert run.code == 3, run.tail()
    assert "the workers begin with different weights: seed before building the model" in run.the("failed")["reason"]


@pytest.mark.parametrize("before, after", [(3, 2), (1, 4)])
def test_a_run_goes_on_from_a_checkpoint_with_other_workers(launch, finish, tmp_path, squares, hash_of, before, after):
    job = squares_job(tmp_path, squares, *slow(), steps=60, workers=before)
    first = launch(job)
    first.read_until("step", step=12)
    first.interrupt()
    assert first.wait() == 130
    saved = first.the("interrupted")["step"]
    assert 12 <= saved < 60
    run = finish(squares_job(tmp_path, squares, *slow(), steps=60, workers=after))
    check_ended_with(run, hash_of(60))
    ended = said(run, "end")
    assert len(ended) == after and all(line["updates"] == 60 - saved and line["loads"] == 1 for line in ended), run.tail()


def checked(job):
    words = [str(rig.BIN / "ringmaster"), "check", str(job)]
    text, told = (subprocess.run([*words, *more], capture_output=True, text=True, check=True, timeout=rig.DEADLINE_S).stdout for more in ([], ["--output", "json"]))
    assert "\n\n\n" not in text, text
    return text, json.loads(told)


def test_a_check_tells_what_a_program_would_go_on_from(finish, tmp_path, squares):
    job = squares_job(tmp_path, squares, workers=2, checkpoint__everySteps=5)
    text, told = checked(job)
    assert "it would begin at step 0" in text and told == {"job": "prog", "workers": 2, "steps": STEPS, "resume": None}
    assert not (tmp_path / "out").exists()
    rig.check_complete(finish(job), last=STEPS)
    text, told = checked(job)
    assert "nothing left to train" in text and told["resume"] == {"checkpoint": "final", "step": STEPS, "complete": True}
    shutil.rmtree(tmp_path / "out/final")
    text, told = checked(job)
    assert "go on from step-00000020, step 20" in text and told["resume"] == {"checkpoint": "step-00000020", "step": 20, "complete": False}


def test_checkpoints_on_the_way_change_nothing(finish, tmp_path, squares, hash_of):
    run = finish(squares_job(tmp_path, squares, workers=3, checkpoint__everySteps=5))
    check_ended_with(run, hash_of())
    assert (tmp_path / "out/step-00000020/model.safetensors").exists()


def test_what_a_program_does_after_its_last_step_is_waited_for(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, "--after", "1500", workers=2))
    assert run.code == 0
    assert len([line for line in "".join(run._errors).splitlines() if "squares: over" in line]) == 2, run.tail()


@pytest.mark.parametrize("seed", range(1, 5))
def test_random_histories_come_to_the_same_bits(finish, tmp_path, squares, hash_of, seed):
    """All kinds of drills that a run draws from a seed."""
    run = finish(squares_job(tmp_path, squares, *slow(), steps=80, workers=4, checkpoint__everySteps=10,
                             failurePolicy__maxRestarts=100, elasticity__lostAfter="3s", **SOON), "--drill", f"random:{seed}")
    check_ended_with(run, hash_of(80))
    assert run.of("drill"), run.tail()
    rig.until(lambda: not any(alive(line["pid"]) for line in said(run, "begin")), "the end of every program")


def test_who_never_came_to_the_last_step_is_not_waited_for(finish, tmp_path, squares, hash_of):
    """A newcomer that is still starting when the job ends; its grace would be an hour."""
    late = tmp_path / "late.sh"
    late.write_text(f"#!/bin/sh\n[ -e {tmp_path}/begun ] && sleep 600\ntouch {tmp_path}/begun\nexec {squares} \"$@\"\n")
    late.chmod(0o755)
    run = finish(squares_job(tmp_path, late, *slow(), workers=1, launch__gracePeriod="1h"), "--drill", f"join@{STEPS // 2}")
    check_ended_with(run, hash_of())


def test_a_program_that_ends_before_it_connects_is_told_what_to_call(finish, tmp_path):
    run = finish(squares_job(tmp_path, "true", workers=1, failurePolicy__maxRestarts=0))
    assert run.code == 5, run.tail()
    assert "it ended without ringmaster.connect(): call it, or write mode: Restart" in run.the("failed")["reason"]


def parent_of(pid):
    return int(open(f"/proc/{pid}/stat", encoding="utf-8").read().rsplit(")", 1)[1].split()[1])


def test_what_a_killed_launcher_leaves_is_ended_before_the_next_begins(launch, tmp_path, squares, hash_of):
    """A child in a session of its own says when it begins; nobody else ends it."""
    script = tmp_path / "with_child.sh"
    script.write_text(f"#!/bin/sh\nsetsid sh -c 'echo $$ >>{tmp_path}/children; exec sleep 600' &\nexec {squares} \"$@\"\n")
    script.chmod(0o755)
    run = launch(squares_job(tmp_path, script, *slow(), steps=80, workers=2, **SOON))
    run.read_until("step", step=9)
    os.kill(parent_of(said(run, "begin")[0]["pid"]), signal.SIGKILL)
    run.wait()
    check_ended_with(run, hash_of(80))
    children = [int(line) for line in (tmp_path / "children").read_text(encoding="utf-8").split()]
    assert len(children) == 3 and not [pid for pid in children if alive(pid)], run.tail()


def test_a_launcher_that_stands_still_while_its_pair_trains_is_replaced(launch, tmp_path, squares, hash_of):
    """Nothing that its trainer says comes through it any more. The ring does not need that, until it is formed anew."""
    fields = {"elasticity__stepTimeout": "1s", "elasticity__formTimeout": "1s", **SOON}
    run = launch(squares_job(tmp_path, squares, *slow(), steps=80, workers=3, **fields), "--drill", "kill:2@20")
    run.read_until("step", step=5)
    first = next(line["pid"] for line in said(run, "begin") if line["worker"] == 1)
    os.kill(parent_of(first), signal.SIGSTOP)
    run.wait()
    check_ended_with(run, hash_of(80))
    again = [line["pid"] for line in said(run, "begin") if line["worker"] == 1]
    assert again[0] == first and len(again) == 2 and not alive(first), run.tail()
    assert [event["cause"] for event in run.of("workerLost") if event["worker"] != 2] == ["its trainer hangs: it did not stop when it was told to"], run.tail()
    check_survivors(run, {0})


@pytest.mark.slow
def test_a_launcher_that_stands_still_before_its_first_word_is_replaced_after_a_minute(launch, tmp_path, squares, hash_of):
    """The first that begins waits before it connects; the other one is alone meanwhile."""
    script = tmp_path / "waits.sh"
    script.write_text(f"#!/bin/sh\nif mkdir {tmp_path}/first 2>/dev/null; then\n    echo $$ >{tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; exec sleep 600\nfi\n"
                      f"exec {squares} \"$@\"\n")
    script.chmod(0o755)
    run = launch(squares_job(tmp_path, script, *slow(), steps=60, workers=2, workers__min=2, **SOON))
    rig.until(lambda: (tmp_path / "pid").exists(), "a program that does not connect")
    first = int((tmp_path / "pid").read_text(encoding="utf-8"))
    os.kill(parent_of(first), signal.SIGSTOP)
    run.wait()
    check_ended_with(run, hash_of(60))
    assert not alive(first) and len(said(run, "begin")) == 2, run.tail()


def rules(*pairs):
    return json.dumps([{"onExitCodes": [code], "action": action} for code, action in pairs])


def test_a_rule_ends_the_job_at_the_programs_exit_code(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, "--fail-at", "9", workers=2, failurePolicy__rules=rules((3, "FailJob"))))
    assert run.code == 5, run.tail()
    failed = run.the("failed")
    assert "exit code 3: squares: the numbers ran out; failurePolicy.rules end the job at that exit code" in failed["reason"], failed
    assert failed["programExitCode"] == 3 and len(run.of("ringFormed")) == 1, run.tail()


def test_a_rule_spares_the_programs_exit_code(finish, tmp_path, squares, hash_of):
    """Where none may fail. The trainer that is killed for it is none of its own."""
    once = tmp_path / "once"
    run = finish(squares_job(tmp_path, squares, *slow(), "--fail-at", "9", "--once", str(once), steps=80, workers=3,
                             failurePolicy__maxRestarts=0, failurePolicy__rules=rules((3, "Restart")), **SOON))
    check_ended_with(run, hash_of(80))
    assert run.the("programFailed")["programExitCode"] == 3 and not run.of("workerFailed"), run.tail()


def fails_while_the_coordinator_is_away(run, tmp_path):
    """The coordinator stands still, and what is said to it is lost with it. Another pair is up before that."""
    started = run.read_until("started")
    run.read_until("step", step=5)
    os.kill(started["coordinatorPid"], signal.SIGSTOP)
    (tmp_path / "fail").touch()
    rig.until(lambda: len((tmp_path / "begun").read_text(encoding="utf-8").split()) == 4, "another program in the failed one's place")
    os.kill(started["coordinatorPid"], signal.SIGKILL)


def failing_program(tmp_path, squares):
    """squares, and in one of the workers its end with 3 once the file `fail` is there."""
    script = tmp_path / "failing.sh"
    script.write_text(f"""#!/bin/sh
echo $$ >>{tmp_path}/begun
{squares} "$@" & program=$!
if mkdir {tmp_path}/chosen 2>/dev/null; then
    until [ -e {tmp_path}/fail ]; do kill -0 $program 2>/dev/null || break; sleep 0.02; done
    if [ -e {tmp_path}/fail ]; then kill -9 $program; echo "out of numbers" >&2; exit 3; fi
fi
wait $program
""")
    script.chmod(0o755)
    return script


def test_a_failure_that_no_coordinator_hears_is_told_to_the_next_one_once(launch, tmp_path, squares, hash_of):
    run = launch(squares_job(tmp_path, failing_program(tmp_path, squares), *slow(20000), steps=80, workers=3,
                             failurePolicy__maxRestarts=1, **SOON))
    fails_while_the_coordinator_is_away(run, tmp_path)
    run.wait()
    check_ended_with(run, hash_of(80))
    failed = run.the("programFailed")
    assert failed["programExitCode"] == 3 and "out of numbers" in failed["reason"], failed
    assert not run.of("workerQuarantined"), "it counted twice: " + run.tail()


def test_a_rule_ends_the_job_by_a_failure_that_no_coordinator_heard(launch, tmp_path, squares):
    run = launch(squares_job(tmp_path, failing_program(tmp_path, squares), *slow(20000), steps=1000, workers=3,
                             failurePolicy__rules=rules((3, "FailJob")), **SOON))
    fails_while_the_coordinator_is_away(run, tmp_path)
    assert run.wait() == 5, run.tail()
    assert run.the("failed")["programExitCode"] == 3, run.tail()
    assert "failurePolicy.rules end the job at that exit code" in run.the("failed")["reason"], run.tail()


def test_weights_that_differ_at_the_end_are_no_result_in_the_next_run_either(finish, tmp_path, squares, hash_of):
    job = squares_job(tmp_path, squares, "--differ-at", "20", "--once", str(tmp_path / "once"), workers=2)
    run = finish(job)
    assert run.code == 5 and "workers end with different weights" in run.the("failed")["reason"], run.tail()
    assert not list((tmp_path / "out").glob("step-*")), "what is made of two states is of nobody's"
    check_ended_with(finish(job), hash_of())


def test_a_worker_whose_state_has_come_to_differ_is_named_and_gets_that_of_the_others(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, *slow(2000), "--differ-at", "20", "--once", str(tmp_path / "once"), steps=80, workers=3, **TOGETHER))
    [other] = said(run, "differ")
    loads = {line["worker"]: line["loads"] for line in said(run, "end")}
    assert run.code == 0, run.tail()
    assert loads == {worker: int(worker == other["worker"]) for worker in range(3)}, run.tail()
    differs = run.the("workerDiffers")
    assert differs["worker"] == other["worker"] and "its state of step 51 is not that of most workers; it gets theirs" in differs["cause"]
    assert not run.the("complete")["exact"], "gradients of other weights were in the sums for a while"


def test_of_two_states_nobody_knows_whose_is_right_and_nobody_is_blamed(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, *slow(2000), "--differ-at", "20", "--once", str(tmp_path / "once"), steps=80, workers=2,
                             workers__min=2, failurePolicy__maxRestarts=0))
    assert run.code == 0 and not run.the("complete")["exact"], run.tail()
    assert "no majority says whose is right" in run.the("workerDiffers")["cause"]


def test_no_checkpoint_is_made_of_pieces_of_two_states(finish, tmp_path, squares):
    """One of step 25 would be of both; the next is of one again."""
    run = finish(squares_job(tmp_path, squares, *slow(2000), "--differ-at", "20", "--once", str(tmp_path / "once"), steps=80, workers=3,
                             checkpoint__everySteps=25, checkpoint__keep=9, **TOGETHER))
    assert run.code == 0, run.tail()
    assert {event["step"] for event in run.of("checkpointSkipped")} == {25, 50}, run.tail()
    assert [event["step"] for event in run.of("checkpointSaved")] == [75, 80], run.tail()


def test_a_lane_that_came_out_wrong_once_is_computed_again_by_all_and_changes_nothing(finish, tmp_path, squares, hash_of):
    """Each of four audits a lane in its first step, so whoever is wrong there is seen."""
    run = finish(squares_job(tmp_path, squares, *slow(2000), "--wrong-at", "1", "--once", str(tmp_path / "once"), workers=4, **TOGETHER))
    assert len({line["worker"] for line in said(run, "wrong")}) == 1, run.tail()
    check_ended_with(run, hash_of())
    told = "".join(run._errors)
    assert "workers computed a lane differently; all compute it once more" in told and "step=1 " in told, run.tail()
    assert not run.of("workerDiffers") and len(run.of("ringFormed")) == 1, run.tail()
    check_survivors(run, range(4))


def test_a_worker_that_computes_otherwise_is_named_and_nothing_of_that_step_is_taken(finish, tmp_path, squares, hash_of):
    """It is wrong again in its first step after it came back, and then it is left out."""
    run = finish(squares_job(tmp_path, squares, *slow(2000), "--wrong-from", "1", "--once", str(tmp_path / "once"), workers=3,
                             workers__min=2, failurePolicy__maxRestarts=0, **TOGETHER))
    assert run.code == 0, run.tail()
    culprit = said(run, "wrong")[0]["worker"]
    differs = run.of("workerDiffers")
    assert differs[0]["worker"] == culprit, run.tail()
    assert "of step 1 otherwise than most workers; nothing of that step was taken" in differs[0]["cause"]
    assert run.the("workerQuarantined")["worker"] == culprit
    end = run.the("complete")
    assert end["weightsSha256"] == hash_of() and not end["exact"], "who is wrong once seen may have been wrong before"


def test_two_workers_that_both_stand_by_their_result_end_the_job_and_are_both_named(finish, tmp_path, squares):
    run = finish(squares_job(tmp_path, squares, "--wrong-from", "1", "--once", str(tmp_path / "once"), workers=2, workers__min=2))
    assert run.code == 5, run.tail()
    reason = run.the("failed")["reason"]
    assert re.search(r"workers 0, 1 compute lane \d of step 1 differently, also when all do it once more, and no majority says who is right",
                     reason), reason


def test_who_does_not_say_that_its_lanes_are_determined_is_not_audited(finish, tmp_path, squares, hash_of):
    run = finish(squares_job(tmp_path, squares, "--undetermined", "--wrong-at", "1", "--once", str(tmp_path / "once"), workers=4, **TOGETHER))
    assert run.code == 0 and said(run, "wrong") and not run.of("workerDiffers"), run.tail()
    assert run.the("complete")["weightsSha256"] != hash_of()
