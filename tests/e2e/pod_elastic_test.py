"""A user's program whose processes stay (launch.mode: Elastic) in pods: nobody commands them, and whatever happens is a signal or a
death. One weights hash, that of `ringmaster run`."""

import json
import re
import signal
import sys

import pytest

import pod_rig
import rig
from elastic_library_test import ENV, elastic_job
from elastic_program_test import squares_program, squares_job  # noqa: F401  (a fixture)
from launch_test import alive
from pairs_test import events, wall_to_preload  # noqa: F401  (a fixture)
from pod_launch_test import fixture_little_memory  # noqa: F401  (a fixture)

pytestmark = pytest.mark.skipif(not pod_rig.can_be(), reason="no mount namespaces to be had here")

STEPS = 80
SLOW = ("--pause-us", "8000")
NUMPY = rig.ROOT / "tests/programs/elastic_numpy.py"
FIELDS = {"workers__min": 2, "workers__max": 4, "elasticity__joinWindow": "300ms", "elasticity__lostAfter": "3s"}


@pytest.fixture(name="specs", scope="module")
def fixture_specs(squares, tmp_path_factory):
    """specs(kind): (spec, weights' hash, uri) of a program that one worker under `ringmaster run` trains to its end."""
    known = {}

    def make(kind):
        if kind not in known:
            folder = tmp_path_factory.mktemp(kind)
            job = (squares_job(folder, squares, steps=STEPS, workers=2, **FIELDS) if kind == "squares"
                   else elastic_job(folder, [sys.executable, NUMPY, 0], workers=2, **FIELDS))
            run = rig.Run(job, env=ENV)
            try:
                text = pod_rig.spec_told_by(run)
                known[kind] = text, run.the("complete")["weightsSha256"], f"file://{folder}/out"
            finally:
                run.clean_up()
        return known[kind]

    return make


@pytest.fixture(name="pods")
def pods_of_a_program(specs, squares, tmp_path):
    """pods(*words, kind=, **fields of the job's spec): its programs, none started yet; `sha256` is the undisturbed run's."""
    made = []

    def make(*words, kind="squares", env=None, **fields):
        text, sha256, uri = specs(kind)
        assert uri in text
        spec = json.loads(text.replace(uri, f"file://{tmp_path}/out"))
        command = [squares] if kind == "squares" else [sys.executable, NUMPY]
        spec["spec"]["launch"]["command"] = [str(word) for word in (*command, *words)]
        for path, value in fields.items():
            *groups, last = path.split("__")
            place = spec["spec"]
            for group in groups:
                place = place[group]
            place[last] = value
        group = pod_rig.Pods(tmp_path / "pods", json.dumps(spec), env=env)
        group.sha256 = sha256
        made.append(group)
        return group

    yield make
    for group in made:
        group.clean_up()


def begin(group, count=3, step=5):
    workers = [group.worker(i) for i in range(count)]
    coordinator = group.coordinator()
    group.ring(*((i, 1) for i in range(count)))
    group.until_step(step)
    return workers, coordinator


def said(worker, what):
    """The numbers that its program told in lines of that kind."""
    found = re.findall(r"squares: " + what + r"(( \w+=\d+)*)", worker.text())
    return [dict((name, int(value)) for name, value in re.findall(r"(\w+)=(\d+)", numbers)) for numbers, _ in found]


def check_complete(group, coordinator):
    assert coordinator.wait() == 0, group.tail()
    word = coordinator.last_word()
    assert word["exitCode"] == 0 and word["weightsSha256"] == group.sha256 and word["exact"], (word, group.sha256)
    assert "programExitCode" not in word and word["uri"].endswith("/out/final"), word
    return word


def check_stayed(workers):
    """Each one's program began once, came to the end, and its pod ended with 0."""
    for worker in workers:
        assert worker.wait() == 0, worker.text()[-3000:]
        assert worker.last_word() == {"exitCode": 0, "reason": ""}
        begun, ended = said(worker, "begin"), said(worker, "end")
        assert len(begun) == 1 and [end["pid"] for end in ended] == [begun[0]["pid"]], worker.text()[-3000:]
        assert not alive(begun[0]["pid"])


