"""Seeded faults between checkpoints and their store: see tests/object_rig/scripts.py for what has to hold.

tools/store_faults runs any number of seeds; these are the ones that every check tries."""

import concurrent.futures

import pytest

import rig
from s3_rig import faults, proxy, scripts, servers

TOOL = rig.BIN.parent / "tests/checkpoint_tool"
SEEDS_AT_ONCE = 5


@pytest.mark.sanitized
@pytest.mark.turns
@pytest.mark.parametrize("first", range(1, 41, SEEDS_AT_ONCE))
def test_saves_and_loads_hold_whatever_the_store_does(s3_server, first):
    """Together, because a script is mostly waiting: for a silence to end, for the next try."""
    with concurrent.futures.ThreadPoolExecutor(SEEDS_AT_ONCE) as pool:
        for done in [pool.submit(scripts.run_seed, s3_server, servers.BUCKET, TOOL, seed)
                     for seed in range(first, first + SEEDS_AT_ONCE)]:
            done.result()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 7))
def test_a_whole_run_gets_to_the_same_weights_whatever_the_store_does(tmp_path, finish, s3, reference, seed):
    """Faults as long as it goes well; where it ends, the next run has none in its way."""
    between = proxy.Proxy(s3.server, faults.Seeded(seed, s3.prefix, silence_s=0.5))
    fields = {"trainer__steps": 60, "checkpoint__everySteps": 10, "checkpoint__uri": s3.uri}
    try:
        run = finish(rig.make_job(tmp_path / "one", workers__target=2, **fields), env=between.environment)
    finally:
        between.stop()
    assert run.code in (0, 4), run.tail()
    saved = [event["step"] for event in run.of("checkpointSaved")]
    again = finish(rig.make_job(tmp_path / "two", workers__target=3, **fields), env=s3.env)
    assert again.code == 0, again.tail()
    if saved and saved[-1] < 60:
        assert again.the("resumed")["step"] >= saved[-1], again.tail()
    assert again.the("complete")["weightsSha256"] == reference(trainer__steps=60)[0]
