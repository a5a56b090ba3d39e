"""The CRD on a real API server: what it refuses and with which words, what it fills in, what may change and when."""

import copy
import json

import pytest
import rig
from operator_rig import CRD

ANNOTATION_BYTES_MAX = 256 * 1024


@pytest.fixture(name="jobs", scope="module")
def fixture_jobs(api_cluster):
    """kubectl in a namespace of its own, once the server knows TrainingJobs."""
    everywhere = rig.Kubectl(api_cluster)
    everywhere("apply", "-f", str(CRD))
    everywhere.until_served()
    yield rig.make_namespace(api_cluster, "crd-test")
    everywhere("delete", "namespace", "crd-test", "--wait=false")


def job(name="tiny", **changes):
    """A valid job; 'trainer__steps=0' sets spec.trainer.steps, ... takes a field away."""
    made = {"apiVersion": "ringmaster.dev/v1alpha1", "kind": "TrainingJob", "metadata": {"name": name}, "spec": {
        "workers": {"target": 3, "min": 2, "max": 5, "template": {"spec": {"containers": [{"name": "trainer", "image": "x"}]}}},
        "trainer": {"model": {"layers": 2, "heads": 2, "width": 64, "context": 64}, "data": {"uri": "s3://data/books"},
                    "batch": {"lanes": 8}, "steps": 100},
        "checkpoint": {"uri": "s3://data/runs/tiny", "secretRef": {"name": "s3"}}}}
    for path, value in changes.items():
        *groups, last = path.split("__")
        place = made["spec"]
        for group in groups:
            place = place.setdefault(group, {})
        if value is ...:
            place.pop(last)
        else:
            place[last] = copy.deepcopy(value)
    return made


def program(name="tiny", **changes):
    """The same job with a program in the trainer's place, which keeps what it needs by itself."""
    return job(name, **{"trainer": ..., "checkpoint": ..., "launch": {"command": ["sh", "-c", "train"], "mode": "Restart"}, **changes})


def elastic(name="tiny", **changes):
    """The same of a program that stays."""
    return program(name, **{"launch": {"command": ["sh", "-c", "train"], "mode": "Elastic", "steps": 100},
                            "checkpoint": {"uri": "s3://data/runs/tiny", "secretRef": {"name": "s3"}}, **changes})


def create(kubectl, made, dry=True):
    return kubectl("create", "-f", "-", *(["--dry-run=server"] if dry else []), "-o", "json", stdin=json.dumps(made))


def complaint(call):
    """What the server has against it."""
    with pytest.raises(RuntimeError) as why:
        call()
    return str(why.value)


SIDECAR = {"spec": {"containers": [{"name": "sidecar", "image": "x"}]}}

