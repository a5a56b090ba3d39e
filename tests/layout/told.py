"""Rules of what comments and pages say of the tree, each a function that returns its violations as sentences.

As in rules.py, which they stand on; told_test.py holds the tree to them and plants violations.
"""

import concurrent.futures
import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import rules

# What lies in the root: whatever else is there was left by a tool, or has a folder.
ROOT_FILES = {".clang-format", ".dockerignore", ".gitignore", "CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md",
              "SECURITY.md"}
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
# In a comment: a file with its folder. A name in capitals stands for many (kernels/NAME.h).
PATH = re.compile(r"(?<![\w./<-])((?:\w[\w-]*/)+[a-z][\w-]*\.(?:c|h|cu))\b")
# A field of a folder's one state, written: set, counted, filled, or given to somebody as it is.
WRITES = re.compile(r"(?:\bst|turn->st)->(\w+)(?:\.\w+|\[[^\]]*\])*\s*(?:[-+|&]?=(?!=)|\+\+|--)|(?:\+\+|--)(?:\bst|turn->st)->(\w+)"
                    r"|(?:mem(?:cpy|set)|text_copy|snprintf)\(&?(?:\bst|turn->st)->(\w+)")
# The same of a worker of it, which goes by one of these names.
WRITES_WORKER = re.compile(r"(?:\b(?:w|source)->|\bst->worker\[[^\]]*\]\.)(\w+)(?:\.\w+|\[[^\]]*\])*\s*(?:[-+|&]?=(?!=)|\+\+|--)")


def check_paths(root):
    """A file that a comment names is there, from the root, or from a folder that the comment's own file lies in."""
    root, wrong = Path(root), []
    for path in rules.sources(root, rules.SOURCE_FOLDERS + ("tests",), rules.C_LIKE):
        text = (root / path).read_text()
        for comment in COMMENT.finditer(text):
            for found in PATH.finditer(comment[0]):
                if not any((above / found[1]).exists() for above in (root / path).parents if above.is_relative_to(root)):
                    line = text.count("\n", 0, comment.start() + found.start()) + 1
                    wrong.append(f"{path}:{line}: there is no {found[1]}")
    return wrong


def check_root_files(root):
    """The root has the files that it is known for, of those that are kept."""
    kept = subprocess.run(["git", "ls-files"], cwd=root, check=True, text=True, stdout=subprocess.PIPE).stdout.split()
    return [f"{name}: what has no business in the root" for name in kept if "/" not in name and name not in ROOT_FILES]


def read_shared(path):
    """{(layer, layers beside it...): fields} of the lines `shared LAYER LAYER... : FIELD...` of a layers.txt."""
    found = {}
    for line in re.sub(r"#.*", "", Path(path).read_text()).splitlines():
        words = line.split()
        if words and words[0] == "shared":
            at = words.index(":")
            found.setdefault(tuple(words[1:at]), set()).update(words[at + 1:])
    return found


def fields_written(root, folder, layer):
    """{layer: fields of the folder's state that its files write}."""
    written = {}
    for stem, of in layer.items():
        source = Path(root) / folder / f"{stem}.c"
        text = rules.without_comments(source.read_text()) if source.exists() else ""
        for match in WRITES.finditer(text):
            written.setdefault(of, set()).add(next(filter(None, match.groups())))
        written.setdefault(of, set()).update(f"worker.{name}" for name in WRITES_WORKER.findall(text))
    return {of: fields - {"worker"} for of, fields in written.items()}


def check_shared_fields(root):
    """What both sides of a folder's state write is listed, and the page of the folders names it."""
    root, wrong = Path(root), []
    page = (root / "docs/architecture.md").read_text()
    for text in sorted(root.glob("*/**/layers.txt")):
        folder = str(text.parent.relative_to(root))
        written = fields_written(root, folder, rules.read_file_layers(text)[0].layer)
        for (who, *others), listed in read_shared(text).items():
            both = written.get(who, set()) & set().union(*(written.get(other, set()) for other in others))
            wrong += [f"{folder}/layers.txt: {field} is written by {who} and by others, and not listed as shared" for field in sorted(both - listed)]
            wrong += [f"{folder}/layers.txt: {field} is not written by both" for field in sorted(listed - both)]
            wrong += [f"docs/architecture.md: does not name {field}, which both sides of {folder} write" for field in sorted(both)
                      if f"`{field.rpartition('.')[2]}`" not in page]
    return wrong


