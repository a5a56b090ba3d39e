"""The commands that the pages show, run as they stand there: tests/commands.py says which ones, in which story.

A story has a folder that looks like a clone that was built: build/release and build/test are the build that is tested. cmake builds
nothing in it: configuring and building are asked for their presets alone, as a check builds them anyway. What a page leaves to its
reader (FOLDER, N) is filled in, and what would take long is made small by patterns; all else is the page's."""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import rig
sys.path.append(str(rig.ROOT / "tests"))

import commands  # noqa: E402  (its folder is on the path only now)
import examples  # noqa: E402
import pages  # noqa: E402

pytestmark = pytest.mark.skipif(rig.SANITIZED, reason="what a command does is the same in both presets, and these take their time")

NONSENSE = "--no-such-word"
MODEL = (r"model: \{.*?\}", "model: {layers: 1, heads: 2, width: 16, context: 16, vocabulary: 256}")
# In a story's folder before anything else on the path. The real cmake has to know the presets; dpkg-query finds each package there.
CMAKE = """#!/bin/sh
case "$1 $2" in
"--preset "*) {cmake} --list-presets | grep -q "\\"$2\\"" || {{ echo "no preset $2" >&2; exit 1; }} ;;
"--build --preset") {cmake} --build --list-presets | grep -q "\\"$3\\"" || {{ echo "no preset $3" >&2; exit 1; }} ;;
"--build "*) echo "build by preset" >&2; exit 1 ;;
*) exec {cmake} "$@" ;;
esac
"""
DPKG = "#!/bin/sh\necho -n installed\n"


