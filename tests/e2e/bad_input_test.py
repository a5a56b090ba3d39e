"""Wrong files, flags and folders: an exit code, a sentence that says what, where and what to do, and nothing lost."""

import datetime
import json
import os
import re
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

import rig

PROGRAM = str(rig.BIN / "ringmaster")


def make_job(folder, **fields):
    """The rig's job with a number of steps that these tests can name."""
    return rig.make_job(folder, **{"trainer__steps": 60, **fields})


def call(*arguments, env=None):
    """Runs ringmaster to its end; for calls that start no training."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("RINGMASTER_")}
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=rig.DEADLINE_S,
                          check=False, env={**clean, **(env or {})}, stdin=subprocess.DEVNULL)


def refused(done, code, *parts):
    """It ended with this code and one sentence with these parts on stderr; nothing on stdout."""
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert not done.stdout, done.stdout
    lines = done.stderr.strip().splitlines()
    assert lines and lines[-1].startswith("ringmaster: "), done.stderr
    for part in parts:
        assert part in lines[-1], (part, done.stderr)


def changed(job, old, new):
    text = job.read_text()
    assert text.count(old) == 1, (old, text)
    job.write_text(text.replace(old, new))
    return 1 + text[:text.index(old)].count("\n")


# (what the good file says, what it says instead, what the sentence holds; None first: it names another line)
WRONG_FIELDS = {
    "unknown field": ("lanes: 8", "lane: 8", "spec.trainer.batch.lane", "did you mean lanes?"),
    "wrong type": ("lanes: 8", "lanes: eight", "spec.trainer.batch.lanes", "\"eight\"", "whole number"),
    "too large": ("lanes: 8", "lanes: 1025", "spec.trainer.batch.lanes", "1 to 1024"),
    "negative": ("steps: 60", "steps: -1", "spec.trainer.steps", "-1"),
    "fraction": ("steps: 60", "steps: 2.5", "spec.trainer.steps", "2.5"),
    "a list": ("steps: 60", "steps: [60]", "spec.trainer.steps", "a list"),
    "heads and width": ("heads: 2", "heads: 3", "spec.trainer.model.heads", "divisor"),
    "vocabulary": ("vocabulary: 256", "vocabulary: 255", "spec.trainer.model.vocabulary", "256"),
    "warm-up": ("warmupSteps: 4", "warmupSteps: 61", "spec.trainer.optimizer.warmupSteps", "steps (60)"),
    "min over target": ("min: 1", "min: 2", "spec.workers.min", "target"),
    "target over max": ("target: 1", "target: 9", None, "spec.workers.max", "target"),
    "max over lanes": ("max: 8", "max: 9", "spec.workers.max", "lanes"),
    "another kind of place for checkpoints": ("uri: checkpoints", "uri: ftp://bucket/x", "spec.checkpoint.uri",
                                              "write a path, file:///path or s3://bucket/path"),
    "object store for the cache": ("uri: data", "uri: data\n      cache: s3://bucket/x", None, "spec.trainer.data.cache", "folder"),
    "precision": ("threads: 1", "precision: fp16", "spec.trainer.precision", "bf16"),
    "instruction set": ("threads: 1", "isa: AVX1024", "spec.trainer.isa", "AVX1024", "AVX512_CORE"),
    "device": ("threads: 1", "device: cuda", "spec.trainer.device", "cpu or gpu"),
    "a GPU and fp32": ("threads: 1", "device: gpu", "spec.trainer.device", "trainer.precision to bf16"),
    "launch": ("threads: 1", "threads: 1\n  launch: {mode: Command}", None),
    "duplicate": ("threads: 1", "threads: 1\n    threads: 2", None),
    "anchor": ("threads: 1", "threads: &t 1", None),
    "tab": ("    threads: 1", "\tthreads: 1", None),
    "kind": ("kind: TrainingJob", "kind: Job", "TrainingJob"),
}


@pytest.mark.parametrize("case", sorted(WRONG_FIELDS))
def test_a_wrong_field_is_told_by_file_line_and_path(tmp_path, case):
    old, new, *parts = WRONG_FIELDS[case]
    job = make_job(tmp_path)
    line = changed(job, old, new)
    where = f"{job}:" if parts[0] is None else f"{job}:{line}: "
    refused(call("run", job), 2, where, *filter(None, parts))
    assert not (tmp_path / "checkpoints").exists(), "a job that is refused leaves nothing behind"


@pytest.mark.parametrize("text", ["", "just words\n", "- a\n- b\n", "a: [1\n", "spec: " + "[" * 3000 + "\n", "a: \x00\n",
                                  "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\n"])
def test_what_is_no_job_file_is_refused(tmp_path, text):
    path = tmp_path / "job.yaml"
    path.write_text(text)
    refused(call("run", path), 2, str(path))


def test_an_absent_job_file_a_folder_and_a_huge_one_are_refused(tmp_path):
    refused(call("run", tmp_path / "none.yaml"), 2, "none.yaml")
    refused(call("run", tmp_path), 2, str(tmp_path))
    (tmp_path / "huge.yaml").write_bytes(b"# " + b"x" * (2 << 20))
    refused(call("run", tmp_path / "huge.yaml"), 2, "huge.yaml")


FLAGS = {
    "no command": (["walk"], "walk"),
    "no file": (["run"], "job file"),
    "two files": (["run", "a", "b"], "one job file"),
    "unknown option": (["run", "a", "--fast"], "--fast"),
    "option without value": (["run", "a", "--drill"], "--drill"),
    "output": (["run", "a", "--output", "xml"], "text or json"),
    "port": (["run", "a", "--port", "70000"], "70000"),
    "port text": (["run", "a", "--port", "http"], "http"),
    "drill": (["run", "a", "--drill", "kill"], "kill:W@S"),
    "checkpoint": (["checkpoint", "burn", "x"], "list|verify"),
}


@pytest.mark.parametrize("case", sorted(FLAGS))
def test_a_wrong_command_line_is_refused(case):
    arguments, part = FLAGS[case]
    refused(call(*arguments), 2, part)


@pytest.mark.parametrize("arguments, part", [
    (["--set", "spec.trainer.steps=x"], "--set spec.trainer.steps"),
    (["--set", "spec.trainer.stepz=1"], "did you mean steps?"),
    (["--set", "spec.trainer.steps"], "--set spec.trainer.steps"),
    (["--set", "spec.workers.min=5"], "spec.workers.min"),
    (["--drill", "kill:1@5"], "no worker 1"),
    (["--drill", "kill:0@60"], "1 to 59"),
    (["--drill", "kill:0@0"], "1 to 59"),
    (["--drill", "trainer:0@5", "--set", "spec.workers.max=1", "--drill", "join@7"], "spec.workers.max"),
    (["--drill", "random:3", "--drill", "join@7"], "alone"),
])
def test_settings_and_drills_that_do_not_fit_the_job_are_refused(tmp_path, arguments, part):
    refused(call("run", make_job(tmp_path), *arguments), 2, part)


COMMANDS = ["run", "check", "generate", "checkpoint list", "checkpoint verify", "checkpoint export", "checkpoint delete", "data index",
            "completion", "manual"]


@pytest.mark.parametrize("words", ["", "checkpoint", "data", *COMMANDS])
@pytest.mark.parametrize("ask", ["--help", "-h"])
def test_help_is_no_failure_wherever_it_is_asked_for(words, ask):
    shown = call(*words.split(), ask)
    assert shown.returncode == 0 and not shown.stderr
    assert f"ringmaster {words}" in shown.stdout
    assert all(len(line) <= 100 for line in shown.stdout.splitlines()), shown.stdout
    if words in COMMANDS:
        assert "For example:" in shown.stdout
        assert call(*words.split(), "job.yaml", "--overwrite", ask).stdout == shown.stdout


def test_who_says_nothing_is_shown_what_there_is():
    shown = call()
    assert shown.returncode == 0 and not shown.stderr and shown.stdout == call("--help").stdout, shown


@pytest.mark.parametrize("program, words, sentence", [
    ("operator", ["--qqs", "5"], "--qqs is not an option; did you mean --qps?"),
    ("operator", ["--workerimage=x"], "--workerimage=x is not an option; did you mean --worker-image?"),
    ("operator", ["--quickly"], "--quickly is not an option; --help lists all"),
    ("operator", ["--no-lease", "--qps"], "--qps wants a value; --help says which"),
    ("operator", ["-x"], "-x is not an option; --help lists all"),
    ("trainer", ["generate", "a", "b"], "generate: b is a second folder; name one"),
    ("trainer", ["generate", "a", "b", "--seed", "1"], "generate: b is a second folder; name one"),
    ("trainer", ["generate", "a", "--tokens"], "generate: --tokens wants a value"),
    ("trainer", ["frob"], "frob is none of generate, fingerprint, memory, bench-step"),
    ("trainer", ["fingerprnt"], "fingerprnt is none of generate, fingerprint, memory, bench-step; did you mean fingerprint?"),
    ("trainer", ["fingerprint", "--frob"], "--frob is not an option; --help lists all"),
    ("trainer", ["fingerprint", "--porbe"], "--porbe is not an option; did you mean --probe?"),
    ("trainer", ["fingerprint", "now"], "fingerprint: now is no option, and there is nothing else to say"),
    ("trainer", ["fingerprint", "--precision", "fp16"], '--precision is "fp16"; write fp32 or bf16'),
    ("trainer", ["work", "--link-fd", "x"], '--link-fd wants a number from 0 to 1073741824, not "x"'),
])
def test_a_wrong_word_is_named_with_what_is_wrong(program, words, sentence):
    done = subprocess.run([rig.BIN / f"ringmaster-{program}", *words], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
    said = done.stderr.splitlines()
    assert done.returncode == 2 and len(said) == 1 and said[0].partition(": ")[2] == sentence, done


OTHERS = ["agent", "agent work", "agent coordinate", "agent install", "agent node", "agent node --listen 10.0.0.7", "trainer", "trainer work",
          "trainer generate", "trainer generate checkpoints/final", "trainer memory", "trainer fingerprint", "trainer bench-step", "operator",
          "operator --no-lease"]


@pytest.mark.parametrize("words", OTHERS)
@pytest.mark.parametrize("ask", ["--help", "-h"])
def test_help_is_no_failure_of_the_other_programs_either(words, ask):
    name, *more = f"ringmaster-{words}".split()
    shown = subprocess.run([rig.BIN / name, *more, ask], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False, stdin=subprocess.DEVNULL)
    assert shown.returncode == 0 and not shown.stderr, shown
    assert shown.stdout.startswith(f"usage: {name} ") and f"For example:\n  {name} " in shown.stdout, shown.stdout
    assert all(len(line) <= 110 for line in shown.stdout.splitlines()), shown.stdout


def test_the_version_is_told():
    told = call("--version")
    first, *more = told.stdout.splitlines()
    facts = dict(line.strip().split("  ", 1) for line in more)
    arithmetic = subprocess.run([rig.BIN / "ringmaster-trainer", "fingerprint"], capture_output=True, text=True, check=True).stdout.strip()
    assert told.returncode == 0 and re.fullmatch(r"ringmaster \d+\.\d+\.\d+", first), told
    assert re.fullmatch(r"[0-9a-f]{12}|unknown", facts["commit"].strip()), facts
    assert facts["arithmetic"].strip() == arithmetic and "numerics " in arithmetic and "oneDNN" in arithmetic
    assert all(re.search(rf"{name} \d", facts["built with"]) for name in ("libuv", "jansson", "libwebsockets", "curl", "OpenSSL", "expat", "libyaml", "xxHash"))


def test_the_version_is_told_without_a_trainer_too(tmp_path):
    told = call("--version", env={"RINGMASTER_TRAINER": str(tmp_path / "nowhere")})
    assert told.returncode == 0 and "not known" in told.stdout and "nowhere" in told.stdout, told


@pytest.mark.parametrize("words, guess", [(["runn", "x"], "run"), (["checkpoint", "exprot", "x"], "export"),
                                          (["run", "x", "--overwirte"], "--overwrite"), (["--versoin"], "--version"), (["-help"], "--help"), (["completion", "zhs"], "zsh"),
                                          (["check", "x", "--outptu=json"], "--output"), (["check", "x", "--output", "jsno"], "json"),
                                          (["checkpoint", "verify", "x", "--output", "jsn"], "json"),
                                          (["checkpoint", "delete", "x", "--alll"], "--all"),
                                          (["run", "x", "--overwrit"], "--overwrite"), (["checkpoint", "delete", "x", "--ye"], "--yes"),
                                          (["generate", "x", "--token", "3", "--promt", "y"], "--prompt")])
def test_what_is_nearly_right_is_asked_about(words, guess):
    refused(call(*words), 2, f"; did you mean {guess}?")


@pytest.mark.parametrize("arguments, guess", [
    (["--output", "JSON"], "json"), (["--output=txet"], "text"), (["--drill", "kil:0@5"], "kill"), (["--drill", "coordinate@5"], "coordinator"),
    (["--drill", "rnadom:11"], "random"), (["--set", "spec.trainer.precision=bf61"], "bf16"), (["--set", "spec.trainer.reduction=Exact"], "exact"),
    (["--set", "spec.trainer.isa=AVX512"], "AVX512_CORE"), (["--set", "spec.trainer.model.preset=gpt2-124"], "gpt2-124m"),
    (["--set", "spec.checkpoint.resume=never"], "Never"), (["--set", "spec.trainer.optimizer.lerningrate=1"], "learningRate"),
])
def test_a_value_that_is_nearly_right_is_asked_about(tmp_path, arguments, guess):
    refused(call("run", make_job(tmp_path), *arguments), 2, f"; did you mean {guess}?")


def test_a_checkpoint_whose_name_is_nearly_right_is_asked_about(tmp_path, finish):
    rig.check_complete(finish(make_job(tmp_path, trainer__steps=4, checkpoint__everySteps=2)), last=4)
    for verb in ("list", "verify"):
        done = call("checkpoint", verb, tmp_path / "checkpoints", "--name", "fianl")
        refused(done, 3, f"no checkpoint fianl in {tmp_path}/checkpoints; did you mean final?")


@pytest.mark.parametrize("typed, wanted", [
    (["ringmaster", "checkp"], {"checkpoint"}), (["ringmaster", "checkpoint", ""], {"list", "verify", "export", "delete", "--help"}),
    (["ringmaster", "run", "job.yaml", "--ov"], {"--overwrite"}),
    (["ringmaster", "checkpoint", "delete", "x", "--y"], {"--yes"}),
])
def test_a_shell_completes_what_is_typed(typed, wanted):
    words = " ".join(f"'{word}'" for word in typed)
    script = (f"source <({rig.BIN}/ringmaster completion bash); COMP_WORDS=({words}); COMP_CWORD={len(typed) - 1}; "
              "_ringmaster; printf '%s\n' \"${COMPREPLY[@]}\"")
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == wanted


def absent(data):
    data.rename(data.parent / "gone")


def emptied(data):
    for path in sorted(data.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()


def a_file(data):
    absent(data)
    data.write_text("words " * 1000)


def too_short(data):
    emptied(data)
    (data / "a.txt").write_text("short")


@pytest.mark.parametrize("spoil", [absent, emptied, a_file, too_short])
def test_data_that_is_not_there_or_too_little_is_told_with_its_place(tmp_path, spoil):
    job = make_job(tmp_path)
    spoil(tmp_path / "data")
    refused(call("run", job), 3, str(tmp_path / "data"))
    assert not (tmp_path / "checkpoints").exists()


def test_checkpoints_within_the_data_are_refused(tmp_path):
    refused(call("run", make_job(tmp_path, checkpoint__uri="data/out")), 2, "spec.checkpoint.uri", "spec.trainer.data.uri")


def test_checkpoints_within_the_data_are_refused_behind_links_too(tmp_path):
    job = make_job(tmp_path, checkpoint__uri="real/out/more")
    (tmp_path / "data").rename(tmp_path / "real")
    (tmp_path / "data").symlink_to("real")
    refused(call("run", job), 2, "spec.checkpoint.uri", "spec.trainer.data.uri")
    assert not (tmp_path / "real" / "out").exists()


def test_a_model_to_start_from_is_never_deleted_by_starting_anew_from_it(tmp_path, finish):
    rig.check_complete(finish(make_job(tmp_path, trainer__steps=4)), last=4)
    job = make_job(tmp_path, trainer__steps=4, trainer__model__init="checkpoints/final")
    refused(call("run", job, "--overwrite"), 2, "spec.trainer.model.init", "spec.checkpoint.uri")
    assert (tmp_path / "checkpoints" / "final" / "manifest.json").exists()


def test_a_checkpoint_folder_that_can_not_be_made_is_told_with_its_place(tmp_path):
    (tmp_path / "checkpoints").write_text("a file stands here")
    for command in ("check", "run"):
        for uri in ("checkpoints", "checkpoints/more", "checkpoints/more/below"):
            refused(call(command, make_job(tmp_path, checkpoint__uri=tmp_path / uri)), 2, f"{tmp_path / 'checkpoints'}: this is a file, not a folder",
                    "spec.checkpoint.uri")


def test_a_check_sees_that_another_run_uses_the_folder_and_leaves_it_to_that_one(tmp_path, launch):
    job = make_job(tmp_path, trainer__steps=100000)
    run = launch(job)
    run.read_until("step")
    refused(call("check", job), 4, "another run uses this folder")
    run.read_until("step")
    run.interrupt()
    assert run.wait() == 130, run.tail()
    assert call("check", job).returncode == 0


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["--version"], ["manual"], ["completion", "bash"], ["check"]])
def test_an_output_that_can_not_be_written_is_no_success(tmp_path, words):
    words = [*words, str(make_job(tmp_path))] if words == ["check"] else words
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, *words], stdout=full, stderr=subprocess.PIPE, text=True, timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 4 and "standard output can't be written" in done.stderr, done


@pytest.mark.parametrize("words", [["run", "job.yaml", "-vv"], ["run", "-vbc", "x"], ["generate", "x", "-vbc"]])
def test_a_wrong_letter_is_named_and_not_the_word_before_it(words):
    refused(call(*words), 2, f"-v is not an option of {words[0]}")


def test_a_drill_by_time_is_told_with_the_step_of_its_moment(tmp_path, launch):
    run = launch(make_job(tmp_path, trainer__steps=100000, workers__target=2), "--drill", "kill:1@1s")
    while (event := run.next_event()) and event["event"] != "drill":
        newest = event.get("step", 0)
    assert event["step"] >= newest > 0, (event, newest)
    run.interrupt()
    assert run.wait() == 130, run.tail()


def test_a_value_that_looks_like_an_option_is_a_value(tmp_path):
    done = call("generate", tmp_path, "--prompt", "--help")
    refused(done, 3, "config.json")


def test_a_model_to_start_from_that_is_absent_or_of_another_shape_is_refused(tmp_path, finish):
    done = call("run", make_job(tmp_path / "a", trainer__model__init=tmp_path / "nowhere"))
    refused(done, 3, "spec.trainer.model.init", str(tmp_path / "nowhere"))
    trained = rig.folder_of(rig.check_complete(finish(make_job(tmp_path / "b", trainer__steps=4)), last=4)["uri"])
    done = call("run", make_job(tmp_path / "c", trainer__model__init=trained, trainer__model__layers=3))
    refused(done, 3, "spec.trainer.model.layers", "is 3", "has 2")


def test_a_port_in_use_is_told(tmp_path, finish):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        run = finish(make_job(tmp_path), "--port", port)
    assert run.code == 4, run.tail()
    assert str(port) in run.stderr, run.stderr
    assert not run.left_over()


def test_a_port_of_choice_is_used(tmp_path, finish):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run = finish(make_job(tmp_path, trainer__steps=4), "--port", port)
    rig.check_complete(run, last=4)
    assert run.the("started")["address"] == f"127.0.0.1:{port}"


def test_never_resuming_wants_an_empty_folder(tmp_path, finish):
    rig.check_complete(finish(make_job(tmp_path, trainer__steps=4)), last=4)
    done = call("run", make_job(tmp_path, trainer__steps=4, checkpoint__resume="Never"))
    refused(done, 2, "spec.checkpoint.resume", "final")


def test_drills_of_a_finished_job_are_checked_and_the_sentence_says_how_to_train_anew(tmp_path, finish):
    job = make_job(tmp_path, trainer__steps=4)
    rig.check_complete(finish(job), last=4)
    refused(call("run", job, "--drill", "trainer:0@50"), 2, "1 to 3")
    again = subprocess.run([PROGRAM, "run", str(job), "--drill", "trainer:0@2"], capture_output=True, text=True, check=True,
                           timeout=rig.DEADLINE_S)
    assert "Complete already: 4 steps; --overwrite trains anew" in again.stdout, again.stdout


def everything_in(folder):
    return sorted((str(path.relative_to(folder)), path.stat().st_mtime_ns) for path in folder.rglob("*"))


def test_check_tells_what_a_job_comes_to_and_starts_nothing(tmp_path, finish):
    job = make_job(tmp_path, trainer__steps=8, checkpoint__everySteps=4)
    before = everything_in(tmp_path)
    done = call("check", job, "--output", "json")
    assert done.returncode == 0 and not done.stderr, done
    told = json.loads(done.stdout)
    assert everything_in(tmp_path) == before, "a check makes nothing"
    assert told["steps"] == 8 and told["resume"] is None
    samples = 8 * told["tokensPerStep"] / told["passes"]
    assert 0.9 < samples / told["dataTokens"] <= 1, told
    assert told["checkpointBytes"] == 12 * told["parameters"] < told["workerBytes"] < told["workerBytesMost"]
    for part in (f"{told['parameters']:,} parameters", "passes over ", "tokens of training data", "begin at step 0", "nothing was started"):
        assert part in call("check", job).stdout
    complete = rig.check_complete(finish(job), last=8)
    saved = sum(path.stat().st_size for path in rig.folder_of(complete["uri"]).glob("*.safetensors"))
    assert abs(saved - told["checkpointBytes"]) < 0.05 * saved
    assert json.loads(call("check", job, "--output", "json").stdout)["resume"] == {"checkpoint": "final", "step": 8, "complete": True}
    text = call("check", job).stdout
    assert "nothing left to train: final is of the last step; ringmaster run FILE --overwrite trains again" in text and "going on" not in text, text
    assert "\n\n\n" not in text


def memory_of(pid):
    """Pages of its own, and its files of memory: (bytes, {inode: bytes})."""
    (own,) = re.findall(r"^RssAnon:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    files = [os.stat(path) for path in Path(f"/proc/{pid}/fd").iterdir() if os.readlink(path).startswith("/memfd:")]
    return 1024 * int(own), {found.st_ino: 512 * found.st_blocks for found in files}


def worker_memory(run):
    """What the kernel counts of a run's only worker, agent and trainer; 0 where one of them is not there (any more)."""
    own, files, there = 0, {}, 0
    for pid in rig.marked_processes(run.mark):
        try:
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "work" in words[:2]:
                mine, shared = memory_of(pid)
                own, files, there = own + mine, {**files, **shared}, there + 1
        except OSError:  # it has just ended
            pass
    return own + sum(files.values()) if there == 2 else 0