def check_new_things(root):
    """The files of CONTRIBUTING.md's "Where a new thing goes" are there, with what is named in them."""
    section = (Path(root) / "CONTRIBUTING.md").read_text().partition("## Where a new thing goes\n")[2].partition("\n## ")[0]
    wrong = [] if section else ["CONTRIBUTING.md: does not say where a new thing goes"]
    for name, inside in re.findall(r"`([\w.-]+(?:/[\w.-]+)+)`(?: \(([^)]*)\))?", section):
        path = Path(root) / name
        if not path.exists():
            wrong.append(f"CONTRIBUTING.md: there is no {name}")
            continue
        text = path.read_text() if path.is_file() else ""
        wrong += [f"CONTRIBUTING.md: {name} has no {word}" for word in re.findall(r"`([^`]+)`", inside) if not re.search(rf"\b{word}\b", text)]
    return wrong


TAG = re.compile(r"^(?:struct|enum|union) (\w+)\s*\{", re.M)
# Both are caches, of objects of the API server and of data, in programs that never meet.
SHARED_TAGS = {"cache"}


def check_tags(root):
    """A struct's name is one header's: what the header defines, or what its .c file defines for it."""
    found, wrong = {}, []
    for path in rules.sources(root, suffixes=(".h",)):
        text, twin = rules.without_comments((Path(root) / path).read_text()), (Path(root) / path).with_suffix(".c")
        names = set(TAG.findall(text))
        if twin.exists():
            names |= {name for name in TAG.findall(rules.without_comments(twin.read_text())) if re.search(rf"\bstruct {name}\b", text)}
        for name in names - SHARED_TAGS:
            if name in found:
                wrong.append(f"{path}: {name} is also what {found[name]} has")
            found[name] = path
    return wrong


# A word with two meanings, which the glossary has with their places: where it means the one, and where the other.
TWO_MEANINGS = {"snapshot": (rules.STATES_SNAPSHOT, rules.PROCESSES_SNAPSHOT)}


def check_meanings(root):
    """A name with such a word, and another one beside it, is of one of its two places."""
    wrong = []
    for word, places in TWO_MEANINGS.items():
        found = [{}, {}]
        for path in rules.sources(root):
            of = next((i for i, place in enumerate(places) if re.match(place, path)), None)
            text = rules.without_comments((Path(root) / path).read_text()) if of is not None else ""
            for name in set(re.findall(r"[A-Za-z]\w*", text)):
                if word in name.lower().split("_") and name.lower() != word:
                    found[of].setdefault(name, path)
        wrong += [f"{found[1][name]}: {name} has another {word} in it than {found[0][name]}" for name in sorted(set(found[0]) & set(found[1]))]
    return wrong


SENTENCE = re.compile(r'\bRM_ASSERT\(((?:[^"()]|\((?:[^()"]|\([^()]*\))*\)|"(?:\\.|[^"\\])*")*)\);', re.S)


def check_sentences(root):
    """What a failed assertion says has a value in it, and a state by its name."""
    wrong = []
    for path in rules.sources(root, suffixes=(".c", ".h")):
        text = (Path(root) / path).read_text()
        for match in SENTENCE.finditer(text):
            line = text.count("\n", 0, match.start()) + 1
            said = "".join(re.findall(r'"((?:\\.|[^"\\])*)"', match[1]))
            if "%" not in said and said not in BARE:
                wrong.append(f"{path}:{line}: \"{said}\" has no value in it")
            named = path.startswith(NAMED_STATES) and path not in BEFORE_NAMES and not CHECKS_NUMBER.search(match[1])
            if named and (NUMBERED.search(said) or NUMBER_OF.search(match[1])):
                wrong.append(f"{path}:{line}: \"{said}\": that state has a name")
    return wrong