def test_a_loop_in_pods_ends_with_the_weights_of_a_run(pods):
    """In numpy, by the library and the package that lie beside the agent: nothing leads to them but what it says."""
    group = pods("0", kind="numpy", env={"OMP_NUM_THREADS": "1"})
    workers = [group.worker(i) for i in range(3)]
    coordinator = group.coordinator()
    word = check_complete(group, coordinator)
    assert word["step"] == 12
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    assert all("done 12" in worker.text() for worker in workers), group.tail()


def test_a_worker_that_vanishes_is_replaced_by_a_newcomer_and_the_others_programs_stay(pods):
    group = pods(*SLOW)
    workers, coordinator = begin(group)
    program = said(workers[1], "begin")[0]["pid"]
    workers[1].signal(signal.SIGKILL)
    workers[1].wait()
    status = group.ring((0, 1), (2, 1))
    assert [(w["worker"], w["attempt"]) for w in status["lost"]] == [(1, 1)]
    rig.until(lambda: not alive(program), "the end of the lost worker's program")
    newcomer = group.worker(1, attempt=2)
    group.ring((0, 1), (1, 2), (2, 1))
    check_complete(group, coordinator)
    check_stayed([workers[0], workers[2], newcomer])
    assert said(newcomer, "end")[0]["loads"] == 1


def test_a_worker_that_is_told_to_go_goes_and_no_step_is_redone(pods):
    group = pods(*SLOW)
    workers, coordinator = begin(group)
    workers[2].signal(signal.SIGTERM)
    assert workers[2].wait() == 0, group.tail()
    assert workers[2].last_word() == {"left": True}
    status = group.ring((0, 1), (1, 1))
    assert status["stepsRedone"] == {"announced": 0, "sudden": 0}, status["stepsRedone"]
    check_complete(group, coordinator)
    check_stayed(workers[:2])


def test_of_two_pods_whose_trainers_cant_reach_each_other_one_is_left_out_and_no_program_is_blamed(pods, wall, tmp_path):
    group = pods(*SLOW, elasticity__joinWindow="2s")
    (tmp_path / "wall").touch()
    two = group.worker(2)
    one = group.worker(1, env={"LD_PRELOAD": str(wall), "WALL_AGAINST": two.ip, "WALL_WHILE": str(tmp_path / "wall")})
    zero = group.worker(0)
    coordinator = group.coordinator()
    status = group.until(lambda s: events(s, "workerLeftOut"), "one is left out")
    [left_out] = events(status, "workerLeftOut")
    assert left_out["worker"] in (1, 2) and "can't reach each other" in left_out["cause"], left_out
    assert status["failures"] == 0 and not events(status, "programFailed"), status
    check_complete(group, coordinator)
    check_stayed([zero, two if left_out["worker"] == 1 else one])


def test_the_status_tells_steps_and_the_loss_of_who_tells_them_ends_no_program(pods):
    group = pods(*SLOW)
    workers, first = begin(group)
    status = group.until(lambda s: s["progress"]["etaSeconds"] is not None, "it says how long it will take")
    assert status["progress"]["steps"] == STEPS and status["progress"]["loss"] is not None, status["progress"]
    first.signal(signal.SIGKILL)
    first.wait()
    second = group.coordinator(term=2)
    status = group.ring((0, 1), (1, 1), (2, 1))
    assert status["term"] == 2
    check_complete(group, second)
    check_stayed(workers)


