"""What comments and pages say of the tree is true of it (told.py), and each rule finds what it is for."""

import json
import os
import subprocess
from pathlib import Path

import pytest

import told

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin")).parent


def show(wrong):
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.fixture(name="tree")
def small_tree(tmp_path):
    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        return tmp_path

    return write


def test_files_that_comments_name_are_there():
    show(told.check_paths(ROOT))


def test_a_comment_that_names_what_is_gone_is_found(tree):
    tree("agent/core/here.h", "/* See core/here.h, agent/core/here.h and kernels/NAME.h. */\n")
    root = tree("agent/app.c", '/* As core/here.h says;\n * and core/gone.h. */\n#include "agent/core/gone.h"\n')
    assert told.check_paths(root) == ["agent/app.c:2: there is no core/gone.h"]


def test_the_root_has_what_belongs_there():
    show(told.check_root_files(ROOT))


def test_what_a_tool_left_in_the_root_is_found(tree):
    tree("README.md", "")
    tree("docs/times.txt", "")
    root = tree("times.txt", "")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    subprocess.run(["git", "add", "."], cwd=root, check=True)
    assert told.check_root_files(root) == ["times.txt: what has no business in the root"]


def test_fields_that_both_halves_of_the_coordinator_write_are_told():
    show(told.check_shared_fields(ROOT))


def test_a_field_that_both_halves_write_unsaid_is_found(tree):
    tree("docs/architecture.md", "`saved` and `gone`")
    tree("agent/core/layers.txt", "who one\nstate two\nstep three\nshared who state : saved gone\n")
    tree("agent/core/one.c", "void f(struct rdzv *st)\n{\n    st->saved.at = 1;\n    st->told++;\n    st->own = st->theirs;\n    st->stepped = 1;\n}\n")
    tree("agent/core/two.c", "void g(const struct turn *turn)\n{\n    turn->st->saved = 2;\n    memcpy(turn->st->told, x, 1);\n    if (st->own == 2)\n        st->theirs |= 1;\n}\n")
    tree("agent/core/one.c", (tree("agent/core/three.c", "") / "agent/core/one.c").read_text() + "void k(struct rdzv_worker *w)\n{\n    w->listed = true;\n}\n")
    tree("agent/core/two.c", (tree("agent/core/three.c", "") / "agent/core/two.c").read_text() + "void m(struct rdzv *st)\n{\n    st->worker[1].listed = false;\n}\n")
    root = tree("agent/core/three.c", "void h(struct rdzv *st)\n{\n    st->stepped = 1;\n}\n")
    assert told.check_shared_fields(root) == [
        "agent/core/layers.txt: told is written by who and by others, and not listed as shared",
        "agent/core/layers.txt: worker.listed is written by who and by others, and not listed as shared", "agent/core/layers.txt: gone is not written by both",
        "docs/architecture.md: does not name told, which both sides of agent/core write",
        "docs/architecture.md: does not name worker.listed, which both sides of agent/core write"]


def test_where_a_new_thing_goes_is_there():
    show(told.check_new_things(ROOT))


def test_a_place_for_new_things_that_is_gone_is_found(tree):
    tree("common/wire/event.h", "enum event_kind { EVENT_STEP };\n")
    root = tree("CONTRIBUTING.md", "# W\n\n## Where a new thing goes\n\n| an event | `common/wire/event.h` (`enum event_kind`, its `enum event_key`), `common/wire`, `cli/gone.c` |\n\n"
                "## More\n\n`cli/no.c`\n")
    assert told.check_new_things(root) == ["CONTRIBUTING.md: common/wire/event.h has no enum event_key", "CONTRIBUTING.md: there is no cli/gone.c"]
    assert told.check_new_things(tree("CONTRIBUTING.md", "# W\n")) == ["CONTRIBUTING.md: does not say where a new thing goes"]


def test_a_struct_has_its_name_alone():
    show(told.check_tags(ROOT))


def test_a_struct_of_two_headers_is_found(tree):
    tree("common/os/pool.h", "struct pool;\nstruct pool *pool_open(void);\n")
    tree("common/os/pool.c", "struct pool {\n    int n;\n};\nstruct local {\n    int n;\n};\n")
    tree("agent/local.c", "struct local {\n    int n;\n};\n")
    root = tree("common/notice/pool.h", "struct pool {\n    int n;\n};\n")
    assert told.check_tags(root) == ["common/os/pool.h: pool is also what common/notice/pool.h has"]