class Clone:
    """A folder that a story runs its commands in."""

    def __init__(self, folder):
        self.folder, self.mark = folder, uuid.uuid4().hex
        for entry in rig.ROOT.iterdir():
            if entry.name not in ("build", "deploy") and not entry.name.startswith(".git"):
                (folder / entry.name).symlink_to(entry)
        shutil.copytree(rig.ROOT / "deploy", folder / "deploy")
        (folder / "build").mkdir()
        for preset in ("release", "test"):
            (folder / "build" / preset).symlink_to(rig.BIN.parent)
        self._stubs(cmake=CMAKE.format(cmake=shutil.which("cmake")), **{"dpkg-query": DPKG})

    def _stubs(self, **programs):
        (self.folder / "stubs").mkdir()
        for name, text in programs.items():
            (self.folder / "stubs" / name).write_text(text, encoding="ascii")
            (self.folder / "stubs" / name).chmod(0o755)

    def environment(self):
        own = {name: value for name, value in os.environ.items() if not name.startswith(("RINGMASTER_", "AWS_", "PYTEST_"))}
        path = f"{self.folder}/stubs:{rig.BIN}:{rig.BIN.parent}/tests:{own['PATH']}"
        return {**own, "PATH": path, "HOME": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", rig.MARK: self.mark}

    def run(self, text, code=0, **environment):
        """What it printed, standard error behind it."""
        done = subprocess.run(["bash", "-c", text], cwd=self.folder, env={**self.environment(), **environment}, stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
        assert done.returncode == code, f"{text}\nexit {done.returncode}, not {code}:\n{(done.stdout + done.stderr)[-3000:]}"
        return done.stdout + done.stderr

    def play(self, story, *fill, code=None, **environment):
        """Runs a story's commands, one behind the other; returns {command: what it printed}. fill: (pattern, text) pairs;
        code: {command: what it has to end with, where not with 0}."""
        printed = {}
        for shown in commands.RUN[story]:
            printed[shown] = "".join(self.run(filled(text, fill), (code or {}).get(text, 0), **environment) for text in expanded(shown))
        return printed


@pytest.fixture(name="clone")
def fixture_clone(tmp_path):
    if not (rig.BIN / "ringmaster").exists():
        pytest.fail(f"no programs in {rig.BIN}: build first")
    clone = Clone(tmp_path)
    yield clone
    for pid in rig.marked_processes(clone.mark):  # of a command that did not end in time
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def filled(text, fill):
    for pattern, value in fill:
        text = re.sub(pattern, value, text)
    return text


def expanded(shown):
    """A synopsis as commands: without what may be left out, then with each such part, and each word of `a|b` once."""
    needed = re.sub(r" \[[^]]*\](\.\.\.)?", "", shown)
    optional = re.findall(r" \[([^]]*)\]", shown)
    return [one for part in ["", *optional] for one in alternatives(f"{needed} {part}".strip())] if optional else alternatives(shown)


def alternatives(text):
    """`--name NAME|--all` is either of two options; `--output text|json` and `bash|zsh` are either of two words."""
    found = re.search(r"(?:(?<= )(--\S+) )?(?<!\S)([\w-]+(?:\|[\w-]+)+)(?!\S)", text)
    if not found:
        return [text]
    option, words = found[1], found[2].split("|")
    each = [word if word.startswith("--") or not option else f"{option} {word}" for word in words]
    return [one for word in each for one in alternatives(text[:found.start()] + word + text[found.end():])]


def job_of(page, name, *more):
    """The job of that name that the page shows, with a small model."""
    text, = (block.text() for block in pages.read(page)[1] if f"name: {name}}}" in block.text())
    for pattern, small in more:
        text, count = re.subn(pattern, small, text)
        assert count == 1, f"{page}: {pattern} stands {count} times in the job {name}"
    return text


def texts(folder, name, times=1):
    (folder / name).mkdir()
    (folder / name / "a.txt").write_text(rig.make_text(60000) * times, encoding="ascii")


def sum_told(printed):
    found = re.findall(r"\b[0-9a-f]{64}\b", printed)
    assert found, printed
    return found[-1]


def test_a_synopsis_is_each_of_its_commands():
    assert expanded("a FILE [--set X]... [--output text|json]") == ["a FILE", "a FILE --set X", "a FILE --output text", "a FILE --output json"]
    assert expanded("a --name NAME|--all [--yes]") == ["a --name NAME", "a --all", "a --name NAME --yes", "a --all --yes"]
    assert expanded("a b|c") == ["a b", "a c"]


def test_the_quick_start(clone):
    job = examples.job("quickstart.yaml", (r"^    steps: 24$", "    steps: 160"))
    (clone.folder / "deploy/examples/quickstart.yaml").write_text(job, encoding="utf-8")
    printed = clone.play("quick start")
    for text in printed.values():
        assert "recovered in" in text and re.search(r"\b(no|1) step redone", text) and "goodput" in text and sum_told(text), text
    assert len({sum_told(text) for text in printed.values()}) == 1, "the same bits, drill or not, beginning anew or not"
    assert "A few lines that the model writes by itself:" in printed["tools/quickstart"]
    assert (clone.folder / "build/quickstart/run.svg").exists()


def test_a_job_of_ones_own(clone):
    job = job_of("README.md", "my-gpt", MODEL)
    (clone.folder / "job.yaml").write_text(job, encoding="utf-8")
    texts(clone.folder, "texts")
    printed = clone.play("own job", (r"\bFOLDER$", "checkpoints/final"))
    assert "kill" in printed["ringmaster run job.yaml --overwrite --drill kill:1@100 --drill join@200 --drill term:0@300"]
    runs = {sum_told(text) for shown, text in printed.items() if " run " in shown}
    assert runs == {printed["tools/weights_sha256.py FOLDER"].split()[0]}, runs
    assert "complete already" in printed["ringmaster run job.yaml"].lower()
    assert {"model.safetensors", "config.json"} <= {path.name for path in (clone.folder / "checkpoints/final").iterdir()}
    assert (clone.folder / "checkpoints/run.svg").exists()


def failing_once(clone):
    """A program of which rank 1 fails in the first generation; the others are there until they are told to go."""
    (clone.folder / "train.py").write_text(
        "import os, signal\n"
        "if os.environ['TORCHELASTIC_RESTART_COUNT'] == '0':\n"
        "    if os.environ['RANK'] == '1':\n"
        "        raise ValueError('no such thing')\n"
        "    signal.pause()\n", encoding="ascii")
    (clone.folder / "stubs/python").symlink_to(sys.executable)


def pattern_of(line):
    """What a line of output says wherever it is run: its numbers are others each time."""
    return re.sub(r"\d+(\.\d+)?", r"\\d+(\\.\\d+)?", re.escape(line.strip()))


def test_a_program_of_ones_own_is_told_of_as_the_page_has_it(clone):
    blocks = pages.read("README.md")[1]
    fragment, = (block.text() for block in blocks if "command: [python3, train.py]" in block.text())
    told, = (block.lines for block in blocks if block.lines[0].startswith("worker 1 failed"))
    head = "apiVersion: ringmaster.dev/v1alpha1\nkind: TrainingJob\nmetadata: {name: own}\n"
    (clone.folder / "job.yaml").write_text(head + fragment, encoding="utf-8")
    failing_once(clone)
    printed = clone.run("ringmaster run job.yaml")
    for line in told:
        assert re.search(pattern_of(line), printed), f"{line}\n{printed}"


def test_a_mistake_in_a_job_file_is_told_as_the_page_has_it(clone):
    told, = (block.lines[0] for block in pages.read("docs/job-file.md")[1] if block.lines[0].startswith("job.yaml:"))
    number = int(told.split(":")[1])
    lines = job_of("docs/job-file.md", "first").splitlines()
    trainer = lines.index("  trainer:")
    moved = [*lines[:trainer], *[""] * (number - 2 - trainer), "  trainer:", "    batch: {lanes: 5000}", *lines[trainer + 1:]]
    (clone.folder / "job.yaml").write_text("\n".join(moved) + "\n", encoding="utf-8")
    assert told in clone.run("ringmaster run job.yaml", 2)


def test_each_job_of_a_page_is_one(clone):
    """Those that stand there whole; README's and programs.md's, too."""
    texts(clone.folder, "texts")
    texts(clone.folder, "books")
    jobs = [block for page in pages.pages() for block in pages.read(page)[1] if block.language == "yaml" and "kind: TrainingJob" in block.text()]
    assert {block.page for block in jobs} >= {"README.md", "docs/job-file.md", "docs/programs.md"}
    for block in jobs:
        (clone.folder / "job.yaml").write_text(block.text(), encoding="utf-8")
        clone.run("ringmaster check job.yaml")


def test_the_command_line(clone):
    rig.make_job(clone.folder, workers__target=2, trainer__steps=20, checkpoint__everySteps=10)
    places = iter(range(9))
    page = "docs/exit-codes-and-events.md"
    delete = "ringmaster checkpoint delete URI"
    stays = {f"{delete} {which}{more}": 2 for which in ("--name NAME", "--all") for more in ("", " --endpoint URL", " --region NAME")}
    printed = clone.play(
        "command line", (r"\bFILE\b", "job.yaml"), (r"spec\.x\.y=VALUE", "spec.trainer.threads=1"), (r"--drill D\b", "--drill kill:1@5"),
        (r"--port N\b", "--port 0"), (r"(--tokens|--seed) N\b", r"\1 5"), (r"\bTEXT\b", "'When a'"), (r"--temperature X", "--temperature 0.5"),
        (r"\bFOLDER\b", "checkpoints/final"), (r"--name NAME", "--name step-00000010"), (r"\bURI\b", "checkpoints"),
        (r"\bTARGET\b", lambda _: f"model{next(places)}"), (r"--endpoint URL", "--endpoint http://127.0.0.1:1"), (r"--region NAME", "--region here"),
        *([] if shutil.which("man") else [(r"man -l -", "cat")]), code=stays)
    for shown in (synopsis for synopsis in commands.RUN["command line"] if "--output text|json" in synopsis and "list" not in synopsis):
        assert '{"' in printed[shown], shown
    sentences = " ".join(pages.read(page)[0].split())
    told = re.findall(r"`(\w+)`", sentences.partition("As JSON one object: ")[2].partition("; of a job")[0])
    said = clone.run("ringmaster check job.yaml --output json")
    assert told and set(json.loads(said)) == {name for name in told if name not in ("checkpoint", "step", "complete", "gpuBytes")}, said
    assert "complete -" in clone.run("source <(ringmaster completion bash) && complete -p ringmaster")
    assert "RINGMASTER" in printed["ringmaster manual | man -l -"].upper()


def test_what_is_installed(clone):
    printed = clone.play("installed", (r"\bDIR\b", "put"))
    assert len(printed) == len(commands.RUN["installed"])
    for name in ("lib/libringmaster.so", "include/ringmaster.h", "share/ringmaster/python/ringmaster/__init__.py"):
        assert (clone.folder / "put" / name).exists(), name


def test_the_tutorial(clone, s3, finish):
    """Its job with a small model, of text; its bucket is a prefix of one that is here."""
    rig.make_job(clone.folder / "small", checkpoint__uri=f"{s3.uri}/gpt2-124m", trainer__steps=4)
    rig.check_complete(finish(clone.folder / "small/job.yaml", env=s3.env), last=4)
    texts(clone.folder, "texts", 120)  # a hundredth of it is 64 sequences and more of that model
    clone.run("tools/text_to_shards.py --bytes --output shards texts/")
    (clone.folder / "tokenizer.json").write_bytes(s3.get("gpt2-124m/final/tokenizer.json"))
    printed = clone.play("tutorial", (r"s3://models/", f"{s3.uri}/"), (r" /models/", f" {clone.folder}/served/"), **s3.env)
    told = printed[commands.RUN["tutorial"][0]]
    assert all(word in told for word in ("parameters", "memory", "tokens", "passes", "checkpoint")), told
    assert (clone.folder / "model/model.safetensors").exists() and (clone.folder / "served/gpt2-124m/final/config.json").exists()


def test_what_docker_would_run_of_the_clusters_quick_start(clone):
    """The words behind the image's name, with the folder that the image has."""
    (clone.folder / "deploy/examples/quickstart-cluster.yaml").write_text(examples.job("quickstart-cluster.yaml"), encoding="utf-8")
    shown, = (text for text in commands.ABSENT if text.startswith("docker run "))
    words = filled(shown.partition("--entrypoint ")[2], [(r"REGISTRY/\S+ ", ""), (r"/job/", "deploy/examples/"), (r"/tmp/alone", f"{clone.folder}/alone")])
    printed = clone.run(f"{words} --set spec.trainer.data.uri=deploy/examples/text")
    assert sum_told(printed) and (clone.folder / "alone/final/model.safetensors").exists()


def test_the_trainer_by_hand(clone):
    small = "bench-step --layers 1 --heads 2 --width 16 --context 16 --vocabulary 256"
    printed = clone.play("trainer", (r"bench-step", small))
    told, = (block.lines[0] for block in pages.read("docs/model.md")[1] if block.lines[0].startswith("numerics "))
    assert re.match(r"numerics [0-9a-f]{16}, fp32, \w+, .*, oneDNN \d", told)
    assert re.match(r"numerics [0-9a-f]{16}, fp32, \w+, .*, oneDNN \d.*\nprobe [0-9a-f]{64}\n", printed["ringmaster-trainer fingerprint --probe"])
    for line in printed[commands.RUN["trainer"][1]].splitlines():
        assert json.loads(line)["loss"] > 0


def test_the_simulator_by_hand(clone):
    printed = clone.play("simulator", (r"--crowd --seeds 1\.\.\d+", "--crowd --seeds 1..2"), (r"\.\.\d{3,}(?!\d| --plant)", "..40"))
    for shown, text in printed.items():
        assert re.search(r"\d+ of \d+ seeds failed" if "--plant" in shown else r"\b0 of \d+ seeds failed", text), f"{shown}\n{text[-500:]}"


def test_tests_by_hand(clone):
    (clone.folder / "agent").unlink()
    (clone.folder / "agent").mkdir()
    (clone.folder / "agent/a.c").write_text("int  a( void ){return 1;}\n", encoding="ascii")
    printed = clone.play("tests by hand", (r"\bNAME_test\b", "str_test"), (r"'suite/name'", "'str/*'"), (r"-k kill$", "-k kill --collect-only -q"))
    assert re.search(r"Tested: [1-9]", printed[commands.RUN["tests by hand"][0]])
    assert "kill" in printed["/usr/bin/python3 -m pytest tests/e2e/exact_test.py -k kill"]
    assert (clone.folder / "agent/a.c").read_text(encoding="ascii").startswith("int a(void)\n{")


def test_who_is_started_by_others_says_so(clone):
    for shown in commands.RUN["names"]:
        assert shown.split()[1] in clone.run(shown, 2), shown


def test_a_store_by_hand(clone):
    """What runs until it is killed has told its environment by then."""
    for shown in commands.RUN["store"]:
        text = f"{shown} --filter 'contract/*create*'" if " -- " in shown else shown
        process = subprocess.Popen(["bash", "-c", f"exec {text}"], cwd=clone.folder, env={**os.environ, **clone.environment(), "HOME": os.environ["HOME"]},
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = list(iter(process.stdout.readline, "\n" if " -- " not in shown else ""))
        if " -- " not in shown:
            process.terminate()
        code = process.wait(timeout=rig.DEADLINE_S)
        if code == 77:
            pytest.skip("".join(lines))
        assert code == 0 and any("AWS_ENDPOINT_URL_S3=" in line or "Passing" in line for line in lines), "".join(lines)


@pytest.mark.parametrize("shown", commands.ASKED)
def test_what_takes_long_reads_each_word(clone, shown):
    printed = clone.run(f"{shown} {NONSENSE}", 2, RINGMASTER_BIN=str(rig.BIN))
    assert re.search(rf"error: unrecognized arguments: {NONSENSE}$", printed, re.MULTILINE), printed


@pytest.mark.parametrize("program, option", [(program, option) for program, given in commands.OPTIONS.items() for option in given])
def test_an_option_that_a_sentence_names_is_read(clone, program, option):
    printed = clone.run(f"{program} {option} {NONSENSE}", 2)
    refused = re.findall(r"(?:unrecognized arguments: |unrecognized option '|^[\w-]+: )(--[\w-]+)", printed, re.MULTILINE)
    assert refused == [NONSENSE], printed


def test_each_command_has_its_help(clone):
    for shown in commands.RUN["command line"]:
        name = re.match(r"ringmaster( [a-z]+)*(?= |$)", shown)
        for word in ("--help", "-h") if name and " " in name[0] else ():
            printed = clone.run(f"{name[0]} {word}")
            assert name[0] in printed and "xample" in printed, printed