INVALID = [
    # name and required fields
    ({"name": "a" * 41}, "metadata.name must be lower-case letters, digits and -, a letter first, 40 characters at most"),
    ({"name": "1st"}, "metadata.name must be lower-case letters"),
    ({"name": "a.b"}, "metadata.name must be lower-case letters"),
    ({"workers__target": ...}, "spec.workers.target: Required value"),
    ({"workers__template": ...}, "spec.workers.template: Required value"),
    ({"trainer__model": ...}, "spec.trainer.model: Required value"),
    ({"trainer__data__uri": ...}, "spec.trainer.data.uri: Required value"),
    ({"trainer__steps": ...}, "spec.trainer.steps: Required value"),
    ({"checkpoint__uri": ...}, "spec.checkpoint.uri: Required value"),
    ({"checkpoint": ...}, "set checkpoint.uri, where the training's state is kept; only a program in mode Restart can do without"),
    ({"trainer": ...}, "set one of trainer (the built-in trainer) and launch (a program of yours), and not both"),
    ({"launch": {"command": ["a"], "mode": "Restart"}}, "set one of trainer (the built-in trainer) and launch"),
    ({"checkpoint__secretRef": {}}, "spec.checkpoint.secretRef.name: Required value"),
    # workers
    ({"workers__target": 0}, "should be greater than or equal to 1"),
    ({"workers__target": 65, "workers__max": ..., "trainer__batch__lanes": 65}, "should be less than or equal to 64"),
    ({"workers__min": 4}, "workers.min is more than workers.target; lower it or raise the target"),
    ({"workers__target": 6}, "workers.target is more than workers.max; lower the target (max can't change)"),
    ({"workers__max": 9}, "workers.max is more than trainer.batch.lanes"),
    ({"workers__max": ..., "workers__target": 9}, "workers.target is more than trainer.batch.lanes"),
    ({"workers__template": SIDECAR}, "name one of the containers trainer; it runs the training"),
    ({"workers__template": {"spec": {"containers": [{"name": "trainer"}, {"name": "trainer"}]}}}, "Duplicate value"),
    ({"workers__template": {"spec": {"containers": []}}}, "should have at least 1 items"),
    # the model and its data
    ({"trainer__model": {"layers": 2}}, "set preset, or layers, heads, width and context"),
    ({"trainer__model": {"preset": "gpt5"}}, 'supported values: "gpt2-124m"'),
    ({"trainer__model__heads": 3}, "heads must divide width; choose a divisor of it"),
    ({"trainer__model__layers": 97}, "should be less than or equal to 96"),
    ({"trainer__model__vocabulary": 100}, "text has 256 kinds of bytes; set model.vocabulary to 256 or more, or leave it out"),
    ({"trainer__data__format": "Tokens16"}, "set model.vocabulary to the number of tokens that the tokenizer of the shards has"),
    ({"trainer__data__format": "Words"}, "Unsupported value"),
    ({"trainer__data__uri": "books"}, "write s3://bucket/prefix, or file:///path with a volume of the template mounted there"),
    ({"trainer__data__uri": "https://books"}, "write s3://bucket/prefix"),
    ({"trainer__data__endpoint": "minio:9000"}, "write http(s)://host[:port]"),
    ({"trainer__data__cache": "s3://cache"}, "write file:///path, a folder of the pod"),
    ({"trainer__data__cacheBytes": 1}, "should be greater than or equal to 1048576"),
    ({"trainer__data__tokenizer": "gpt2/tokenizer.json"}, "write s3://bucket/prefix/tokenizer.json, or file:///path with a volume"),
    ({"trainer__data__listing": "abc"}, "should match"),
    ({"trainer__data__trust": "times"}, 'supported values: "Content", "Share", "Times"'),
    ({"trainer__data__hash": "Root"}, 'supported values: "Tree", "Chain"'),
    ({"trainer__batch__lanes": 1025}, "should be less than or equal to 1024"),
    # numbers of the training
    ({"trainer__steps": 0}, "should be greater than or equal to 1"),
    ({"trainer__steps": "100"}, "must be of type integer"),
    ({"trainer__seed": -1}, "should be greater than or equal to 0"),
    ({"trainer__optimizer__learningRate": -1}, "should be greater than or equal to 0"),
    ({"trainer__optimizer__minLearningRate": 1}, "optimizer.minLearningRate is more than optimizer.learningRate; lower it"),
    ({"trainer__optimizer__warmupSteps": 101}, "optimizer.warmupSteps is more than steps; shorten the warm-up"),
    ({"trainer__optimizer__schedule": "linear"}, "Unsupported value"),
    ({"trainer__optimizer__beta1": 1}, "write a number from 0 to 0.9999999"),
    ({"trainer__optimizer__name": "sgd"}, "Unsupported value"),
    ({"trainer__precision": "fp16"}, "Unsupported value"),
    ({"trainer__reduction": "exactly"}, "Unsupported value"),
    ({"trainer__threads": 0}, "write Auto, or a whole number from 1 to 1024"),
    ({"trainer__threads": "auto"}, "write Auto, or a whole number from 1 to 1024"),
    ({"trainer__isa": "AVX3"}, "Unsupported value"),
    ({"trainer__device": "cuda"}, "Unsupported value"),
    ({"trainer__device": "gpu"}, "device is gpu, which computes in bf16 so far; set precision to bf16"),
    ({"trainer__evaluation__holdOut": 1}, "write a number from 0 to 0.5"),
    ({"trainer__evaluation__everySteps": 10}, "evaluation.holdOut is 0, so there is nothing to evaluate on"),
    # checkpoints and times
    ({"checkpoint__uri": "runs"}, "write s3://bucket/prefix, or file:///path"),
    ({"checkpoint__every": "10"}, "should match"),
    ({"checkpoint__every": "100ms"}, "write Auto, or a time from 1s to 8760h"),
    ({"checkpoint__every": "auto"}, "should match"),
    ({"checkpoint__every": "Auto", "checkpoint__everySteps": 5}, "everySteps is set beside every: Auto"),
    ({"checkpoint__every": "Auto", "checkpoint__maxLoss": "59s"}, "write a time from 1m to 8760h"),
    ({"checkpoint__maxLoss": "0s"}, "write a time from 1m to 8760h"),
    ({"checkpoint__maxLoss": "Auto"}, "should match"),
    ({"checkpoint__resume": "Maybe"}, "Unsupported value"),
    ({"checkpoint__keep": 0}, "should be greater than or equal to 1"),
    ({"elasticity__lostAfter": "1s"}, "elasticity.lostAfter must be twice elasticity.heartbeat or more"),
    ({"elasticity__joinWindow": "2h"}, "write Auto, or a time from 1ms to 1h"),
    ({"elasticity__stepTimeout": "never"}, "should match"),
    ({"elasticity__stepTimeout": "25h"}, "write Auto, or a time from 1s to 24h"),
    ({"elasticity__scaleUpCooldown": "48h"}, "write a time from 0s to 24h"),
    ({"checkpoint__process": "criu"}, "Unsupported value"),
    ({"checkpoint__process": "CRIU"}, "checkpoint.process: CRIU is for programs that save nothing"),
    ({"checkpoint__process": "CRIU", "checkpoint__everySteps": 5}, "everySteps is set beside process: CRIU"),
    ({"checkpoint__processPaths": ["/tmp/work"]}, "processPaths and processKeyRef do nothing without process: CRIU"),
    ({"checkpoint__processKeyRef": {"name": "older"}}, "processPaths and processKeyRef do nothing without process: CRIU"),
    ({"checkpoint__process": "CRIU", "checkpoint__processPaths": ["tmp"]}, "should match"),
    # the rest
    ({"managedBy": "me"}, "should match"),
    ({"failurePolicy__maxRestarts": 1001}, "should be less than or equal to 1000"),
    ({"failurePolicy__rules": [{"onExitCodes": [0], "action": "FailJob"}]}, "should be greater than or equal to 1"),
    ({"failurePolicy__rules": [{"onExitCodes": [3], "action": "Ignore"}]}, "Unsupported value"),
    ({"scheduling__disruptionBudget": "Never"}, "Unsupported value"),
    ({"spot": {"onDemandFallback": {"afterInterruptions": 1001}}}, "should be less than or equal to 1000"),
    ({"spot": {"onDemandFallback": {"within": "1s"}}}, "write a time from 1m to 24h"),
    ({"spot": {"onDemandFallback": {"until": "25h"}}}, "write a time from 1m to 24h"),
    ({"spot__onDemandBase": 65}, "should be less than or equal to 64"),
    ({"scheduling__surge": 9}, "should be less than or equal to 8"),
    ({"cost": {"budget": {"limit": 1000000001}}}, "should be less than or equal to"),
    ({"cost": {"idleAfter": "0s"}}, "write a time from 1s to 720h"),
    ({"cost": {"idleAfter": "soon"}}, "should match"),
    ({"spot": {"price": {"currency": "USD"}}}, "spot.price needs spot, onDemand or both"),
    ({"activeDeadlineSeconds": 0}, "should be greater than or equal to 1"),
    ({"ttlSecondsAfterFinished": -1}, "should be greater than or equal to 0"),
    ({"cleanPodPolicy": "Some"}, "Unsupported value"),
]


