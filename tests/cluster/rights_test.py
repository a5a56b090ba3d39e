"""Each right that the chart gives the operator is taken away in turn: it says so in the API server's words, and goes on once it has it again.

A right that is new in the chart is a case by itself, and fails until STORIES has what needs it and where its lack is told.
"""

import json

import operator_rig as stage_rig
import processes
import pytest
import rights

CHART = rights.of_the_chart()
LOOKS = 6  # at a job, from the first refusal on, until its status has the sentence


class Play:
    """A namespace, and an operator in it that has all rights but one until `give_back`."""

    def __init__(self, stage, folder, right):
        self.stage, self.right, self.replica = stage, right, None
        self.somebody = rights.Somebody(stage.kubectl, folder, [each for each in CHART if each != right])
        self.sentence = right.lacking(self.somebody.name)

    def operator(self, *arguments):
        """The operator that lacks the right."""
        self.replica = self.stage.operator(*(arguments or ["--no-lease"]), kubeconfig=self.somebody.config)

    def job(self, workers=None, **spec):
        self.stage.kubectl.apply(stage_rig.job("gpt", workers, **spec))

    def patch(self, name="gpt", **spec):
        self.stage.kubectl("patch", "trainingjob", name, "--type=merge", "-p", json.dumps({"spec": spec}))

    def suspended(self, truth, name="gpt"):
        self.patch(name, suspend=truth)
        processes.until(lambda: self.stage.condition(name, "Suspended") == str(truth), f"{name} Suspended is {truth}", 120)

    def message(self):
        jobs = self.stage.kubectl.get("trainingjobs", "--field-selector=metadata.name=gpt")
        return jobs[0].get("status", {}).get("message", "") if jobs else ""

    def looks(self):
        """How often it has looked at the job since the API server refused something."""
        told = [line["message"] for line in self.replica.lines()]
        return told[told.index("a write was refused"):].count("a plan") if "a write was refused" in told else 0

    def give_back(self):
        self.somebody.may(CHART)


# --- where the lack of a right is told ---

def in_the_status(play):
    def told():
        looks, message = play.looks(), play.message()  # in this order: it may look on while kubectl asks
        assert play.sentence in message or looks <= LOOKS, f"{looks} looks, and the status says: {message}"
        return play.sentence in message
    processes.until(told, f"{play.sentence} in the status", 120)
    play.give_back()
    processes.until(lambda: play.sentence not in play.message(), "the status says so no longer", 120)


def in_the_log(message):
    def told(play):
        processes.until(lambda: any(play.sentence in line["why"] and line["level"] == "warn" for line in play.replica.lines(message)),
                        f'{play.sentence} in the log, under "{message}"', 120)
        play.give_back()
    return told


def in_the_log_and_as_an_event(play):
    processes.until(lambda: any(play.sentence in event["note"] and event["type"] == "Warning" and event["regarding"]["name"] == "gpt"
                                for event in play.stage.kubectl.get("events.events.k8s.io")), f"{play.sentence} as an event of the job", 120)
    in_the_log("a write was refused")(play)


# --- what needs a right, up to where it yields; behind that, what comes by itself once it is there ---

def a_new_job(play):
    play.operator()
    play.job()
    yield
    play.stage.until_pods("worker", 3)


def a_name_that_is_taken(kind, name, **spec):
    """It is read to see whose it is."""
    def story(play):
        play.stage.kubectl.apply({"kind": kind, "metadata": {"name": name}, **spec})
        play.operator()
        play.job()
        yield
        play.stage.until_message("gpt", f'"{name}" is there and does not belong to this job')
        play.stage.kubectl("delete", kind, name)
        play.stage.until_pods("worker", 3)
    return story


def a_pods_name_that_is_taken(play):
    play.job()
    name = stage_rig.worker_name(play.stage.job("gpt"), 1, 1)
    story = a_name_that_is_taken("Pod", name, apiVersion="v1", spec={"containers": [{"name": "none", "image": "none:1"}]})
    yield from story(play)


def a_successor_applies_anew(play):
    first = play.stage.operator("--no-lease")
    play.job()
    play.stage.until_pods("worker", 3)
    assert first.stop() == 0
    # As one of before there was this annotation left them: what bears it is not applied again.
    play.stage.kubectl("annotate", "services,poddisruptionbudgets,networkpolicies", "-l", "ringmaster.dev/job", "ringmaster.dev/applied-")
    play.operator()
    yield