@pytest.mark.parametrize("every", [0, 2])
def test_the_memory_that_is_told_is_enough_and_not_much_more(tmp_path, launch, every):
    """Without checkpoints on the way the memory for one is taken at the end."""
    job = make_job(tmp_path, trainer__steps=8, trainer__model__width=256, trainer__model__layers=4, trainer__model__context=64,
                   trainer__batch__lanes=2, workers__max=1, checkpoint__everySteps=every)
    told = json.loads(call("check", job, "--output", "json").stdout)
    run, seen = launch(job), []
    while (event := run.next_event()) is not None:
        seen.append((worker_memory(run), event["event"]))
    assert run.wait() == 0, run.tail()
    most, steps = max(seen)[0], max(bytes_ for bytes_, event in seen if event == "step")
    assert 0.7 * told["workerBytesMost"] < most <= told["workerBytesMost"], (seen, told)
    assert 0.8 * told["workerBytes"] < steps, (seen, told)
    assert every or steps <= told["workerBytes"], (seen, told)


def test_check_tells_how_far_apart_checkpoints_may_be_where_the_run_chooses_it(tmp_path):
    job = make_job(tmp_path, checkpoint__every="Auto", checkpoint__maxLoss="90m")
    assert json.loads(call("check", job, "--output", "json").stdout)["maxLossSeconds"] == 5400
    assert "as often as it pays: 90m apart at most" in call("check", job).stdout
    refused(call("check", job, "--set", "spec.checkpoint.everySteps=5"), 2, "everySteps is 5 beside checkpoint.every: Auto")
    refused(call("run", job, "--set", "spec.checkpoint.maxLoss=59s"), 2, "write a duration from 1m to 8760h")


