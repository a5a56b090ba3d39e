"""tools/spot_trace.py: what it makes up has the statistics of the published traces, and what it reads is a trace or refused."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import spot_trace as traces  # noqa: E402  (its folder is on the path only now)


@pytest.mark.parametrize("name", ["p3", "zone"])
def test_what_is_made_up_is_like_what_was_published(name):
    moments = traces.of_name(name)
    found = traces.statistics_of(moments)
    for what, (least, most) in traces.STATISTICS[name].items():
        assert least <= found[what] <= most, f"{what} is {found[what]}"
    assert traces.tidy(moments) == moments
    assert traces.of_name(name, 1) == moments, "the same seed makes another trace"
    assert traces.of_name(name, 2) != moments, "another seed makes the same trace"


def test_kills_come_every_30_s_and_somebody_else_after_2():
    moments = traces.of_name("kills")
    found = traces.statistics_of(moments)
    assert (found["drops"], found["lost"], found["median gap"], found["gains"]) == (119, 119, 30, 119)
    assert moments[1:3] == [(30.0, 7), (32.0, 8)]


def test_statistics_are_those_of_a_sum_by_hand():
    moments = [(0, 4), (100, 2), (300, 0), (400, 3), (1000, 3)]
    found = traces.statistics_of(moments)
    assert found["mean"] == (4 * 100 + 2 * 200 + 3 * 600) / 1000
    assert (found["drops"], found["lost"], found["lost at once"], found["gains"]) == (2, 4, 2, 1)
    assert (found["all at once"], found["without any"], found["median gap"], found["short gaps"]) == (0.5, 0.1, 200, 0)


def test_a_stretch_begins_with_what_there_is_then():
    moments = [(0.0, 4), (100.0, 2), (300.0, 5), (1000.0, 5)]
    assert traces.stretch(moments, 150, 300) == [(0.0, 2), (150.0, 5), (300.0, 5)]


GOOD = {
    "a.txt": ("# a comment\n0 8\n10.5 7 # one goes\n20 7\n", [(0, 8), (10.5, 7), (20, 7)]),
    "same.txt": ("0 8\n5 8\n10 7\n20 7\n", [(0, 8), (10, 7), (20, 7)]),
    "p3.csv": ("time,count\n1000,32\n61000,30\n121000,30\n", [(0, 32), (60, 30), (120, 30)]),
    "bare.csv": ("0,2\n1000,1\n2000,1\n", [(0, 2), (1, 1), (2, 1)]),
    "each.csv": ("0,1\n0,2\n60000,1\n60000,0\n120000,1\n180000,1\n", [(0, 2), (60, 0), (120, 1), (180, 1)]),
    "zone.json": (json.dumps({"metadata": {"gap_seconds": 300}, "data": [16, 16, 0]}), [(0, 16), (600, 0), (900, 0)]),
}


@pytest.mark.parametrize("name", GOOD)
def test_each_form_is_read(tmp_path, name):
    text, moments = GOOD[name]
    (tmp_path / name).write_text(text)
    assert traces.read(tmp_path / name) == moments
    (tmp_path / "again.txt").write_text(traces.text_of(moments))
    assert traces.read(tmp_path / "again.txt") == moments


BAD = [
    ("a.txt", "", "begins at second 0 and has an end"),
    ("a.txt", "5 8\n9 8\n", "begins at second 0"),
    ("a.txt", "0 8\n10 7 6\n", "line 2: seconds and machines are wanted, there are 3 words"),
    ("a.txt", "0 8\nsoon 7\n", "line 2: no seconds: 'soon'"),
    ("a.txt", "0 8\nnan 7\n", "line 2: nan is no moment of a trace"),
    ("a.txt", "0 8\n10 many\n", "line 2: the number of machines is no whole number: 'many'"),
    ("a.txt", "0 8\n10 65\n", "line 2: 65 machines; a job has 0 to 64"),
    ("a.txt", "0 8\n10 7\n10 6\n", "second 10 is told after second 10"),
    ("a.csv", "time,count\n0\n", "line 2: milliseconds and machines are wanted"),
    ("a.csv", "0,2\n1.5,1\n", "line 2: the moment is no whole number"),
    ("a.csv", "0,2\n1000,-1\n", "line 2: -1 machines"),
    ("a.csv", "0,2\n2000,1\n1000,2\n", "second 1 is told after second 2"),
    ("a.json", "[1", "no JSON with metadata.gap_seconds and data"),
    ("a.json", "[1]", "no JSON with metadata.gap_seconds and data"),
    ("a.json", '{"metadata": {"gap_seconds": 0}, "data": [1]}', "metadata.gap_seconds is 0"),
    ("a.json", '{"metadata": {"gap_seconds": 300}, "data": []}', "data is no list of numbers"),
    ("a.json", '{"metadata": {"gap_seconds": 300}, "data": [1, 2.5]}', "data[1]: the number of machines is no whole number: 2.5"),
    ("a.json", '{"metadata": {"gap_seconds": 300}, "data": [1, null]}', "data[1]: the number of machines is no whole number"),
    ("a.json", '{"metadata": {"gap_seconds": 300}, "data": [1, true]}', "data[1]: the number of machines is no whole number: True"),
]


@pytest.mark.parametrize("name, text, says", BAD)
def test_what_is_no_trace_is_refused_with_a_sentence(tmp_path, capsys, monkeypatch, name, text, says):
    (tmp_path / name).write_text(text)
    monkeypatch.setattr(sys, "argv", ["spot_trace.py", "--trace", str(tmp_path / name)])
    assert traces.main() == 2
    told = capsys.readouterr()
    assert says in told.err and str(tmp_path / name) in told.err
    assert not told.out


def test_a_file_that_is_not_there_or_no_text_is_refused(tmp_path):
    with pytest.raises(traces.BadTrace, match="No such file"):
        traces.read(tmp_path / "none.txt")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(traces.BadTrace):
        traces.read(tmp_path / "bytes.txt")
