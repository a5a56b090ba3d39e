"""What bash, zsh and fish make of a word that is begun: each of the table's commands, options and values, and files."""

import re
import subprocess

import pytest

import rig
import shell_rig

PROGRAM = str(rig.BIN / "ringmaster")
SETUP = {"bash": [f"source <('{PROGRAM}' completion bash)"],
         "zsh": [*shell_rig.ZSH, f"source <('{PROGRAM}' completion zsh)"],
         "fish": [f"'{PROGRAM}' completion fish | source"]}
FILES = [("run jo", ["run", "job.yaml"]), ("run two", ["run", "two words.yaml"]), ("run --output json jo", ["run", "--output", "json", "job.yaml"]),
         ("generate checkpoints/fi", ["generate", "checkpoints/final/"]), ("checkpoint list checkpo", ["checkpoint", "list", "checkpoints/"]),
         ("checkpoint export checkpoints checkpo", ["checkpoint", "export", "checkpoints", "checkpoints/"])]


def table():
    """Each command's words, with its options: name to what its value stands for, or none."""
    told = subprocess.run([PROGRAM, "manual"], capture_output=True, text=True, check=True).stdout.replace("\\-", "-")
    for part in told.split('.SS "ringmaster ')[1:]:
        name = re.match(r"((checkpoint|data) )?\w+", part)[0]
        operands = part[len(name):part.index('"')].strip()
        yield name, operands, {found[1]: found[2] for found in re.finditer(r"^\.B --([\w-]+) ?(.*)$", part, re.MULTILINE)}


def begun(word, others):
    """As much of it as no other begins with; the word itself where another goes on from it."""
    return next((word[:n] for n in range(1, len(word)) if sum(other.startswith(word[:n]) for other in others) == 1), word)


def of_table():
    known = list(table())
    firsts = {name.split()[0] for name, _, _ in known}
    verbs = {first: {name.split()[1] for name, _, _ in known if name.startswith(f"{first} ")} for first in firsts}
    assert len(known) == 10 and "list" in verbs["checkpoint"] and verbs["data"] == {"index"}, "the page was read"
    yield from ((begun(first, firsts), [first]) for first in firsts if begun(first, firsts) != first)
    yield from ((f"{first} {begun(verb, of_it)}", [first, verb]) for first, of_it in verbs.items() for verb in of_it)
    for name, operands, options in known:
        for option, value in options.items():
            yield f"{name} --{begun(option, {*options, 'help'})}", [*name.split(), f"--{option}"]
            if "|" in value:
                words = value.split("|")
                yield from ((f"{name} x --{option} {begun(word, words)}", [*name.split(), "x", f"--{option}", word]) for word in words)
        if "|" in operands:
            words = operands.split("|")
            yield from ((f"{name} {begun(word, words)}", [*name.split(), word]) for word in words)
        yield f"{name} --he", [*name.split(), "--help"]
    yield "--ver", ["--version"]


def here(folder):
    """Folders have names of commands, too: a command gets no slash."""
    for name in ("run", "checkpoints/final"):
        (folder / name).mkdir(parents=True)
    for name in ("job.yaml", "two words.yaml"):
        (folder / name).touch()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_each_word_of_the_table_and_files(shell, tmp_path):
    here(tmp_path)
    cases = [*of_table(), *FILES]
    lines = [typed for typed, _ in cases]
    ask = shell_rig.in_fish if shell == "fish" else lambda *words: shell_rig.on_terminal(shell, *words)
    made = ask(tmp_path, tmp_path, SETUP[shell], lines)
    wrong = {typed: got for (typed, wanted), got in zip(cases, made, strict=True) if got != wanted}
    assert len(cases) > 60 and not wrong