def test_a_word_of_two_meanings_has_each_in_its_place():
    show(told.check_meanings(ROOT))


def test_a_name_in_both_places_of_such_a_word_is_found(tree):
    tree("trainer/engine/a.c", "int snapshot_free; struct snapshot *s;\n")
    tree("agent/freeze/b.c", "int snapshot_tool; struct snapshot *s;\n")
    root = tree("agent/snapshot/c.c", "int snapshot_free; /* snapshot_tool */\n")
    assert told.check_meanings(root) == ["agent/snapshot/c.c: snapshot_free has another snapshot in it than trainer/engine/a.c"]


def test_assertions_say_values_and_names():
    show(told.check_sentences(ROOT))


def test_an_assertion_without_a_value_or_a_name_is_found(tree):
    tree("coordinator/core/ring.c", 'void f(struct rdzv *st)\n{\n    RM_ASSERT(st->state == GO(1), "in state %d", (int)st->state);\n'
         '    RM_ASSERT(st->world > 0, "a ring "\n              "of %d", st->world);\n}\n')
    tree("operator/core/plan.c", 'void f(struct planner *p)\n{\n    RM_ASSERT(p->mode == 1, "in mode %d", (int)p->mode);\n    RM_ASSERT((unsigned)p->mode < 3, "mode %d", (int)p->mode);\n}\n')
    tree("trainer/engine/b.c", 'void f(struct b *b)\n{\n    RM_ASSERT(b, "it is given %d of %d", b->mode.count, (int)b->side[1].command);\n}\n')
    root = tree("agent/core/a.c", 'void f(int a)\n{\n    RM_ASSERT(a > 0 && (a < 9), "it is wrong");\n}\n')
    assert told.check_sentences(root) == ['agent/core/a.c:3: "it is wrong" has no value in it',
                                          'coordinator/core/ring.c:3: "in state %d": that state has a name',
                                          'operator/core/plan.c:3: "in mode %d": that state has a name',
                                          'trainer/engine/b.c:3: "it is given %d of %d": that state has a name']


def test_the_fuzzers_targets_are_told():
    show(told.check_fuzz_targets(ROOT))


def test_a_target_of_the_fuzzer_that_nobody_tells_of_is_found(tree):
    tree("tests/fuzz/new_fuzz.c", "")
    root = tree("docs/testing.md", "\n## Fuzzing\n\n| target | parses |\n|---|---|\n| `old` | x |\n\nFound so:\n\n| `x/y` | z |\n")
    assert told.check_fuzz_targets(root) == ["docs/testing.md: lacks the fuzzer's target new", "docs/testing.md: there is no target old of the fuzzer"]


def test_all_compiles_for_more_workers_than_are_tested():
    show(told.check_many_workers(ROOT, BUILD))


def test_what_is_made_for_sixty_four_workers_alone_is_found(tree):
    tree("common/base/fine.c", "int ring[RM_WORKERS_MAX];\n")
    tree("tests/mask_test.c", "_Static_assert(RM_WORKERS_MAX <= 64, \"a mask\");\n")
    root = tree("agent/core/mask.c", "_Static_assert(RM_WORKERS_MAX <= 64, \"a mask\");\n")
    entries = [{"directory": str(root), "file": str(root / path), "command": f"ccache gcc -o out.o -c {root / path}"}
               for path in ("common/base/fine.c", "tests/mask_test.c", "agent/core/mask.c")]
    tree("compile_commands.json", json.dumps(entries))
    wrong = told.check_many_workers(root, root)
    assert len(wrong) == 1 and wrong[0].startswith("agent/core/mask.c: does not compile for 256 workers: ") and "a mask" in wrong[0], wrong
    tree("compile_commands.json", "[]")
    assert told.check_many_workers(root, root) == [f"{root}: compiles no file of the programs"]


def test_what_the_operator_tells_its_pods_is_read_there():
    show(told.check_pod_variables(ROOT))


def test_a_variable_that_no_pod_reads_is_found(tree):
    tree("common/os/config.c", 'names[] = {"RINGMASTER_POD_SAVES"};\n')
    root = tree("operator/core/pod.c", 'f("RINGMASTER_POD_SAVES", "RINGMASTER_POD_SAFES", "RINGMASTER_POD_IP", "--ip=$(RINGMASTER_POD_IP)", "RINGMASTER_POD_");\n')
    assert told.check_pod_variables(root) == ["operator/core/pod.c: RINGMASTER_POD_SAFES, which common/os/config.c does not read"]
