"""Each command that a page shows is run by a test: that none is forgotten. What runs them is tests/e2e/docs_test.py and tests/cluster/docs_test.py."""

import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests"))

import commands  # noqa: E402  (its folder is on the path only now)
import pages  # noqa: E402


def test_each_command_of_the_pages_is_run_by_a_test():
    wrong = pages.violations(commands)
    assert not wrong, "\n".join(wrong)


def test_each_story_and_each_list_is_gone_through():
    """A row that nobody reads would hold nothing."""
    for name, path in [*((f'"{story}"', "tests/e2e/docs_test.py") for story in commands.RUN), ("commands.ASKED", "tests/e2e/docs_test.py"),
                       ("commands.OPTIONS", "tests/e2e/docs_test.py"), ("in commands.CLUSTER", "tests/cluster/docs_test.py"),
                       ("in commands.NODES", "tests/cluster/docs_test.py")]:
        assert name in (ROOT / path).read_text(encoding="utf-8"), f"{path} does not go through {name} of tests/commands.py"


def test_what_can_not_be_had_here_stands_in_the_docs_with_its_reason():
    section = (ROOT / "docs/testing.md").read_text(encoding="utf-8").partition("\n## The pages' commands\n")[2].partition("\n## ")[0]
    told = dict(re.findall(r"^\| `(.+)` \| (.+) \|$", section, re.MULTILINE))
    assert told == {text.replace("|", "\\|"): why for text, why in commands.ABSENT.items()}


def test_the_columns_that_a_page_shows_are_those_that_kubectl_shows():
    (version,) = yaml.safe_load((ROOT / "crds/trainingjob.yaml").read_text(encoding="utf-8"))["spec"]["versions"]
    columns = [column["name"].upper() for column in version["additionalPrinterColumns"] if not column.get("priority")]
    heads = [line.split() for page in pages.pages() for block in pages.read(page)[1] for line in block.lines if line.startswith("NAME ")]
    assert heads and all(head == ["NAME", *columns] for head in heads), heads


def test_a_metric_has_one_name_and_one_program_that_tells_it():
    """A name that two programs tell would be one series in a query."""
    cells = [line.split("|")[1] for line in (ROOT / "docs/metrics.md").read_text(encoding="utf-8").splitlines() if line.startswith("| `ringmaster_")]
    names = [name for cell in cells for name in re.findall(r"`([a-z_]+)", cell)]
    assert len(names) > 60 and sorted(names) == sorted(set(names)), [name for name in set(names) if names.count(name) > 1]


def the_tests():
    """Names of tests, of the files that hold them, and of those that CMake makes of seeds."""
    names = set()
    for path in (ROOT / "tests").rglob("*"):
        if path.suffix in (".c", ".py"):
            text = path.read_text(encoding="utf-8")
            names |= {path.stem, *re.findall(r"^def (test_\w+)", text, re.MULTILINE), *re.findall(r"\bTest\(\s*\w+,\s*(\w+)", text)}
    return names


def test_a_bug_is_held_by_tests_that_are_there():
    tests = the_tests()
    held = [(number, name) for number, line in enumerate((ROOT / "docs/bugs.md").read_text(encoding="utf-8").splitlines(), 1) if line.startswith("| ")
            for name in re.findall(r"`(\w+_\w+_\w+_\w+)(?:\[[^`]*\])?`", re.split(r"(?<!\\)\|", line)[-2]) if not re.match(r"sim_\w+seed_\d+$", name)]
    assert len(held) > 300, "the page's last column names tests"
    missing = [f"docs/bugs.md:{number}: there is no test {name}" for number, name in held if name not in tests]
    assert not missing, "\n".join(missing)


PAGE = """# A page

Say `ringmaster run FILE --fast` or, in two lines, `tools/check
--all`; `ringmaster run` is a name, `tools/check.md` a file, and `--loud` an option.

    tools/check --fast \\
        --all          # a remark
    ringmaster check job.yaml   another remark

```yaml
ringmaster run: no command
```

    ringmaster run --> a drawing
"""
SHOWN = [("tools/check --fast --all", 6), ("ringmaster check job.yaml", 8), ("ringmaster run FILE --fast", 3), ("tools/check --all", 3),
         ("ringmaster run", 4), ("kubectl get tj -w", 10), ("kubectl delete tj/x", 11)]
ASKED = [text for text, _ in SHOWN if text != "ringmaster run"]


@pytest.fixture(name="tree")
def fixture_tree(tmp_path):
    """A page, an example with comments, a tool and a test."""
    for folder in ("docs", "tools", "tests", "deploy/examples"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "docs/page.md").write_text(PAGE, encoding="utf-8")
    (tmp_path / "deploy/examples/a.yaml").write_text("# Try:\n#   kubectl get tj -w\na: 1  # kubectl delete tj/x\nb: 2  # not a command\n", encoding="utf-8")
    (tmp_path / "tools/check").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "tools/check").chmod(0o755)
    (tmp_path / "tests/a_test.py").write_text("def helper():\n    go('kubectl', 'delete')\n\n\ndef test_it():\n    helper()\n", encoding="utf-8")
    return tmp_path


def tables(**more):
    none = {"RUN": {}, "CLUSTER": [], "NODES": [], "ASKED": ASKED, "ELSEWHERE": {}, "ABSENT": {}, "OPTIONS": {"x": ["--loud"]}, "OPTIONS_OF_OTHERS": []}
    return SimpleNamespace(**{**none, **more})


def test_a_page_whose_commands_are_all_held_is_let_be(tree):
    assert sorted(command.text for command in pages.commands(tree)) == sorted(text for text, _ in SHOWN)
    assert not pages.violations(tables(), tree)


@pytest.mark.parametrize("text", ASKED)
def test_a_command_that_no_test_runs_is_found_with_its_place(tree, text):
    wrong = pages.violations(tables(ASKED=[other for other in ASKED if other != text]), tree)
    place = {"kubectl get tj -w": "deploy/examples/a.yaml:2", "kubectl delete tj/x": "deploy/examples/a.yaml:3"}.get(text, f"docs/page.md:{dict(SHOWN)[text]}")
    assert wrong and wrong[0].startswith(f"{place}: `{text}` is run by no test: put it into a table"), wrong


def test_a_row_that_no_page_shows_is_found(tree):
    wrong = pages.violations(tables(ABSENT={"aws s3 ls": "no"}, OPTIONS={"x": ["--loud", "--quiet 1"]}), tree)
    assert wrong == ["tests/commands.py: no page shows `aws s3 ls`: take it out", "tests/commands.py: no page shows the option --quiet: take it out"]


def test_an_option_that_no_program_is_given_is_found(tree):
    (wrong,) = pages.violations(tables(OPTIONS={}), tree)
    assert wrong.startswith("docs/page.md:4: no test gives `--loud` to any program")


@pytest.mark.parametrize("places, word", [
    (["tests/a_test.py::test_it", "tests/a_test.py::helper"], None), (["tests/a_test.py::test_that"], "there is no"), (["tests/b_test.py::test_it"], "there is no"),
    (["tests/a_test.py::helper"], "is no test"), (["tests/a_test.py::test_it"], "say nothing of delete")])
def test_a_row_has_to_name_a_test_that_has_the_commands_words(tree, places, word):
    held = tables(ASKED=[text for text in ASKED if text != "kubectl delete tj/x"], ELSEWHERE={"kubectl delete tj/x": places})
    wrong = pages.violations(held, tree)
    assert (wrong == []) if word is None else len(wrong) == 1 and word in wrong[0], wrong