def test_an_agent_gives_back_what_it_verifies_checkpoints_with(tmp_path, launch):
    """Weights and moments are read through memory of their size, after each save; it is another save that shows what was kept."""
    run = launch(make_job(tmp_path, trainer__steps=26, trainer__model__width=256, trainer__model__layers=4, trainer__model__context=64,
                          trainer__batch__lanes=2, workers__max=2, checkpoint__everySteps=8))
    held = []
    for _ in range(3):
        run.read_until("checkpointSaved")
        agent, = [pid for pid in rig.marked_processes(run.mark) if Path(f"/proc/{pid}/cmdline").read_text().split("\0")[1] == "work"
                  and "agent" in os.readlink(f"/proc/{pid}/exe")]
        held.append(memory_of(agent)[0])
    assert min(held[1:]) < 12e6, held
    assert run.wait() == 0, run.tail()


def test_check_refuses_what_run_refuses(tmp_path):
    job = make_job(tmp_path)
    refused(call("check", job, "--set", "spec.trainer.stepz=1"), 2, "did you mean steps?")
    shutil.rmtree(tmp_path / "data")
    refused(call("check", job), 3, str(tmp_path / "data"))
    assert not (tmp_path / "checkpoints").exists()


def test_notes_name_what_means_nothing_here_and_the_run_goes_on(tmp_path, finish):
    job = make_job(tmp_path, trainer__steps=4, spot__prefer="true", cleanPodPolicy="Running")
    run = finish(job)
    rig.check_complete(run, last=4)
    assert "spec.spot means nothing without a cluster" in run.stderr
    assert "spec.cleanPodPolicy means nothing without a cluster" in run.stderr


