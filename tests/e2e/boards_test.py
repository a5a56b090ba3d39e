"""Workers of one machine share memory; where one of them can't, the whole ring goes over TCP, to the same bits."""

import pytest

import rig

SHARE, CANT = "the ring's workers share memory", "can't share memory with others on its machine"


@pytest.fixture(name="no_boards", scope="module")
def library_to_preload(tmp_path_factory):
    """What refuses memory for ranks to share (no_boards.c)."""
    return rig.preloadable("no_boards", tmp_path_factory.mktemp("no_boards"))


def check(run, reference, restarted=()):
    complete = rig.check_complete(run, restarted=restarted)
    assert complete["weightsSha256"] == reference()[0], run.tail()
    assert [e["loss"] for e in run.of("step")] == reference()[1]


def test_workers_of_one_machine_share_memory(tmp_path, finish, reference):
    run = finish(rig.make_job(tmp_path, workers__target=3))
    check(run, reference)
    assert run.stderr.count(SHARE) == 3 and CANT not in run.stderr, run.stderr


@pytest.mark.parametrize("workers", [2, 3, 5])
def test_where_no_worker_can_the_ring_goes_over_tcp_and_each_says_so_once(tmp_path, finish, reference, no_boards, workers):
    run = finish(rig.make_job(tmp_path, workers__target=workers), "--drill", "join@10", env={"LD_PRELOAD": str(no_boards)})
    check(run, reference)
    assert run.stderr.count(CANT) == workers + 1 and SHARE not in run.stderr, run.stderr


def test_where_one_worker_cannot_all_go_over_tcp_until_it_is_gone(tmp_path, finish, reference, no_boards):
    only = tmp_path / "refused"
    run = finish(rig.make_job(tmp_path, workers__target=3), "--drill", "trainer:0@10", "--drill", "trainer:1@20", "--drill", "trainer:2@30",
                 env={"LD_PRELOAD": str(no_boards), "REFUSED_ONE": str(only)})
    check(run, reference, restarted=[0, 1, 2])
    assert only.read_text(encoding="ascii").isdigit()
    assert run.stderr.count(CANT) == 1, run.stderr
    lines = [line for line in run.stderr.splitlines() if CANT in line or SHARE in line]
    assert CANT in lines[0] and SHARE in lines[-1], lines


@pytest.mark.parametrize("workers, streams", [(2, 1), (3, 1), (5, 1), (8, 1), (3, 4)])
def test_connections_that_are_asked_for_are_made_and_change_no_bit(tmp_path, finish, reference, workers, streams):
    run = finish(rig.make_job(tmp_path, workers__target=workers, trainer__ringStreams=streams))
    check(run, reference)
    assert SHARE not in run.stderr and CANT not in run.stderr, run.stderr


# More words than go by one connection.
LARGE = {"trainer__model__layers": 2, "trainer__model__width": 128, "trainer__model__heads": 4, "trainer__steps": 20}


@pytest.mark.parametrize("streams", ["Auto", 1, 4, 8])
def test_a_larger_model_has_the_same_bits_however_its_words_go_and_whoever_dies(tmp_path, finish, reference, streams):
    run = finish(rig.make_job(tmp_path, workers__target=3, trainer__ringStreams=streams, **LARGE), "--drill", "kill:1@5", "--drill", "join@10")
    complete = rig.check_complete(run, last=20)
    assert complete["weightsSha256"] == reference(**LARGE)[0], run.tail()
    assert (SHARE in run.stderr) == (streams == "Auto"), run.stderr