@pytest.mark.parametrize("changes, sentence", INVALID, ids=lambda value: json.dumps(value, default=lambda _: "-") if isinstance(value, dict) else "")
def test_an_invalid_job_is_refused_with_what_to_do(jobs, changes, sentence):
    changes = dict(changes)
    said = complaint(lambda: create(jobs, job(changes.pop("name", "tiny"), **changes)))
    assert sentence in said


MACHINES_DIFFER = "write a whole number from 1 to 64; what auto, cpu and gpu stand for differs from machine to machine"

INVALID_PROGRAMS = [
    ({"launch__command": ...}, "spec.launch.command: Required value"),
    ({"launch__command": "train"}, "must be of type array"),
    ({"launch__command": []}, "should have at least 1 items"),
    ({"launch__command": ["a"] * 65}, "must have at most 64 items"),
    ({"launch__command": ["a" * 4096]}, "may not be more than 4095"),
    ({"launch__mode": ...}, "spec.launch.mode: Required value"),
    ({"launch__mode": "Command"}, 'supported values: "Restart", "Elastic"'),
    ({"launch__numProcPerNode": 0}, MACHINES_DIFFER),
    ({"launch__numProcPerNode": 65}, MACHINES_DIFFER),
    ({"launch__numProcPerNode": "gpu"}, MACHINES_DIFFER),
    ({"launch__numProcPerNode": "4"}, MACHINES_DIFFER),
    ({"spot__leadTime": "2h"}, "write a time from 1s to 1h"),
    ({"launch__gracePeriod": "2h"}, "write a time from 0s to 1h"),
    ({"launch__gracePeriod": "soon"}, "should match"),
    ({"launch__preload": ["torch", "a b"]}, "should match"),
    ({"launch__preload": "torch"}, "must be of type array"),
    ({"launch__preload": ["a"] * 17}, "must have at most 16 items"),
    ({"checkpoint": {"everySteps": 5}}, "spec.checkpoint.uri: Required value"),
    ({"checkpoint": {"keep": 1}}, "spec.checkpoint.uri: Required value"),
    ({"checkpoint": {"resume": "Never"}}, "spec.checkpoint.uri: Required value"),
    ({"workers__template": {"spec": {"containers": [{"name": "trainer"}]}}}, "name the image of container trainer in workers.template"),
    ({"workers__target": 65, "workers__max": ...}, "should be less than or equal to 64"),
]