def test_checkpoints_are_listed_and_verified_and_damage_is_named(tmp_path, finish):
    rig.check_complete(finish(make_job(tmp_path, trainer__steps=8, checkpoint__everySteps=4)), last=8)
    folder = tmp_path / "checkpoints"
    listed = call("checkpoint", "list", folder)
    assert listed.returncode == 0 and "final" in listed.stdout and "step-00000004" in listed.stdout, listed
    head, *rows = [line.split() for line in listed.stdout.splitlines()]
    assert head == ["NAME", "STEP", "SIZE", "AGE", "EXACT", "WEIGHTS"] and [row[0] for row in rows] == ["final", "step-00000004"]
    told = json.loads(call("checkpoint", "list", folder, "--output", "json").stdout)
    assert [one["step"] for one in told] == [8, 4] and all(one["exact"] is True and one["bytes"] > 0 for one in told)
    assert [row[-1] for row in rows] == [told[0]["weightsSha256"][:12], "-"] and told[1]["weightsSha256"] is None, "of the last weights alone"
    wide = call("checkpoint", "list", folder, "--wide").stdout
    assert told[0]["weightsSha256"] in wide and all(one["written"] in wide for one in told)
    assert abs(datetime.datetime.fromisoformat(told[0]["written"]).timestamp() - time.time()) < 3600
    good = call("checkpoint", "verify", folder)
    assert good.returncode == 0 and good.stdout.count("verified") == 2, good
    checked = call("checkpoint", "verify", folder, "--output", "json")
    assert checked.returncode == 0 and json.loads(checked.stdout) == [{**one, "verified": True} for one in told], checked
    weights = folder / "step-00000004" / "model.safetensors"
    raw = bytearray(weights.read_bytes())
    raw[-1] ^= 1
    weights.write_bytes(raw)
    bad = call("checkpoint", "verify", folder)
    assert bad.returncode == 3 and "step-00000004" in bad.stderr and "final" in bad.stdout, bad
    checked = call("checkpoint", "verify", folder, "--output", "json")
    whole, damaged = json.loads(checked.stdout)
    assert checked.returncode == 3 and whole == {**told[0], "verified": True}, checked
    assert damaged == {**told[1], "verified": False, "why": damaged["why"]} and "its content is damaged" in damaged["why"], damaged
    (folder / "step-00000004" / "manifest.json").write_text("{}")
    _, unreadable = json.loads(call("checkpoint", "verify", folder, "--output", "json").stdout)
    assert unreadable == {"name": "step-00000004", "verified": False, "why": unreadable["why"]} and unreadable["why"], unreadable
    for verb in ("list", "verify"):
        for place in ("nowhere", "checkpoints/final"):
            refused(call("checkpoint", verb, tmp_path / place), 3, place, "step-*")