def what_somebody_deletes_comes_back(play):
    play.operator()
    play.job()
    play.stage.until_pods("worker", 3)
    yield
    before = play.stage.around()
    play.stage.kubectl("delete", play.right.resource, "-l", "ringmaster.dev/job=gpt")
    processes.until(lambda: play.stage.around() == before, "all of it back", 120)


def jobs_are_found(play):
    play.operator()
    yield
    play.job()
    play.stage.until_pods("worker", 3)


def nothing_is_done_before_all_is_known(play):
    play.operator()
    play.job()
    assert play.replica.get("/readyz")[0] == 503
    assert play.replica.get("/healthz")[0] == 200
    yield
    play.stage.until_pods("worker", 3)


def pods_are_followed(play):
    play.operator()
    play.job()
    yield
    for name in play.stage.until_pods("worker", 3):
        play.stage.run_pod(name)
    processes.until(lambda: play.stage.job("gpt")["status"]["workers"]["ready"] == 3, "three ready workers", 120)


def a_job_is_suspended(play):
    play.operator()
    play.job()
    play.stage.until_pods("worker", 3)
    play.patch(suspend=True)
    yield
    processes.until(lambda: play.stage.condition("gpt", "Suspended") == "True" and not play.stage.pods(), "suspended, and no pods", 120)


def a_jobs_time_to_live_has_passed(play):
    play.operator()
    play.job(ttlSecondsAfterFinished=1)
    play.stage.until_pods("worker", 3)
    play.stage.until_pods("coordinator", 1)
    play.stage.say_last_word("gpt")
    yield
    processes.until(lambda: not play.stage.kubectl.exists("trainingjob", "gpt"), "the job is gone", 120)


def events(play, reason, name):
    return [event for event in play.stage.kubectl.get("events.events.k8s.io") if event["reason"] == reason and event["regarding"]["name"] == name]


def a_job_has_something_to_tell(play):
    play.operator()
    play.job()
    yield
    play.suspended(True)
    processes.until(lambda: events(play, "Suspended", "gpt"), "the next event", 120)


def a_job_tells_the_same_again(play):
    """Two times the same is one event that says so."""
    def twice(name):
        for truth in (True, False, True):
            play.suspended(truth, name)

    play.operator()
    play.job()
    twice("gpt")
    yield
    play.stage.kubectl.apply(stage_rig.job("next"))
    twice("next")
    processes.until(lambda: any(event.get("series", {}).get("count") == 2 for event in events(play, "Suspended", "next")), "an event of two", 120)


def nodes_are_seen(play):
    """Jobs go on without them."""
    name = f"node-{play.stage.kubectl.namespace}"
    play.operator()
    play.job()
    play.stage.until_pods("worker", 3)
    assert play.replica.until_logged("nodes are not to be seen")
    try:
        yield
        play.stage.kubectl.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}})
        processes.until(lambda: play.replica.metric("nodes ") >= 1, "a node in the cache", 120)
        play.replica.until_logged("nodes are to be seen again")
    finally:
        play.stage.kubectl("delete", "node", name, "--ignore-not-found")


def it_leads(play):
    play.operator("--lease", "ringmaster-operator")
    yield
    play.replica.until_logged("leading")


def it_leads_where_the_lease_was_given_back(play):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "ringmaster-operator"}}
    play.stage.kubectl.apply({**lease, "spec": {"holderIdentity": "", "leaseDurationSeconds": 1}})
    yield from it_leads(play)


def other_releases_are_seen(play):
    """One that looks after the same, and was there before, is not seen: this one acts. Once it is, this one makes room, and the next waits."""
    earlier = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
               "metadata": {"name": "earlier-operator", "labels": {"ringmaster.dev/looks-after": "namespace"}},
               "spec": {"holderIdentity": "another", "leaseDurationSeconds": 3600, "leaseTransitions": 0}}
    play.stage.kubectl.apply(earlier)
    play.operator("--lease", "ringmaster-operator")
    play.replica.until_logged("leading")
    yield
    assert play.replica.process.wait(timeout=120) == 4
    play.operator("--lease", "ringmaster-operator")
    processes.until(lambda: "earlier-operator" in play.replica.get("/readyz")[1], "it waits for the one before", 120)


