"""What the pages show: their commands, each with the place where it stands, and the blocks of files and output beside them.

A command is a line of an indented or fenced block, or a span of code in a sentence, that begins with one of PROGRAMS, with a tool of
the tree, or with a program that is built. What stands behind two blanks is a remark. Comments of the examples count as pages."""

import ast
import os
import re
import shlex
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROGRAMS = {"apt-get", "aws", "az", "buildah", "cat", "cd", "cmake", "cp", "cpack", "ctest", "curl", "diff", "docker", "dpkg", "eksctl", "export", "gcloud",
            "git", "grep", "helm", "kill", "kubectl", "ln", "man", "mkdir", "mount", "mv", "nerdctl", "ninja", "nohup", "nvidia-smi", "pip", "pip3", "podman",
            "promtool", "python", "python3", "/usr/bin/python3", "rclone", "rm", "scp", "sh", "source", "ssh", "sudo", "sysctl", "tar", "torchrun", "ulimit",
            "wget", "zstd"}
OURS = re.compile(r"(/opt/ringmaster/bin/)?ringmaster(-[a-z]+)?$")
IN_TREE = re.compile(r"(tools|tests|build)/\S+$")
SHELL = ("", "sh", "bash", "console")  # fences that hold commands; others hold files
ABSENT_SECTION = "\n## The pages' commands\n"


@dataclass(frozen=True)
class Command:
    """One that a page shows, with single blanks between its words."""
    page: str
    line: int
    text: str

    def place(self):
        return f"{self.page}:{self.line}"


@dataclass(frozen=True)
class Block:
    """A block of a page: its language ('' where none is said), the number of its first line, its lines without the indentation."""
    page: str
    line: int
    language: str
    lines: tuple

    def text(self):
        return "\n".join(self.lines) + "\n"