@pytest.mark.parametrize("changes, sentence", INVALID_PROGRAMS, ids=lambda value: json.dumps(value, default=lambda _: "-")[:60] if isinstance(value, dict) else "")
def test_an_invalid_job_of_a_program_is_refused_with_what_to_do(jobs, changes, sentence):
    assert sentence in complaint(lambda: create(jobs, program(**changes)))


OF_ELASTIC = "steps, seed and batch belong to mode Elastic; a program in mode Restart knows best itself, so leave them out"

INVALID_ELASTIC = [
    ({"launch__steps": ...}, "set steps, of the whole training; mode Elastic has them"),
    ({"launch__steps": 0}, "should be greater than or equal to 1"),
    ({"launch__seed": -1}, "should be greater than or equal to 0"),
    ({"launch__batch": {"lanes": 1025}}, "should be less than or equal to 1024"),
    ({"launch__batch": {"laneSequences": 0}}, "should be greater than or equal to 1"),
    ({"launch__batch": {"lanes": 4}}, "workers.target or workers.max is more than launch.batch.lanes"),
    ({"launch__batch": {"lanes": 2}, "workers__max": ...}, "workers.target or workers.max is more than launch.batch.lanes"),
    ({"launch__numProcPerNode": 2}, "numProcPerNode is 1 in mode Elastic, where a worker is one process; give each process a pod, or use Restart"),
    ({"launch__preload": ["torch"]}, "preload means nothing in mode Elastic, whose processes stay; leave it out"),
    ({"checkpoint": ...}, "set checkpoint.uri, where the training's state is kept; only a program in mode Restart can do without"),
    ({"launch__mode": "Restart"}, OF_ELASTIC),
    ({"launch__mode": "Restart", "launch__steps": ..., "launch__seed": 3}, OF_ELASTIC),
    ({"launch__mode": "Restart", "launch__steps": ..., "launch__batch": {"lanes": 8}}, OF_ELASTIC),
    ({"trainer": job()["spec"]["trainer"]}, "set one of trainer (the built-in trainer) and launch"),
]


@pytest.mark.parametrize("changes, sentence", INVALID_ELASTIC, ids=lambda value: json.dumps(value, default=lambda _: "-")[:60] if isinstance(value, dict) else "")
def test_an_invalid_job_of_a_program_that_stays_is_refused_with_what_to_do(jobs, changes, sentence):
    assert sentence in complaint(lambda: create(jobs, elastic(**changes)))