def test_a_list_tells_how_old_each_checkpoint_is(tmp_path, finish):
    rig.check_complete(finish(make_job(tmp_path, trainer__steps=4)), last=4)
    for seconds, age in ((3.5 * 3600, "3h"), (72.5 * 3600, "3d"), (12.5 * 60, "12m")):
        then = time.time() - seconds
        os.utime(tmp_path / "checkpoints/final/manifest.json", (then, then))
        _, row = call("checkpoint", "list", tmp_path / "checkpoints").stdout.splitlines()
        assert row.split()[-3] == age, row


def test_a_trainer_that_is_not_there_ends_the_run_with_a_sentence(tmp_path, finish):
    run = finish(make_job(tmp_path, trainer__steps=4), env={"RINGMASTER_TRAINER": str(tmp_path / "nowhere")})
    assert run.code in (4, 5), run.tail()
    assert "nowhere" in run.stderr, run.stderr
    assert run.events[-1]["event"] == "failed", run.tail()
    assert not run.left_over()


def test_a_forced_instruction_set_that_nobody_knows_is_refused_with_those_that_are_known(tmp_path):
    done = call("run", make_job(tmp_path), env={"RINGMASTER_TRAINER_ISA": "MMX"})
    refused(done, 2, "RINGMASTER_TRAINER_ISA", '"MMX"', "AVX512_CORE_AMX")