SERVICE = {"apiVersion": "v1", "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 80}]}}
BUDGET = {"apiVersion": "policy/v1", "spec": {"minAvailable": 7, "selector": {"matchLabels": {"app": "theirs"}}}}
POLICY = {"apiVersion": "networking.k8s.io/v1", "spec": {"podSelector": {"matchLabels": {"app": "theirs"}}}}

unlisted = in_the_log("a list or watch failed")

# Right: where its lack is told, and a story that needs it.
STORIES = {
    "list trainingjobs": (unlisted, nothing_is_done_before_all_is_known),
    "watch trainingjobs": (unlisted, jobs_are_found),
    "delete trainingjobs": (in_the_status, a_jobs_time_to_live_has_passed),
    "update trainingjobs/status": (in_the_log_and_as_an_event, a_new_job),
    "create pods": (in_the_status, a_new_job),
    "delete pods": (in_the_status, a_job_is_suspended),
    "get pods": (in_the_status, a_pods_name_that_is_taken),
    "list pods": (unlisted, nothing_is_done_before_all_is_known),
    "watch pods": (unlisted, pods_are_followed),
    "create secrets": (in_the_status, a_new_job),
    "create events": (in_the_log("an event is lost"), a_job_has_something_to_tell),
    "patch events": (in_the_log("an event is lost"), a_job_tells_the_same_again),
    "list nodes": (unlisted, nodes_are_seen),
    "watch nodes": (unlisted, nodes_are_seen),
    "list leases": (in_the_log("leases are not to be listed"), other_releases_are_seen),
    "watch leases": (in_the_log("leases are not to be listed"), other_releases_are_seen),
    "get leases": (in_the_log("the lease"), it_leads),
    "create leases": (in_the_log("the lease"), it_leads),
    "update leases": (in_the_log("the lease"), it_leads_where_the_lease_was_given_back),
}
for _resource, _taken in (("services", a_name_that_is_taken("Service", "gpt-coordinator", **SERVICE)),
                          ("poddisruptionbudgets", a_name_that_is_taken("PodDisruptionBudget", "gpt-workers", **BUDGET)),
                          ("networkpolicies", a_name_that_is_taken("NetworkPolicy", "gpt-workers", **POLICY))):
    STORIES |= {f"create {_resource}": (in_the_status, a_new_job), f"patch {_resource}": (in_the_status, a_successor_applies_anew),
                f"get {_resource}": (in_the_status, _taken), f"list {_resource}": (unlisted, what_somebody_deletes_comes_back),
                f"watch {_resource}": (unlisted, what_somebody_deletes_comes_back)}


@pytest.fixture(name="play")
def fixture_play(stage, tmp_path, request):
    play = Play(stage, tmp_path, request.param)
    yield play
    play.somebody.close()


@pytest.mark.parametrize("play", [pytest.param(right, id=str(right).replace(" ", "-"), marks=pytest.mark.turns(number))
                                  for number, right in enumerate(CHART)], indirect=True)
def test_a_right_that_is_missing_is_told_and_all_goes_on_once_it_is_there(play):
    assert str(play.right) in STORIES, f"the chart gives the right to {play.right}: what needs it, and where is its lack told?"
    told, story = STORIES[str(play.right)]
    for _ in story(play):
        told(play)
    assert play.replica.process.poll() is None


def test_all_rights_that_have_a_story_are_in_the_chart():
    assert sorted(map(str, CHART)) == sorted(STORIES), "what the chart no longer gives has no story, and each right has one"


def test_a_right_that_is_added_to_the_manifest_is_found_and_one_that_is_not_understood_is_no_silence():
    text = rights.INSTALL.read_text(encoding="utf-8")
    more = text.replace("    resources: [nodes]\n    verbs: [", "    resources: [nodes, leaves]\n    verbs: [prune, ", 1)
    added = {rights.Right("", "leaves", verb) for verb in ("prune", "list", "watch")} | {rights.Right("", "nodes", "prune")}
    assert added <= set(rights.of_the_chart(more)) - set(CHART)
    with pytest.raises(AssertionError, match="not understood"):
        rights.of_the_chart(text.replace("    resources: [nodes]\n", "    resources:\n      - nodes\n"))
    with pytest.raises(AssertionError, match="not there"):
        rights.of_the_chart(text.replace("  name: ringmaster-operator-nodes\n", "  name: another\n"))


def test_the_rights_of_one_namespace_are_enough_and_nodes_are_not_needed(stage, tmp_path):
    somebody = rights.Somebody(stage.kubectl, tmp_path, [right for right in CHART if right.resource != "nodes"])
    operator = stage.operator("--no-lease", kubeconfig=somebody.config)
    stage.kubectl.apply(stage_rig.job("gpt"))
    stage.until_pods("worker", 3)
    assert operator.lines("nodes are not to be seen")
    stage.finish("gpt")
    assert not operator.lines("a write was refused")
    somebody.close()