# Of trainer/core, whose file has not one line of room.
BARE = {"a step is told, and none is held", "memory is waited for that nobody reads"}
# Where states, modes, stages and commands have names: rdzv_state_name, state_name of a launcher, agent_trainer_name, elastic_mode_name, plan_mode_name.
NAMED_STATES = ("coordinator/core/", "agent/core/", "agent/launch/core/", "trainer/core/", "trainer/engine/", "operator/core/")
# One of them by its number: as the sentence says, or as the value that it is given.
NUMBERED = re.compile(r"\b(?:state|mode|stage|command|phase) %d")
NUMBER_OF = re.compile(r"\(int\)(?:[\w\[\]]+(?:->|\.))*(?:state|mode|stage|running|command|phase|connection|trainer|outcome)\b(?!\.)")
CHECKS_NUMBER = re.compile(r"\A\s*\(unsigned\)")  # that it is one that has a name
# They stand below the names of states in layers.txt.
BEFORE_NAMES = {"coordinator/core/rdzv_invariants.c", "coordinator/core/rdzv_goodput.c", "coordinator/core/rdzv_states.c"}


def check_fuzz_targets(root):
    """Each target of the fuzzer has its row in docs/testing.md, and each row a target."""
    there = {path.name.removesuffix("_fuzz.c") for path in (Path(root) / "tests/fuzz").glob("*_fuzz.c")}
    section = (Path(root) / "docs/testing.md").read_text().partition("\n## Fuzzing\n")[2].partition("\nFound so:")[0]
    told = set(re.findall(r"^\| `(\w+)` \|", section, re.M))
    return [f"docs/testing.md: lacks the fuzzer's target {name}" for name in sorted(there - told)] + \
           [f"docs/testing.md: there is no target {name} of the fuzzer" for name in sorted(told - there)]


MANY_WORKERS = 256  # of which common/base/limits.h says that it is tried


def compile_with_many(entry):
    """The first thing that the compiler has against a file where a job may have so many workers; None. As the build compiles it, without an object."""
    words = shlex.split(entry["command"])
    if Path(words[0]).name == "ccache":
        del words[0]
    at = words.index("-o")
    del words[at:at + 2]
    done = subprocess.run([*words, "-fsyntax-only", f"-DRM_WORKERS_MAX={MANY_WORKERS}"], cwd=entry["directory"], text=True, check=False,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode and next((line for line in done.stdout.splitlines() if "error" in line), done.stdout)


def check_many_workers(root, build):
    """Each file of the programs compiles where a job may have more workers than are tested: no mask, no table and no text is made for 64 alone."""
    root, entries = Path(root).resolve(), {}
    for entry in json.loads((Path(build) / "compile_commands.json").read_text()):
        path = Path(entry["file"])
        if path.is_relative_to(root) and path.relative_to(root).parts[0] in rules.SOURCE_FOLDERS and "RM_WORKERS_MAX" not in entry["command"]:
            entries.setdefault(str(path.relative_to(root)), entry)
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        found = zip(sorted(entries), pool.map(compile_with_many, (entries[path] for path in sorted(entries))))
        wrong = [f"{path}: does not compile for {MANY_WORKERS} workers: {why}" for path, why in found if why]
    return wrong if entries else [f"{build}: compiles no file of the programs"]


# For whoever looks into a pod, or a user's program that says where it is: nothing of ours reads them.
FOR_OTHERS = {"RINGMASTER_POD_NAME", "RINGMASTER_NODE_NAME"}


def check_pod_variables(root):
    """What the operator puts into a pod's environment some program reads there, or the pod's own command line does."""
    known = (Path(root) / "common/os/config.c").read_text()
    texts = {path: (Path(root) / path).read_text() for path in rules.sources(root, folders=("operator",), suffixes=(".c",))}
    used = "".join(texts.values())
    return [f"{path}: {name}, which common/os/config.c does not read" for path, text in texts.items()
            for name in sorted(set(re.findall(r'"(RINGMASTER_[A-Z0-9_]*[A-Z0-9])"', text)) - FOR_OTHERS) if f'"{name}"' not in known and f"$({name})" not in used]