@pytest.mark.parametrize("field, made", [("queueName", job(queueName={})), ("sizes", job(sizes={}))],
                         ids=lambda value: value if isinstance(value, str) else "")
def test_a_field_that_does_not_work_yet_is_not_taken(jobs, field, made):
    said = complaint(lambda: jobs("create", "--dry-run=server", "--validate=strict", "-f", "-", stdin=json.dumps(made)))
    assert f'unknown field "spec.{field}"' in said


FILLED_IN = {
    "managedBy": "ringmaster.dev/operator", "suspend": False, "cleanPodPolicy": "Running",
    "workers": {"min": 1},
    "trainer": {"batch": {"lanes": 64, "laneSequences": 1}, "data": {"format": "Auto", "trust": "Content", "hash": "Tree", "cacheBytes": 8 << 30}, "seed": 1, "precision": "fp32",
                "optimizer": {"name": "adamw", "learningRate": 6e-4, "minLearningRate": 0, "warmupSteps": 0, "schedule": "cosine",
                              "weightDecay": 0.1, "clipNorm": 1, "beta1": 0.9, "beta2": 0.95, "epsilon": 1e-8},
                "recompute": False, "reduction": "exact", "allowMixedHardware": False, "isa": "Auto", "device": "auto", "threads": "Auto",
                "ringStreams": "Auto",
                "evaluation": {"everySteps": 0, "sequences": 256, "holdOut": 0}},
    "checkpoint": {"resume": "Auto", "everySteps": 0, "endTimeout": "10m", "keep": 3, "hash": "xxh3", "maxLoss": "30m", "onPreemption": True, "process": "None"},
    "elasticity": {"joinWindow": "Auto", "heartbeat": "1s", "lostAfter": "5s", "formTimeout": "10s", "startTimeout": "5m", "stepTimeout": "Auto",
                   "scaleUpCooldown": "0s"},
    "failurePolicy": {"maxRestarts": 5, "within": "1h"},
}


def merged(one, other):
    """One object with what the other has beside it; no field stands in both."""
    return {key: merged(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key)) for key in one.keys() | other.keys()}


def test_what_is_left_out_is_filled_in_and_nothing_else_is(jobs):
    """A job with what it has to have: max, every, secretRef and what else is not in the table stay away."""
    least = job(workers__min=..., workers__max=..., trainer__batch=..., checkpoint__secretRef=...)
    assert json.loads(create(jobs, least))["spec"] == merged(least["spec"], FILLED_IN)


def test_of_a_program_what_is_left_out_is_filled_in_and_no_trainer_comes_with_it(jobs):
    least = program(workers__min=..., workers__max=...)
    filled = {key: value for key, value in FILLED_IN.items() if key not in ("trainer", "checkpoint")}
    filled["launch"] = {"numProcPerNode": 1, "gracePeriod": "30s", "tellOutput": True}
    assert json.loads(create(jobs, least))["spec"] == merged(least["spec"], filled)


@pytest.mark.parametrize("batch, filled", [(None, None), ({}, {"lanes": 64, "laneSequences": 1}), ({"lanes": 8}, {"lanes": 8, "laneSequences": 1})])
def test_of_a_program_that_stays_the_batch_is_filled_in_where_there_is_one(jobs, batch, filled):
    made = json.loads(create(jobs, elastic(**({} if batch is None else {"launch__batch": batch}))))["spec"]
    assert made["launch"] == {"command": ["sh", "-c", "train"], "mode": "Elastic", "steps": 100, "numProcPerNode": 1, "gracePeriod": "30s",
                              "tellOutput": True, **({} if batch is None else {"batch": filled})}
    assert made["checkpoint"] == {"uri": "s3://data/runs/tiny", "secretRef": {"name": "s3"}, **FILLED_IN["checkpoint"]}


def test_a_template_keeps_what_the_crd_does_not_know(jobs):
    template = {"metadata": {"labels": {"team": "a"}}, "spec": {"nodeSelector": {"gpu": "h100"}, "hostUsers": False, "containers": [
        {"name": "trainer", "image": "x", "resources": {"limits": {"nvidia.com/gpu": 1}}, "env": [{"name": "A", "value": "b"}]}]}}
    assert json.loads(create(jobs, job(workers__template=template)))["spec"]["workers"]["template"] == template