def pages(root=ROOT):
    """Paths from the root: Markdown, and what has commands in its comments."""
    found = [path for path in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") if (root / path).exists()]
    for pattern in ("docs/*.md", "deploy/examples/*.yaml", "deploy/Dockerfile"):
        found += sorted(str(path.relative_to(root)) for path in root.glob(pattern))
    return found


def read(page, root=ROOT):
    """(the text with its blocks blanked out, the blocks)."""
    text = (root / page).read_text(encoding="utf-8")
    return read_markdown(page, text) if page.endswith(".md") else read_comments(page, text)


def read_markdown(page, text):
    sentences, blocks, fence, held = [], [], None, []
    for number, line in enumerate(text.splitlines(), 1):
        mark = re.match(r"\s*```(\w*)", line)
        inside = fence is not None or not mark and line.startswith("    ")
        sentences.append("" if inside or mark else line)
        if mark and fence is None:
            fence = (number + 1, mark[1])
        elif mark:
            blocks.append(Block(page, *fence, tuple(held)))
            fence, held = None, []
        elif fence:
            held.append(line)
        elif inside and blocks and not blocks[-1].language and blocks[-1].line + len(blocks[-1].lines) == number:
            blocks[-1] = Block(page, blocks[-1].line, "", (*blocks[-1].lines, line[4:]))
        elif inside:
            blocks.append(Block(page, number, "", (line[4:],)))
    return "\n".join(sentences), blocks


def read_comments(page, text):
    """Comments are sentences; what is indented in them by three blanks is a block. So is what alone stands behind a field."""
    sentences, blocks = [], []
    for number, line in enumerate(text.splitlines(), 1):
        _, mark, comment = line.partition("#")
        block = mark and (comment.startswith("   ") or line.strip() != "#" + comment and is_command(comment.strip()))
        sentences.append("" if block or not mark else comment)
        if not block:
            continue
        if blocks and blocks[-1].line + len(blocks[-1].lines) == number:
            blocks[-1] = Block(page, blocks[-1].line, "", (*blocks[-1].lines, comment.strip()))
        else:
            blocks.append(Block(page, number, "", (comment.strip(),)))
    return "\n".join(sentences), blocks


def words_of(text):
    """The words without quotes, and without variables set in front; [] where it can't be split."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    while words and re.fullmatch(r"[A-Z_]+=\S*", words[0]):
        words = words[1:]
    return words


def is_command(text, root=ROOT):
    """A word alone is the name of something, unless it is a program of the tree; what has arrows in it is a drawing."""
    words = words_of(text)
    if not words or "-->" in words:
        return False
    if len(words) == 1 and (words[0].startswith("build/") or words[0].endswith(".py")):
        return False
    if IN_TREE.match(words[0]):
        path = root / words[0]
        return words[0].startswith("build/") or path.is_file() and os.access(path, os.X_OK)
    return len(words) > 1 and (words[0] in PROGRAMS or bool(OURS.match(words[0])))


def lines_of(block):
    """(number, command) for each line of a block, with what `\\` carries over joined and remarks left out."""
    held, first = "", None
    for number, line in enumerate(block.lines, block.line):
        line = line.strip()
        held, first = (f"{held} {line}", first) if held else (line, number)
        if held.endswith("\\"):
            held = held[:-1].strip()
            continue
        yield first, re.sub(r"\s{2,}.*$", "", re.sub(r"\s+# .*$", "", held))
        held = ""


def commands_of(page, root=ROOT):
    """But for those of the section that lists what can't be had: they have to stand on another page."""
    sentences, blocks = read(page, root)
    before, listed, behind = sentences.partition(ABSENT_SECTION)
    listed += behind.partition("\n## ")[0] if listed else ""
    sentences = before + "\n" * listed.count("\n") + sentences[len(before) + len(listed):]
    found = [Command(page, number, " ".join(text.split())) for block in blocks if block.language in SHELL
             for number, text in lines_of(block) if is_command(text, root)]
    for span in re.finditer(r"`([^`]+)`", sentences):
        text = " ".join(span[1].split()).replace("\\|", "|")
        if is_command(text, root):
            found.append(Command(page, sentences.count("\n", 0, span.start()) + 1, text))
    return found


def commands(root=ROOT):
    return [command for page in pages(root) for command in commands_of(page, root)]


def options(root=ROOT):
    """Options that stand in a sentence by themselves, with or without a value."""
    found = []
    for page in pages(root):
        sentences = read(page, root)[0]
        found += [Command(page, sentences.count("\n", 0, span.start()) + 1, " ".join(span[1].split()))
                  for span in re.finditer(r"`(--[a-zA-Z][^`]*)`", sentences)]
    return found


def option_names(text):
    return re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", text)


def begins(text, other):
    """Is it the beginning of another command, word by word?"""
    return other.startswith(text + " ")


def distinguishing(text):
    """Words of a command that whoever runs it has to have: its options, and the verb of a program that has verbs."""
    words = words_of(re.sub(r"[][]", "", text.rpartition("| ")[2]))
    verbs = [word for word in words[1:] if re.fullmatch("[a-z-]+", word) and not word.startswith("-")]
    has_verbs = words[0] in ("kubectl", "helm", "promtool") or words[0].rpartition("/")[2].startswith("ringmaster")
    return [word.partition("=")[0] for word in words[1:] if word.startswith("-") and word != "--"] + (verbs[:1] if has_verbs else [])


def source_of(place, root=ROOT):
    """The text of `file`, or of what `file::name` defines; None where there is none."""
    path, _, name = place.partition("::")
    if not (root / path).is_file():
        return None
    text = (root / path).read_text(encoding="utf-8")
    if not name:
        return text
    if path.endswith(".c"):
        found = re.search(rf"^Test\(\w+, {name}\b.*?^}}", text, re.MULTILINE | re.DOTALL)
        return found and found[0]
    defined = (node for node in ast.walk(ast.parse(text)) if name == getattr(node, "name", None)
               or isinstance(node, ast.Assign) and name in (getattr(target, "id", None) for target in node.targets))
    node = next(defined, None)
    return node and ast.get_source_segment(text, node)


def violations(tables, root=ROOT):
    """What is wrong with the tables of commands.py by what the pages show: a sentence each."""
    shown = {}
    for command in commands(root):
        shown.setdefault(command.text, command)
    run = [text for story in tables.RUN.values() for text in story]
    held = [*run, *tables.CLUSTER, *tables.NODES, *tables.ASKED, *tables.ELSEWHERE, *tables.ABSENT]
    wrong = [f"{command.place()}: `{text}` is run by no test: put it into a table of tests/commands.py, or mend it"
             for text, command in shown.items() if text not in held and not any(begins(text, other) for other in shown)]
    wrong += [f"tests/commands.py: no page shows `{text}`: take it out" for text in held if text not in shown]
    wrong += [f"tests/commands.py: `{text}` stands there more than once" for text in sorted({text for text in held if held.count(text) > 1})]
    return wrong + option_violations(tables, [*run, *tables.CLUSTER, *tables.ASKED, *tables.ELSEWHERE], root) + elsewhere_violations(tables, root)


def option_violations(tables, held, root):
    known = {name for text in held for name in option_names(text)}
    own = {name for given in tables.OPTIONS.values() for text in given for name in option_names(text)}
    shown = options(root)
    wrong = [f"{option.place()}: no test gives `{option.text}` to any program: put it into OPTIONS of tests/commands.py, or mend it"
             for option in shown if not set(option_names(option.text)[:1]) & (known | own | set(tables.OPTIONS_OF_OTHERS))]
    named = {name for option in shown for name in option_names(option.text)}
    return wrong + [f"tests/commands.py: no page shows the option {name}: take it out" for name in sorted({*own, *tables.OPTIONS_OF_OTHERS} - named)]


def elsewhere_violations(tables, root):
    wrong = []
    for text, places in tables.ELSEWHERE.items():
        sources = [source_of(place, root) for place in places]
        wrong += [f"tests/commands.py: `{text}`: there is no {place}" for place, source in zip(places, sources) if source is None]
        if not places or None in sources:
            continue
        first, name = places[0].partition("::")[::2]
        if not name.startswith("test_") and not first.startswith("tools/check") and not first.endswith(".c"):
            wrong.append(f"tests/commands.py: `{text}`: {places[0]} is no test")
        program = words_of(text)[0].rpartition("/")[2]
        whole = (root / first).read_text(encoding="utf-8")
        absent = [word for word in distinguishing(text) if not any(word in source for source in sources)]
        absent += [] if program in ("kubectl", "curl") or any(program in source for source in [whole, *sources]) else [program]
        wrong += [f"tests/commands.py: `{text}`: {' and '.join(places)} say nothing of {word}" for word in absent]
    return wrong
