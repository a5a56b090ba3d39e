"""Every fault point of the programs, and how it is reached: what fault_test.py tries one by one.

A point with an empty list is out of reach of a whole run, which gives a fault to a first attempt only; UNIT names
the test that tries it. tests/layout holds that each FAULT("...") in the sources stands here, and nothing else."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Case:
    setting: str  # behind the name: ":N" and "@WHO"
    story: str = "busy"  # a function of fault_test.py


def busy(*settings):
    return [Case(setting) for setting in settings]


def story(name, *settings):
    return [Case(setting, name) for setting in settings or ("",)]


POINTS = {
    # snapshots of processes in a store
    "frozen-dumped": [],
    "frozen-fetched": [],
    "image-sent": [],
    "frozen-published": [],
    "frozen-read-back": [],
    # trainer: a step, from its lanes to the commit
    "lane-done": busy(":1@0", ":40@1"),
    "before-reduce": busy(":1@0", ":12@2"),
    "ring-turn": busy(":1@0", ":30@1"),
    "header-done": busy(":1@0", ":12@2") + story("pair", ":2@1", ":9@0"),
    "kept-forgotten": busy(":1@0", ":9@1") + story("pair", ":1@1", ":9@0"),
    "header-copied": busy(":1@0", ":9@1") + story("pair", ":9@1"),
    # behind the first step two a step: header, words
    "reduce-half": busy(":20@1", ":3@2", ":19@1", ":21@2") + story("pair", ":3@1", ":20@0", ":21@1"),
    "nccl-init": [],
    "nccl-sum": [],
    "nccl-turn": [],
    "nccl-abort": [],
    "after-reduce": busy(":1@0", ":11@2"),
    "words-complete": busy(":9@1"),
    "update-record": busy(":9@1"),
    "update-valid": busy(":9@1"),
    "slot-filled": busy(":40@1"),
    "slot-valid": busy(":40@1"),
    "piece-half": busy(":40@1", ":705@0", ":735@0"),  # of 29 pieces: step 25 leads to a snapshot, 26 home
    "piece-updated": busy(":40@1"),
    "piece-stamped": busy(":40@1"),
    "slot-cleared": busy(":40@1"),
    "before-commit": busy(":9@1", ":25@0", ":26@0"),
    "record-written": busy(":9@1"),
    "after-commit": busy(":9@1"),
    "sequence-evaluated": busy(":1@0", ":8@0"),
    "snapshot-taken": busy(":1@1", ":2@0"),
    "digest-made": busy("@0"),
    # trainer: its start, and where its state comes from
    "trainer-setup": busy("@0", "@2"),
    "trainer-send": busy(":1@0", ":2@1", ":9@2", ":30@0"),
    "state-laid-out": busy("@0", "@2"),
    "state-made": busy(""),
    "receive-begun": busy("@0", "@1"),
    "receive-chunk": story("waiting", ":1@3", ":2@3"),
    "received": story("waiting", "@3"),
    "receive-record": busy("@0", "@1") + story("waiting", "@3"),
    "receive-held": busy("@0", "@1") + story("waiting", "@3"),
    "transfer-chunk": story("waiting", ":1@0", ":3@0"),
    "listen-block": story("heard", ":1@2"),
    "listen-update": [],
    "listen-whole": story("heard", "@2"),
    "ring-joined": busy(":1@2", ":2@0", ":1@3"),
    "state-loaded": story("resumed"),
    "share-given": story("resumed", "@0", "@1") + story("fetched", "@1"),
    "share-chunk": story("resumed", ":1@0", ":2@1") + story("fetched", ":2@1"),
    "shares-gathered": story("resumed", "@0", "@2"),
    # trainer: only where a second trainer dies in a repair, or a whole update is caught up with
    "slot-restored": [],
    "slot-restamped": [],
    "slot-forgotten": [],
    "update-received": [],
    # agent
    "trainer-started": busy(":1@0", ":1@2"),
    "agent-send": busy(":1@0", ":2@1", ":5@2", ":20@0", ":1@3"),
    "frame-sent": busy(":1@0", ":7@1", ":25@2", ":1@coordinator", ":2@coordinator", ":8@coordinator", ":21@coordinator"),
    "listed": busy("@0", "@1"),
    "slice-asked": busy(":1@2", ":2@0") + story("bucket", ":1@2", ":2@0"),
    "slice-written": busy(":1@2", ":2@0") + story("bucket", ":1@2", ":2@0"),
    "sums-written": busy(":1@2", ":2@0") + story("bucket", ":1@2", ":2@0"),
    "slice-saved": busy(":1@2", ":2@0") + story("bucket", ":1@2", ":2@0"),
    "publish-asked": busy(":1", ":2") + story("bucket", ":1", ":2"),
    "upload-begun": busy("") + story("bucket", ":1", ":3"),
    "part-written": busy(""),
    "object-temp": busy(":1@0", ":1@2", ":4@0"),
    "config-written": busy(":1") + story("bucket", ":1"),
    "upload-whole": busy(""),
    "upload-named": busy(""),
    "model-whole": busy(":1", ":2") + story("bucket", ":1", ":2"),
    "piece-settled": busy(":1", ":3") + story("bucket", ":1", ":3"),
    "before-manifest": busy(":1", ":2") + story("bucket", ":1", ":2"),
    "after-manifest": busy(":1", ":2") + story("bucket", ":1", ":2"),
    "published": busy(":1", ":2") + story("bucket", ":1", ":2"),
    "read-back": busy(":1") + story("bucket", ":1"),
    "before-delete": busy(":1") + story("bucket", ":1"),
    "file-removed": busy(":1", ":3") + story("anew", ":1", ":4", ":7"),
    "share-planned": story("resumed", "@0", "@1") + story("fetched", "@0", "@1"),
    "checkpoint-loaded": story("resumed") + story("fetched"),
    "agent-end": busy("@0", "@3"),
    # coordinator
    "coordinator-heard": busy(":1", ":2", ":4", ":30"),
    "coordinator-send": busy(":1", ":2", ":4", ":5", ":9", ":14", ":22"),
    "coordinator-told": busy(":1", ":2", ":3", ":20", ":60"),
    "coordinator-end": busy(""),
    # run
    "folder-locked": story("alone"),
    "coordinator-started": story("alone"),
    "worker-started": story("alone", ":1", ":3", ":4"),
    "newcomer-expected": story("alone"),
    "drill-told": story("alone", ":1"),
    "worker-ended": story("alone", ":1"),
    "event-shown": story("alone", ":1", ":3", ":30", ":90"),
    "run-ending": story("alone"),
    "file-verified": story("again", ":1", ":3"),
    "damage-marked": story("damaged"),
    # generate
    "model-read": story("generated"),
    "token-said": story("generated", ":1", ":5"),
    # operator: on a cluster alone
    "operator-write": [],
    "operator-answered": [],
    # data index: a command, and no run
    "index-begun": [],
}

# Where a bit may flip (FAULT_FLIP): what proof_test.py tries one by one, in a run of three workers.
FLIPS = {
    "words-added": (":9@1",),  # this worker's own sums, before they leave
    "state-rests": (":9@1",),  # the weights between two steps
    "block-received": (":1@0", ":30@1", ":31@2"),  # on its way to be added: two of each reduction
    "array-received": (":1@3", ":3@3"),  # of a state, behind its checksums: the newcomer's, once for each array
    "chunk-received": (":1@1",),  # likewise, its exponents
    "sum-received": (":1@0", ":30@1", ":31@2"),  # on its way to be taken as it is
}

UNIT = {
    "frozen-dumped": "tests/e2e/pod_frozen_test.py",
    "frozen-fetched": "tests/e2e/pod_frozen_test.py",
    "image-sent": "tests/unit/common/storage/checkpoint/frozen_crash_test.c",
    "frozen-published": "tests/unit/common/storage/checkpoint/frozen_crash_test.c",
    "frozen-read-back": "tests/unit/common/storage/checkpoint/frozen_crash_test.c",
    "nccl-init": "tests/e2e/nccl_test.py",
    "nccl-sum": "tests/e2e/nccl_test.py",
    "nccl-turn": "tests/e2e/nccl_test.py",
    "nccl-abort": "tests/e2e/nccl_test.py",
    "slot-restored": "tests/unit/trainer/state/torn_test.c",
    "slot-restamped": "tests/unit/trainer/state/torn_test.c",
    "slot-forgotten": "tests/unit/trainer/state/torn_test.c",
    "update-received": "tests/unit/trainer/trainer_test.c",
    "listen-update": "tests/unit/trainer/listening_test.c",
    "index-begun": "tests/unit/common/storage/data/index_test.c",
    "operator-write": "tests/cluster/api_test.py",
    "operator-answered": "tests/cluster/api_test.py",
}

CASES = [(point, case) for point, cases in POINTS.items() for case in cases]
