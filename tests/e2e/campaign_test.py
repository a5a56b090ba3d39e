"""Sixty histories that `run` draws from a seed, all kinds of drills in them: one hash. tools/campaign runs any number."""

import pytest

import histories
import rig

COUNTED = {"kill", "trainer", "term", "join", "stop", "hang", "coordinator"}


@pytest.fixture(name="expected", scope="module")
def undisturbed(tmp_path_factory):
    runs = []

    def launch(job, *arguments):
        runs.append(rig.Run(job, *arguments))
        return runs[-1]

    yield histories.expect(launch, tmp_path_factory.mktemp("undisturbed"))
    for run in runs:
        run.clean_up()


@pytest.mark.parametrize("seed", range(1000, 1060))
@pytest.mark.slow
def test_a_history_of_drills_changes_no_bit(tmp_path, launch, expected, seed):
    history = histories.drills(seed, tmp_path, launch, expected)
    assert set(history.harm) <= COUNTED, history


@pytest.mark.parametrize("wrong", ["weights", "loss"])
def test_a_history_with_another_end_is_found(tmp_path, launch, expected, wrong):
    """The control: what the histories compare with must be what they hang on."""
    other = histories.Expected(expected.weights_sha256, list(expected.losses))
    if wrong == "weights":
        other.weights_sha256 = "0" * 64
    else:
        other.losses[100] += 1e-9
    with pytest.raises(AssertionError, match="another one" if wrong == "loss" else "other weights"):
        histories.drills(7, tmp_path, launch, other)
