"""What a person or a monitor sees of a run: text on the terminal, HTTP from the coordinator."""

import json
import os
import pty
import re
import subprocess
import urllib.request

import pytest

import rig


def run_text(job, *arguments, env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGMASTER_")}
    return subprocess.run([str(rig.BIN / "ringmaster"), "run", str(job), *arguments], capture_output=True, text=True,
                          timeout=rig.DEADLINE_S, env={**clean, **(env or {})}, stdin=subprocess.DEVNULL, check=False)


def test_text_tells_the_story_and_ends_with_a_report(tmp_path, reference):
    done = run_text(rig.make_job(tmp_path, workers__target=3), "--drill", "kill:1@20", "--drill", "join@30")
    assert re.search(r"^  status +http://127\.0\.0\.1:\d+/v1/status \(JSON, while it runs\)\n  metrics +http://127\.0\.0\.1:\d+/metrics$", done.stdout, re.MULTILINE), done.stdout
    assert "worker 1 lost (killed by the drill)" in done.stdout and "recovered in " in done.stdout
    assert done.returncode == 0, done.stdout + done.stderr
    assert "\x1b" not in done.stdout and "\r" not in done.stdout, "no terminal, no terminal codes"
    assert reference()[0] in done.stdout
    assert str(tmp_path / "checkpoints" / "final") in done.stdout
    for word in ("worker 1", "goodput", "120"):
        assert word in done.stdout.lower(), done.stdout


def test_a_terminal_gets_one_line_that_is_redrawn(tmp_path):
    try:
        leader, follower = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal to be had here: {error}")
    process = subprocess.Popen([str(rig.BIN / "ringmaster"), "run", str(rig.make_job(tmp_path, trainer__steps=200))],
                               stdin=subprocess.DEVNULL, stdout=follower, stderr=follower)
    os.close(follower)
    seen = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:  # the other end is gone
            break
        if not piece:
            break
        seen += piece
    os.close(leader)
    assert process.wait(timeout=rig.DEADLINE_S) == 0, seen.decode(errors="replace")
    assert b"\r" in seen.replace(b"\r\n", b""), "the progress line is redrawn in place"


def get(address, path):
    with urllib.request.urlopen(f"http://{address}{path}", timeout=20) as answer:
        return answer.status, answer.read().decode()


def test_the_coordinator_answers_watchers(tmp_path, launch):
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000))
    address = run.read_until("started")["address"]
    step = run.read_until("step", step=10)["step"]
    code, body = get(address, "/v1/status")
    status = json.loads(body)
    assert code == 200 and isinstance(status, dict)
    numbers = [int(word) for word in re.findall(r'"step": ?(\d+)', body)]
    assert numbers and max(numbers) >= step, body
    assert get(address, "/healthz")[0] == 200
    code, metrics = get(address, "/metrics")
    assert code == 200 and f"ringmaster_steps {status['progress']['steps']}\n" in metrics, metrics
    for line in metrics.splitlines():
        assert line.startswith("#") or re.fullmatch(r"[a-z_:][a-z0-9_:]*(\{[^}]*\})? [-+.0-9eEinfNa]+", line), line


def test_the_status_holds_no_key(tmp_path, launch):
    """Nothing secret travels over a port that everybody can ask, and none is in a command line."""
    run = launch(rig.make_job(tmp_path, workers__target=2, trainer__steps=100000))
    address = run.read_until("started")["address"]
    run.read_until("step", step=2)
    keys = set()
    for pid in run.left_over():
        words = open(f"/proc/{pid}/cmdline", encoding="utf-8").read().split("\0")
        if "--key-file" in words:
            path = words[words.index("--key-file") + 1]
            assert os.stat(path).st_mode & 0o077 == 0, "others can read the key"
            keys.add(open(path, encoding="ascii").read().strip())
    assert len(keys) == 1 and len(next(iter(keys))) == 64
    key = keys.pop()
    for pid in run.left_over():
        assert key not in open(f"/proc/{pid}/cmdline", encoding="utf-8").read()
    assert key not in get(address, "/v1/status")[1] + get(address, "/metrics")[1]


@pytest.mark.parametrize("field", ["workers", "lanes"])
def test_the_help_names_what_there_is(field):
    """`--help` is there and exits 0; a flag that does not exist is a usage error with a sentence."""
    good = subprocess.run([str(rig.BIN / "ringmaster"), "--help"], capture_output=True, text=True, check=False)
    assert good.returncode == 0 and "run" in good.stdout and "generate" in good.stdout
    bad = subprocess.run([str(rig.BIN / "ringmaster"), "run", f"--{field}"], capture_output=True, text=True, check=False)
    assert bad.returncode == 2 and field in bad.stderr