@pytest.mark.parametrize("name, value, part", [("RINGMASTER_LOG", "verbose", "write debug, info or warn"), ("RINGMASTER_LOG", "inof", "did you mean info?"),
                                               ("RINGMASTER_LOG_FORMAT", "xml", "write text or json")])
def test_a_level_or_format_of_the_log_that_there_is_not_is_refused(tmp_path, name, value, part):
    refused(call("check", make_job(tmp_path), env={name: value}), 2, name, f'"{value}"', part)
    operator = subprocess.run([rig.BIN / "ringmaster-operator", "--no-lease"], env={**os.environ, name: value}, capture_output=True, text=True,
                              timeout=rig.DEADLINE_S, check=False)
    assert operator.returncode == 2 and part in operator.stderr, operator.stderr


def test_places_where_nothing_of_that_kind_lies_are_told_with_what_to_do(tmp_path):
    refused(call("run", make_job(tmp_path, trainer__data__uri="nowhere")), 3, "there is no such folder", "spec.trainer.data.uri")
    refused(call("generate", tmp_path / "nowhere"), 3, "holds no model", "name a checkpoint, as checkpoints/final")


def test_a_limit_on_files_that_the_state_does_not_fit_in_is_told_before_anything_starts(tmp_path):
    job = make_job(tmp_path)
    done = subprocess.run(["sh", "-c", f"ulimit -f 64; exec '{PROGRAM}' run '{job}' --output json"], capture_output=True,
                          text=True, timeout=rig.DEADLINE_S, check=False)
    refused(done, 4, "ulimit -f", "32768 bytes")


