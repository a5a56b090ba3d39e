"""What is left of a finished job, on a real API server: its pods by its own choice, and nothing once its time to live has passed."""

import operator_rig as stage_rig
import processes
import pytest


def begin(stage, **spec):
    """An operator, and the job `gpt` with all of its pods running."""
    stage.operator("--no-lease")
    stage.kubectl.apply(stage_rig.job("gpt", **spec))
    for name in [*stage.until_pods("worker", 3), *stage.until_pods("coordinator", 1)]:
        stage.run_pod(name)
    processes.until(lambda: stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)


def test_a_finished_job_is_deleted_when_its_time_to_live_has_passed(stage):
    begin(stage, ttlSecondsAfterFinished=1)
    stage.say_last_word("gpt")  # and a second after that nobody could ask whether it has finished
    processes.until(lambda: not stage.kubectl.get("trainingjobs") and not stage.pods() and not stage.around(), "nothing is left", 120)


@pytest.mark.parametrize("policy, left", [("All", set()), ("Running", {"coordinator"})])
def test_which_pods_stay_behind_is_the_jobs_choice(stage, policy, left):
    begin(stage, cleanPodPolicy=policy)
    stage.finish("gpt")
    processes.until(lambda: roles(stage) == left, f"what {policy} leaves", 120)


def roles(stage):
    return {pod["metadata"]["labels"]["ringmaster.dev/role"] for pod in stage.pods().values()}