@pytest.fixture(name="made")
def fixture_made(jobs):
    """Makes a job and gives its name; deleted afterwards."""
    names = []

    def make(of=job, **changes):
        name = f"made-{len(names)}"
        create(jobs, of(name, **changes), dry=False)
        names.append(name)
        return name

    yield make
    for name in names:
        jobs("delete", "tj", name)


def patch(kubectl, name, spec):
    return kubectl("patch", "tj", name, "--type=merge", "-p", json.dumps({"spec": spec}))


TEMPLATE = {"template": {"spec": {"nodeSelector": {"a": "b"}}}}

NEVER = [
    ({"trainer": {"steps": 200}}, "spec.trainer can't change, the checkpoints were made with it; make a new job"),
    ({"trainer": {"optimizer": {"beta1": 0.8}}}, "spec.trainer can't change"),
    ({"trainer": {"data": {"uri": "s3://other/data"}}}, "spec.trainer can't change"),
    ({"trainer": {"recompute": True}}, "spec.trainer can't change"),
    ({"checkpoint": {"uri": "s3://other/runs"}}, "spec.checkpoint.uri can't change, the checkpoints are there; make a new job"),
    ({"managedBy": "other.dev/operator"}, "spec.managedBy can't change; make a new job"),
    ({"workers": {"max": 6}}, "spec.workers.max can't change; make a new job"),
    ({"workers": {"max": None}}, "spec.workers.max can't change; make a new job"),
]
SUSPENDED = [
    ({"workers": {"min": 1}}, "spec.workers.min can only change while spec.suspend is true; suspend the job first"),
    ({"workers": TEMPLATE}, "spec.workers.template can only change while spec.suspend is true; suspend the job first"),
    ({"coordinator": TEMPLATE}, "spec.coordinator can only change while spec.suspend is true; suspend the job first"),
    ({"trainer": {"threads": 3}}, "of spec.trainer only threads, ringStreams, isa, allowMixedHardware"),
    ({"trainer": {"ringStreams": 2}}, "and only while spec.suspend is true; suspend the job first"),
    ({"trainer": {"isa": "AVX2"}}, "and only while spec.suspend is true; suspend the job first"),
    ({"trainer": {"allowMixedHardware": True}}, "of spec.trainer only"),
    ({"trainer": {"device": "cpu"}}, "of spec.trainer only"),
    ({"trainer": {"data": {"endpoint": "http://other:9000"}}}, "of spec.trainer only"),
    ({"trainer": {"data": {"region": "eu-west-1"}}}, "of spec.trainer only"),
    ({"trainer": {"data": {"cache": "file:///big/disk", "cacheBytes": 1 << 30}}}, "of spec.trainer only"),
    ({"elasticity": {"lostAfter": "9s"}}, "spec.elasticity can only change while spec.suspend is true; suspend the job first"),
    ({"checkpoint": {"everySteps": 7}}, "spec.checkpoint can only change while spec.suspend is true; suspend the job first"),
    ({"checkpoint": {"secretRef": {"name": "other"}}}, "spec.checkpoint can only change while spec.suspend is true"),
]
ALWAYS = [
    {"suspend": True}, {"workers": {"target": 4}}, {"failurePolicy": {"maxRestarts": 9}}, {"spot": {"prefer": True}},
    {"spot": {"leadTime": "15s"}}, {"spot": {"onDemandBase": 1}},
    {"spot": {"onDemandFallback": {"afterInterruptions": 3, "within": "10m", "until": "2h"}}},
    {"spot": {"price": {"spot": 1.5, "onDemand": 4, "currency": "USD"}}}, {"cost": {"budget": {"limit": 12.5, "warnAt": 0.9}}}, {"cost": {"idleAfter": "30m"}},
    {"activeDeadlineSeconds": 60}, {"ttlSecondsAfterFinished": 1}, {"cleanPodPolicy": "All"}, {"scheduling": {"disruptionBudget": "None"}},
    {"scheduling": {"surge": 0}},
]


