"""What comes out at the end: text, a loss that others can work out, and files that others open."""

import json
import re
import subprocess
import sys

import pytest

import rig

EVALUATION = {"trainer__evaluation__everySteps": 40, "trainer__evaluation__sequences": 16,
              "trainer__evaluation__holdOut": 0.1}


def generate(folder, *arguments):
    return subprocess.run([str(rig.BIN / "ringmaster"), "generate", str(folder), *map(str, arguments)],
                          capture_output=True, timeout=rig.DEADLINE_S, check=False)


@pytest.mark.sanitized
def test_a_finished_model_writes_text(tmp_path, finish):
    folder = rig.folder_of(rig.check_complete(finish(rig.make_job(tmp_path)))["uri"])
    first = generate(folder, "--prompt", "the ring ", "--tokens", 80, "--seed", 1)
    assert first.returncode == 0, first.stderr
    text = first.stdout.decode()  # valid UTF-8
    assert len(text.strip()) > 20, text
    again = generate(folder, "--prompt", "the ring ", "--tokens", 80, "--seed", 1)
    assert again.stdout == first.stdout, "one seed, one text"
    other = generate(folder, "--prompt", "the ring ", "--tokens", 80, "--seed", 2)
    assert other.stdout != first.stdout, "another seed, another text"
    for prompt in ("--prompt=-h", "--prompt=--help"):
        asked = generate(folder, prompt, "--tokens", 80, "--seed", 1)
        assert asked.returncode == 0 and not asked.stdout.startswith(b"usage"), "a prompt that reads like a question for help"
        assert asked.stdout != first.stdout, "another prompt, another text"


def test_the_card_beside_the_weights_has_the_job_that_makes_them_again(tmp_path, finish):
    run = finish(rig.make_job(tmp_path, workers__target=3, trainer__isa="SSE41", **EVALUATION), "--drill", "kill:1@20")
    first = rig.check_complete(run)
    card = (rig.folder_of(first["uri"]) / "README.md").read_text()
    for words in ("# tiny\n", first["weightsSha256"], f"loss of the last step | {first['loss']:.4f}", "| exact | yes",
                  f"held-out loss, after step 120 | {run.of('evaluated')[-1]['loss']:.4f}"):
        assert words in card, card
    (tmp_path / "again").mkdir()
    (tmp_path / "again" / "data").symlink_to(tmp_path / "data")
    job = tmp_path / "again" / "job.yaml"
    job.write_text(card.partition("```yaml\n")[2].partition("```")[0])
    assert rig.check_complete(finish(job))["weightsSha256"] == first["weightsSha256"]


def options_of_generate():
    """Each option of the help, with the default that it names."""
    told = subprocess.run([str(rig.BIN / "ringmaster"), "generate", "--help"], capture_output=True, text=True, check=True).stdout
    found = dict(re.findall(r"^  --(\w+) \S+ +.*?(?:\(default (\S+)\))?$", told, re.MULTILINE))
    assert len(found) == 4, told
    return found


def test_a_default_is_what_the_help_says(tmp_path, finish):
    folder = rig.folder_of(rig.check_complete(finish(rig.make_job(tmp_path, trainer__steps=20)), last=20)["uri"])
    defaults = {name: default for name, default in options_of_generate().items() if default}
    assert set(defaults) == {"tokens", "seed", "temperature"}
    plain = generate(folder, "--prompt", "the ring ")
    given = generate(folder, "--prompt", "the ring ", *(word for name, default in defaults.items() for word in (f"--{name}", default)))
    assert plain.returncode == 0 and plain.stdout == given.stdout, (plain, given)


@pytest.mark.parametrize("spelled", [lambda name, value: [f"--{name}", value], lambda name, value: [f"--{name}={value}"],
                                     lambda name, value: [f"--{name[:-1]}", value]], ids=["apart", "with a sign", "short"])
def test_each_option_of_the_help_is_taken_however_it_is_written(tmp_path, spelled):
    """There is no model here (3), which is looked for once all words are understood (2)."""
    for name in options_of_generate():
        good, bad = generate(tmp_path, *spelled(name, "1")), generate(tmp_path, *spelled(name, "-x"))
        assert good.returncode == 3 and str(tmp_path) in good.stderr.decode(), good
        assert name == "prompt" or (bad.returncode == 2 and f"--{name} is -x" in bad.stderr.decode()), bad


def test_generating_from_nothing_is_a_sentence(tmp_path):
    done = generate(tmp_path, "--prompt", "x", "--tokens", 5)
    assert done.returncode == 3 and str(tmp_path) in done.stderr.decode()
    assert not done.stdout


