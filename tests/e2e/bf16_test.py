"""bf16 keeps fp32's promises: one weightsSha256, whatever happens on the way; and computing activations again
changes no bit in either."""

import pytest

import rig

BF16 = {"trainer__precision": "bf16"}


def check(run, expected, restarted=()):
    expected_hash, expected_losses = expected
    complete = rig.check_complete(run, restarted=restarted)
    assert [e["loss"] for e in run.of("step")] == expected_losses, run.tail()
    assert complete["weightsSha256"] == expected_hash, run.tail()
    assert complete["exact"] is True


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_and_threads_changes_no_bit(tmp_path, finish, reference, workers, threads):
    run = finish(rig.make_job(tmp_path, workers__target=workers, trainer__threads=threads, **BF16))
    check(run, reference(**BF16))
    assert run.the("ringFormed")["world"] == workers


@pytest.mark.parametrize("drill", ["kill:1@10", "trainer:0@10", "term:2@10", "join@10"])
def test_a_drill_changes_no_bit(tmp_path, finish, reference, drill):
    run = finish(rig.make_job(tmp_path, workers__target=3, **BF16), "--drill", drill)
    check(run, reference(**BF16))
    assert run.of("recovered"), run.tail()


def test_a_processor_without_bf16_keeps_the_promise_too(tmp_path, finish, reference):
    old = {"trainer__isa": "SSE41", **BF16}
    run = finish(rig.make_job(tmp_path, workers__target=3, **old), "--drill", "kill:1@10")
    check(run, reference(**old))


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_activations_computed_again_have_the_same_bits(tmp_path, finish, reference, precision):
    run = finish(rig.make_job(tmp_path, workers__target=2, trainer__precision=precision, trainer__recompute=True))
    check(run, reference(trainer__precision=precision))


def test_bf16_gives_other_weights_than_fp32_and_learns_as_much(reference):
    """The control: the precision reaches the products. And the loss is fp32's but for rounding."""
    (fp32_hash, fp32_losses), (bf16_hash, bf16_losses) = reference(), reference(**BF16)
    assert bf16_hash != fp32_hash
    last = [sum(losses[-10:]) / 10 for losses in (fp32_losses, bf16_losses)]
    assert abs(last[0] - last[1]) < 0.02 * last[0], last