@pytest.mark.parametrize("change, sentence", NEVER + SUSPENDED, ids=lambda value: json.dumps(value) if isinstance(value, dict) else "")
def test_a_running_job_refuses_the_change(jobs, made, change, sentence):
    name = made()
    assert sentence in complaint(lambda: patch(jobs, name, change))


@pytest.mark.parametrize("change, sentence", NEVER, ids=lambda value: json.dumps(value) if isinstance(value, dict) else "")
def test_even_a_suspended_job_refuses_what_makes_it_another(jobs, made, change, sentence):
    name = made(suspend=True)
    assert sentence in complaint(lambda: patch(jobs, name, change))


NEVER_OF_A_PROGRAM = [
    ({"launch": {"command": ["other"]}}, "spec.launch can't change, all processes of a job run one program; make a new job"),
    ({"launch": {"numProcPerNode": 2}}, "spec.launch can't change"),
    ({"launch": {"tellOutput": False}}, "spec.launch can't change"),
    ({"launch": None, "trainer": job()["spec"]["trainer"], "checkpoint": job()["spec"]["checkpoint"]}, "spec.launch can't change"),
    ({"checkpoint": {"uri": "s3://data/runs"}}, "spec.checkpoint.uri can't change"),
]


@pytest.mark.parametrize("suspended", [False, True], ids=["running", "suspended"])
@pytest.mark.parametrize("change, sentence", NEVER_OF_A_PROGRAM, ids=lambda value: json.dumps(value)[:60] if isinstance(value, dict) else "")
def test_a_job_of_a_program_refuses_what_makes_it_another(jobs, made, change, sentence, suspended):
    name = made(program, suspend=suspended)
    assert sentence in complaint(lambda: patch(jobs, name, change))


NEVER_OF_ONE_THAT_STAYS = [
    ({"launch": {"steps": 200}}, "spec.launch can't change, all processes of a job run one program; make a new job"),
    ({"launch": {"seed": 2}}, "spec.launch can't change"),
    ({"launch": {"batch": {"lanes": 16}}}, "spec.launch can't change"),
    ({"launch": {"batch": None}}, "spec.launch can't change"),
    ({"launch": {"mode": "Restart", "steps": None, "batch": None}}, "spec.launch can't change"),
    ({"checkpoint": {"uri": "s3://other/runs"}}, "spec.checkpoint.uri can't change"),
    ({"checkpoint": None}, "spec.checkpoint.uri can't change"),
]


def test_a_job_of_a_program_that_stays_refuses_what_makes_it_another_even_suspended(jobs, made):
    name = made(elastic, suspend=True, launch__batch={"lanes": 8})
    for change, sentence in NEVER_OF_ONE_THAT_STAYS:
        assert sentence in complaint(lambda change=change: patch(jobs, name, change)), change


def test_the_modules_that_a_program_has_imported_ahead_are_taken(jobs, made):
    assert made(program, launch__preload=["torch", "torch.utils.data"])


def test_a_job_of_a_program_takes_what_any_job_takes(jobs, made):
    running, suspended, with_a_store = made(program), made(program, suspend=True), made(program, suspend=True, checkpoint={"uri": "s3://data/runs"})
    stays = made(elastic)
    for change in ALWAYS:
        assert "patched" in patch(jobs, running, change)
        assert "patched" in patch(jobs, stays, change)
    for change in ({"workers": {"min": 1}}, {"elasticity": {"joinWindow": "1m"}}, {"workers": TEMPLATE}, {"suspend": False}):
        assert "patched" in patch(jobs, suspended, change)
    assert "patched" in patch(jobs, with_a_store, {"checkpoint": {"everySteps": 7}})


def test_a_suspended_job_may_be_changed_and_go_on(jobs, made):
    name = made(suspend=True)
    for change, _ in SUSPENDED:
        assert "patched" in patch(jobs, name, change)
    assert "patched" in patch(jobs, name, {"suspend": False})
    assert "suspend the job first" in complaint(lambda: patch(jobs, name, {"workers": {"min": 2}}))


def test_a_running_job_takes_what_may_change_at_any_time(jobs, made):
    name = made()
    for change in ALWAYS:
        assert "patched" in patch(jobs, name, change)