def test_an_output_that_can_not_be_written_ends_the_run_with_its_reason(tmp_path):
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([PROGRAM, "run", str(make_job(tmp_path, trainer__steps=100000)), "--output", "json"], stdout=full,
                              stderr=subprocess.PIPE, text=True, timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 4, done.stderr
    assert "standard output can't be written: No space left on device" in done.stderr, done.stderr


def test_an_agent_with_another_key_ends_and_says_so(tmp_path, launch):
    run = launch(make_job(tmp_path, trainer__steps=100000, elasticity__lostAfter="2s"))
    started = run.read_until("started")
    run.read_until("step")
    words = open(f"/proc/{started['coordinatorPid']}/cmdline", encoding="utf-8").read().split("\0")
    key = tmp_path / "key"
    key.write_bytes(b"00" * 32 + b"\n")
    stranger = subprocess.Popen([str(rig.BIN / "ringmaster-agent"), "work", "--worker", "7", "--attempt", "0", "--coordinator",
                                 started["address"], "--job", words[words.index("--job") + 1], "--key-file", str(key)],
                                env={**os.environ, rig.MARK: run.mark}, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    told = stranger.stderr.read()
    assert stranger.wait(timeout=rig.DEADLINE_S) == 4, told
    assert "its key is another one than this agent's" in told, told
    run.interrupt()
    assert run.wait() == 130, run.tail()


def test_the_exit_code_of_a_trainer_that_takes_its_time_to_end_is_not_lost(tmp_path, finish):
    """It closed its link and frees its memory: who killed it then would not know that another attempt is for nothing."""
    trainer = tmp_path / "trainer"
    trainer.write_text("#!/bin/sh\nexec 3>&-\nsleep 0.2\nexit 3\n")
    trainer.chmod(0o755)
    run = finish(rig.make_job(tmp_path, workers__target=2), env={"RINGMASTER_TRAINER": str(trainer)})
    assert run.code == 3, run.tail()
    assert "signal 9" not in run.stderr, run.stderr


@pytest.mark.parametrize("words, part", [
    ([], "which of coordinate, work, install, node? See `ringmaster-agent --help`"),
    (["wrok"], "wrok is none of coordinate, work, install, node; did you mean work?"),
    (["work"], "work wants --key-file FILE; see `ringmaster-agent --help`"),
    (["work", "--key-file", "k"], "work wants --job SPEC.json; see `ringmaster-agent --help`"),
    (["coordinate", "--key-file", "k"], "coordinate wants --job SPEC.json; see `ringmaster-agent --help`"),
    (["coordinate", "--nonsense"], "--nonsense is not an option; --help lists all"),
    (["coordinate", "--trem", "1"], "--trem is not an option; did you mean --term?"),
    (["work", "--worker"], "--worker wants a value; --help says which"),
    (["work", "seven"], "work: seven is no option, and there is nothing else to say"),
    (["node", "--nonsense"], "--nonsense is not an option; --help lists all"),
    (["node"], "node wants --listen IP: the address of this machine that its pods know"),
    (["install"], "install wants one folder: install DIR [--termination-log FILE]; see `ringmaster-agent --help`"),
    (["launch"], "launch wants what `work` alone gives it; see `ringmaster-agent --help`")])
def test_a_wrong_command_line_of_the_agent_is_told_whole_and_where_the_right_ones_are(words, part):
    """Its usage is longer than a sentence of an error may be, and was cut off in the middle."""
    done = subprocess.run([rig.BIN / "ringmaster-agent", *words], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 2 and done.stderr == f"ringmaster-agent: {part}\n", done.stderr