@pytest.mark.parametrize("workers, drills", [(1, []), (3, ["kill:1@20", "join@25", "trainer:0@40"])])
def test_each_evaluation_is_told_once_and_is_the_same(tmp_path, finish, workers, drills):
    arguments = [word for drill in drills for word in ("--drill", drill)]
    run = finish(rig.make_job(tmp_path / "a", workers__target=workers, **EVALUATION), *arguments)
    rig.check_complete(run)
    alone = finish(rig.make_job(tmp_path / "b", **EVALUATION))
    rig.check_complete(alone)
    told = [(e["step"], e["loss"]) for e in run.of("evaluated")]
    assert told == [(e["step"], e["loss"]) for e in alone.of("evaluated")]
    assert [step for step, _ in told] in ([40, 80, 120], [0, 40, 80, 120])


def held_out_sequences(tmp_path, context, hold_out, wanted):
    """The held-out samples as the job file's documentation defines them."""
    files = sorted((p.relative_to(tmp_path / "data").as_posix().encode(), p) for p in (tmp_path / "data").rglob("*.txt"))
    stream = b"".join(path.read_bytes() for _, path in files)
    count = (len(stream) - 1) // context
    first = count - int(hold_out * count)
    return [list(stream[i * context:i * context + context + 1]) for i in range(first, count)][:wanted]


def test_the_evaluated_loss_agrees_with_the_numpy_reference(tmp_path, finish):
    sys.path.insert(0, str(rig.ROOT / "tests/reference"))
    import gpt2_numpy  # pylint: disable=import-outside-toplevel,import-error

    run = finish(rig.make_job(tmp_path, workers__target=2, trainer__model__width=80, trainer__model__heads=5,
                              trainer__model__context=37, trainer__batch__lanes=7, workers__max=7, **EVALUATION))
    folder = rig.folder_of(rig.check_complete(run)["uri"])
    told = next(e["loss"] for e in run.of("evaluated") if e["step"] == rig.STEPS)
    model = gpt2_numpy.Model(str(folder))
    losses = [model.loss(sequence) for sequence in held_out_sequences(tmp_path, 37, 0.1, 16)]
    worked_out = sum(losses) / len(losses)
    assert told == pytest.approx(worked_out, abs=1e-4)


def test_the_small_script_gives_the_same_hash(tmp_path, finish):
    complete = rig.check_complete(finish(rig.make_job(tmp_path)))
    done = subprocess.run(["/usr/bin/python3", str(rig.ROOT / "tools/weights_sha256.py"),
                           str(rig.folder_of(complete["uri"]))], capture_output=True, text=True, check=True)
    assert done.stdout.split()[0] == complete["weightsSha256"]


def test_transformers_opens_what_was_exported_and_finds_the_loss_that_was_told(tmp_path, finish, reference_python):
    """Each logit is numpy's, and the loss over the held-out text is the one that the trainer told at its end."""
    run = finish(rig.make_job(tmp_path, workers__target=2, trainer__model__width=80, trainer__model__heads=5,
                              trainer__model__context=37, trainer__batch__lanes=7, workers__max=7, **EVALUATION))
    folder = rig.folder_of(rig.check_complete(run)["uri"]).parent
    subprocess.run([str(rig.BIN / "ringmaster"), "checkpoint", "export", str(folder), str(tmp_path / "exported")], capture_output=True,
                   timeout=rig.DEADLINE_S, check=True)
    (tmp_path / "sequences.json").write_text(json.dumps(held_out_sequences(tmp_path, 37, 0.1, 16)))
    done = subprocess.run([reference_python, str(rig.ROOT / "tests/reference/open_with_transformers.py"), str(tmp_path / "exported"),
                           str(tmp_path / "sequences.json")], capture_output=True, text=True, timeout=rig.DEADLINE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    told = next(e["loss"] for e in run.of("evaluated") if e["step"] == rig.STEPS)
    assert told == pytest.approx(float(done.stdout.split()[-1]), abs=1e-5)


def test_transformers_writes_what_generate_writes_from_the_folder_as_it_lies(tmp_path, finish, reference_python):
    """Weights, tokenizer and settings, with nothing put beside them; and `tokenizers` gives every text back."""
    rig.check_complete(finish(rig.make_job(tmp_path, trainer__model__context=96)))
    folder = tmp_path / "checkpoints/final"
    prompt, tokens = "the ring ", 80
    ours = generate(folder, "--prompt", prompt, "--tokens", tokens, "--temperature", 0)
    theirs = subprocess.run([reference_python, str(rig.ROOT / "tests/reference/write_with_transformers.py"), str(folder), prompt, str(tokens)],
                            capture_output=True, timeout=rig.DEADLINE_S, check=False)
    assert theirs.returncode == 0, theirs.stderr.decode()
    assert ours.stdout.decode() == theirs.stdout.decode() + "\n"
    assert len(set(ours.stdout.split())) > 2, "words, and not one of them again and again"


def test_training_can_start_from_a_finished_folder(tmp_path, finish):
    first = rig.check_complete(finish(rig.make_job(tmp_path / "a")))
    run = finish(rig.make_job(tmp_path / "b", trainer__model__init=rig.folder_of(first["uri"])))
    rig.check_complete(run)
    assert run.of("step")[0]["loss"] < first["loss"] + 0.5, "it starts where the other ended"