def test_a_running_job_of_before_may_be_put_anew_by_a_manifest_that_says_nothing_of_the_join_window(jobs, made):
    """Its default was 10s, is Auto now, and means the same."""
    name, other = made(elasticity={"joinWindow": "10s"}), made(elasticity={"joinWindow": "20s"})
    both = {"elasticity": {"joinWindow": "Auto", "lostAfter": "9s"}}
    for job_name, change in ((name, both), (other, {"elasticity": {"joinWindow": "Auto"}})):
        assert "spec.elasticity can only change while spec.suspend is true" in complaint(lambda: patch(jobs, job_name, change))
    assert "patched" in patch(jobs, name, {"elasticity": {"joinWindow": "Auto"}})


def test_kubectl_scale_reads_and_sets_the_target_within_its_bounds(jobs, made):
    name = made()
    jobs("patch", "tj", name, "--subresource=status", "--type=merge", "-p",
         json.dumps({"status": {"workers": {"current": 3, "selector": "a=b"}}}))
    jobs("scale", f"tj/{name}", "--replicas=5")
    assert jobs.get("tj", name)["spec"]["workers"]["target"] == 5
    assert "workers.target is more than workers.max" in complaint(lambda: jobs("scale", f"tj/{name}", "--replicas=6"))
    assert "workers.min is more than workers.target" in complaint(lambda: jobs("scale", f"tj/{name}", "--replicas=1"))
    scale = json.loads(jobs("get", "--raw", f"/apis/ringmaster.dev/v1alpha1/namespaces/crd-test/trainingjobs/{name}/scale"))
    assert scale["status"] == {"replicas": 3, "selector": "a=b"}


def test_columns_of_what_a_program_does_not_tell_are_empty(jobs, made):
    name = made(program)
    jobs("patch", "tj", name, "--subresource=status", "--type=merge", "-p",
         json.dumps({"status": {"state": "Running", "columns": {"workers": "3/3", "interruptions": 0}}}))
    head, line = jobs("get", "tj", name).splitlines()
    assert line[head.index("PROGRESS"):head.index("INTERRUPTIONS")].strip() == ""


def test_kubectl_get_shows_the_columns(jobs, made):
    name = made()
    status = {"state": "Training", "columns": {"workers": "3/3", "progress": "40%", "eta": "1h25m", "interruptions": 4, "restarts": 2, "cost": "12.34"},
              "progress": {"step": 812, "loss": "2.1043", "heldOutLoss": "2.25", "gradientNorm": "0.842", "clipFactor": "1",
                           "learningRate": "0.0006", "tokensPerSecond": 81234, "samplesPerSecond": 12}, "goodput": {"ratio": "0.962"},
              "ring": {"generation": 7}, "message": "worker 3 has been Pending for 42 s"}
    jobs("patch", "tj", name, "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
    lines = jobs("get", "tj", name).splitlines()
    assert lines[0].split() == ["NAME", "STATE", "WORKERS", "PROGRESS", "STEP", "LOSS", "ETA", "INTERRUPTIONS", "RESTARTS", "GOODPUT", "COST", "AGE"]
    assert lines[1].split()[:-1] == [name, "Training", "3/3", "40%", "812", "2.1043", "1h25m", "4", "2", "0.962", "12.34"]
    wide = jobs("get", "tj", name, "-o", "wide").splitlines()
    assert wide[0].split()[-7:] == ["CHECKPOINT", "HEARD", "GENERATION", "TOKENS/S", "SAMPLES/S", "STEPS/S", "MESSAGE"]
    assert wide[1].endswith(status["message"])
    kept = json.loads(jobs("get", "tj", name, "-o", "json"))["status"]["progress"]
    assert kept == status["progress"], "what the schema does not name is dropped"


def test_kubectl_apply_can_keep_the_crd_in_its_annotation(jobs):
    crd = jobs.get("crd", "trainingjobs.ringmaster.dev")
    assert len(crd["metadata"]["annotations"]["kubectl.kubernetes.io/last-applied-configuration"]) < ANNOTATION_BYTES_MAX
    assert "Workers that the job should have" in jobs("explain", "tj.spec.workers.target")