def test_all_pods_gone_the_next_ones_go_on_from_what_the_last_saved(pods):
    """As after a suspension: SIGTERM to all, and later as many as there were, under a coordinator of a later term."""
    group = pods(*SLOW)
    workers, first = begin(group)
    for worker in workers:
        worker.signal(signal.SIGTERM)
    assert [worker.wait() for worker in workers] == [0, 0, 0], group.tail()
    group.until(lambda s: s["state"] == "Gathering" and len(s["left"]) == 3, "it waits for workers")
    first.signal(signal.SIGTERM)
    assert first.wait() == 0, group.tail()
    second = group.coordinator(term=2)
    others = [group.worker(i, attempt=2) for i in range(2)]
    check_complete(group, second)
    check_stayed(others)
    assert all(said(worker, "end")[0]["updates"] <= STEPS - 5 and said(worker, "end")[0]["loads"] == 1 for worker in others)


@pytest.mark.parametrize("words, fields, sentence", [
    (["--sleepy"], {"elasticity__startTimeout": "4s"},
     "mode is Elastic, but the program did not call ringmaster.connect(); call it, or write mode: Restart, or, if"),
    (["--tensors", "1200"], {}, "the program has more than 1156 tensors with gradients"),
], ids=["never connects", "too many tensors"])
def test_a_program_that_is_refused_ends_the_job_at_once_with_the_refusal(pods, words, fields, sentence):
    """Nobody else is there that could do it: another attempt would be refused as well."""
    group = pods(*words, **fields)
    coordinator = group.coordinator()
    group.worker(0)
    assert coordinator.wait() == 2, group.tail()
    word = coordinator.last_word()
    assert word["exitCode"] == 2 and sentence in word["reason"] and "programExitCode" not in word, word


def test_a_newcomer_that_is_too_slow_to_connect_makes_room_for_another_and_the_job_goes_on(pods, squares, tmp_path):
    """Fewer than `min` are left meanwhile; who made steps with this program knows that it is none to be refused."""
    slow = tmp_path / "slow"
    group = pods(launch__command=["sh", "-c", f"test -f {slow} && exec {squares} --sleepy; exec {squares} {' '.join(SLOW)}"],
                 elasticity__startTimeout="4s")
    workers, coordinator = begin(group, count=2)
    slow.touch()
    workers[1].signal(signal.SIGKILL)
    workers[1].wait()
    late = group.worker(1, attempt=2)
    assert late.wait() == 2 and late.last_word()["elsewhere"], late.text()[-3000:]
    slow.unlink()
    newcomer = group.worker(1, attempt=3)
    check_complete(group, coordinator)
    check_stayed([workers[0], newcomer])


def test_a_rule_ends_the_job_and_the_last_word_has_the_programs_code(pods, squares):
    """And the program has as many threads as there are for it here."""
    command = ["sh", "-c", f'echo "$OMP_NUM_THREADS threads"; exec {squares} --fail-at 9']
    group = pods(launch__command=command, failurePolicy__rules=[{"onExitCodes": [3], "action": "FailJob"}])
    workers = [group.worker(i) for i in range(2)]
    coordinator = group.coordinator()
    assert coordinator.wait() == 5, group.tail()
    word = coordinator.last_word()
    assert word["programExitCode"] == 3 and "squares: the numbers ran out; failurePolicy.rules end the job" in word["reason"], word
    assert all(re.search(r"^[1-9]\d* threads$", worker.text(), re.MULTILINE) for worker in workers), group.tail()


def test_who_is_killed_for_memory_says_so_and_no_rule_spares_it(pods, tmp_path, little_memory):
    group = pods(failurePolicy__maxRestarts=0, failurePolicy__rules=[{"onExitCodes": [137], "action": "Restart"}], workers__min=1,
                 launch__command=[sys.executable, "-c", f"x = bytearray(1 << 30); open({str(tmp_path / 'survived')!r}, 'w')"])
    worker = group.worker(0)
    little_memory(worker.pid)
    coordinator = group.coordinator()
    assert coordinator.wait() == 5, group.tail()
    word = coordinator.last_word()
    assert word["programExitCode"] == 137 and "killed by signal 9, out of memory" in word["reason"], word
    assert not (tmp_path / "survived").exists()
