"""The rules find what they are for: each test plants one violation in a small tree of its own."""

import subprocess

import pytest

import rules

CMAKE = """
rm_library(common/base)
rm_library(common/os DEPS common_base LIBS Threads::Threads)
rm_library(common/wire DEPS common_base LIBS PkgConfig::JANSSON)
rm_library(agent/core DEPS common_base)
rm_library(trainer/core DEPS common_base)
rm_program(ringmaster-agent agent DEPS agent_core common_os)
"""


@pytest.fixture(name="tree")
def small_tree(tmp_path):
    """A tree that keeps all rules; returns a function that writes a file into it."""
    (tmp_path / "CMakeLists.txt").write_text(CMAKE)

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
        return tmp_path

    write("common/base/text.h", "#include <stddef.h>\nsize_t text_length(const char *text);\n")
    write("common/os/disk.h", "int disk_open(const char *path);\n")
    write("trainer/core/plan.h", "int plan_next(int step);\n")
    write("agent/core/state.c", '#include "common/base/text.h"\n')
    return write


def compile_into_build(root, path):
    build = root / "build"
    target = path.rsplit("/", 1)[0].replace("/", "_")
    out = build / "CMakeFiles" / f"{target}.dir" / f"{path}.o"
    out.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["gcc", "-O0", "-w", "-I", root, "-c", root / path, "-o", out], check=True)
    return build


def only(wrong, *words):
    assert len(wrong) == 1, wrong
    for word in words:
        assert word in wrong[0]


def test_a_clean_tree_has_no_violations(tree):
    root = tree("agent/main.c", '#include "agent/core/state.h"\n#include "common/os/disk.h"\nint main(void)\n{\n    return 0;\n}\n')
    tree("agent/core/state.h", "int state_step(int state);\n")
    assert rules.check_include_graph(root) == []
    assert rules.check_third_party(root) == []
    assert rules.check_banned_text(root) == []
    assert rules.check_lengths(root, {}) == []
    assert rules.check_headers_alone(root) == []


def test_an_upward_include_is_found(tree):
    root = tree("common/base/text.c", '#include "common/os/disk.h"\n')
    only(rules.check_include_graph(root), "common/base/text.c:1", "common/base may not use common/os")


def test_a_core_that_includes_an_adapter_is_found(tree):
    root = tree("agent/core/state.c", '#include "common/os/disk.h"\n')
    only(rules.check_include_graph(root), "agent/core may not use common/os")


def test_one_program_that_includes_another_is_found(tree):
    root = tree("agent/app.c", '#include "trainer/core/plan.h"\n')
    only(rules.check_include_graph(root), "agent may not use trainer/core")


def test_what_shares_a_program_meets_in_its_main_alone(tree):
    tree("CMakeLists.txt", CMAKE.replace("agent_core common_os)", "agent_core common_os WITH coordinator)") + "rm_library(coordinator)\n")
    tree("coordinator/app.h", "int coordinator_run(void);\n")
    root = tree("agent/main.c", '#include "coordinator/app.h"\n')
    assert rules.check_include_graph(root) == []
    tree("agent/app.c", '#include "coordinator/app.h"\n')
    only(rules.check_include_graph(root), "agent/app.c:1", "agent may not use coordinator")


def test_programs_that_are_linked_to_each_other_are_found(tree):
    root = tree("CMakeLists.txt", CMAKE + "rm_library(agent/other DEPS trainer_core)\n")
    only(rules.check_include_graph(root), "agent/other", "meet only in common/")


def test_dependencies_of_dependencies_are_allowed(tree):
    root = tree("agent/app.c", '#include "common/base/text.h"\n')
    assert rules.check_include_graph(root) == []


def test_a_file_in_no_library_is_found(tree):
    root = tree("common/misc/things.c", "int things;\n")
    only(rules.check_include_graph(root), "common/misc/things.c", "no library")


def test_an_include_in_a_comment_is_no_include(tree):
    root = tree("common/base/text.c", '/* #include "common/os/disk.h"\n#include "agent/x.h" */\n// #include <yaml.h>\n')
    assert rules.check_include_graph(root) == []
    assert rules.check_third_party(root) == []


def test_an_engine_that_reaches_around_the_table_of_who_computes_is_found(tree):
    tree("trainer/engine/engine_backend.c", '#include "trainer/backend/cpu/backend_cpu.h"\n')
    root = tree("trainer/engine/engine.h", '#include "trainer/backend/backend.h"\n#include "trainer/backend/cpu/sums/lanes.h"\n')
    only(rules.check_backend_seam(root), "trainer/engine/engine.h:2", "sums/lanes.h", "engine_backend.c")


@pytest.fixture(name="core")
def folder_with_file_layers(tree):
    """agent/core in layers: `who` asks `held` through edge.h alone; returns the tree's write."""
    for path, text in {
            "layers.txt": "base state edge\nheld saved\nwho members\ntop step\nbridge who edge held : newest\n",
            "state.h": "struct state;\n",
            "edge.h": '#include "agent/core/state.h"\nint newest(struct state *);\n',
            "saved.h": "int forget(int);\n",
            "saved.c": '#include "agent/core/saved.h"\n#include "agent/core/edge.h"\nint newest(struct state *s)\n{\n    return !s;\n}\n'
                       "int forget(int a)\n{\n    return a;\n}\n",
            "members.h": "int join(int);\n",
            "members.c": '#include "agent/core/members.h"\n#include "agent/core/edge.h"\nint join(int a)\n{\n    return newest(0) + a;\n}\n',
            "step.c": '#include "agent/core/members.h"\n#include "agent/core/saved.h"\n'}.items():
        tree(f"agent/core/{path}", text)
    return tree


def test_files_in_their_layers_are_let_be(core):
    assert rules.check_file_layers(core("agent/core/state.c", "int state;\n")) == []


@pytest.mark.parametrize("path, text, words", [
    ("saved.c", '#include "agent/core/edge.h"\n#include "agent/core/members.h"\nint newest(struct state *s)\n{\n    return !s;\n}\n'
                "int forget(int a)\n{\n    return a;\n}\n", ["saved.c:2", "members stands above saved"]),
    ("members.h", '#include "agent/core/step.h"\nint join(int);\n', ["members.h:1", "step stands above members"]),
    ("members.c", '#include "agent/core/saved.h"\nint join(int a)\n{\n    return forget(a);\n}\n', ["members.c:1", "over its bridge alone"]),
    ("members.c", "int forget(int);\nint join(int a)\n{\n    return forget(a);\n}\n", ["members.c:1", "declares forget"]),
    ("members.h", "int join(int);\nint forget(int);\n", ["members.h:2", "declares forget"]),
    ("edge.h", "struct state;\nint newest(struct state *);\nint forget(int);\n", ["layers.txt", "differ by forget"]),
    ("edge.h", "int join(int);\nint newest(int);\n", ["edge.h:1", "join is not of what"]),
    ("more.c", "int more;\n", ["layers.txt", "lacks more"]),
    ("layers.txt", "base state edge gone\nheld saved\nwho members\ntop step\nbridge who edge held : newest\n", ["there is no gone"]),
    ("layers.txt", "base state edge\nheld saved\nwho members\ntop step state\nbridge who edge held : newest\n", ["state is listed twice"]),
])
def test_a_file_out_of_its_layer_is_found(core, path, text, words):
    core("agent/core/step.h", "int step(int);\n")
    core("agent/core/step.c", "int step(int a)\n{\n    return a;\n}\n")
    wrong = rules.check_file_layers(core(f"agent/core/{path}", text))
    assert wrong, "nothing was found"
    assert any(all(word in line for word in words) for line in wrong), wrong


def test_a_file_of_a_layer_that_nobody_tells_of_is_found(core):
    folders = ("common/base", "common/os", "common/wire", "agent/core", "trainer/core", "agent", "ringmaster-agent")
    files = ("state", "edge", "saved", "members", "step")
    core("README.md", "[the folders](docs/architecture.md)\n")
    root = core("docs/architecture.md", " ".join(f"`{name}`" for name in folders + files))
    assert rules.check_folders_are_told(root) == []
    core("docs/architecture.md", " ".join(f"`{name}`" for name in folders + files[:-1]))
    only(rules.check_folders_are_told(root), "does not tell of step (agent/core)")


def test_a_third_party_header_in_the_wrong_folder_is_found(tree):
    root = tree("common/os/disk.c", "#include <jansson.h>\n")
    only(rules.check_third_party(root), "jansson.h", "common/wire")


def test_a_third_party_header_in_a_header_is_found(tree):
    root = tree("common/wire/json.h", "#include <jansson.h>\n")
    only(rules.check_third_party(root), "common/wire/json.h:1")


def test_a_third_party_header_in_two_files_is_found(tree):
    tree("common/wire/a.c", "#include <jansson.h>\n")
    root = tree("common/wire/b.c", "#include <jansson.h>\n")
    only(rules.check_third_party(root), "common/wire/a.c", "common/wire/b.c")


def test_an_unknown_dependency_is_found(tree):
    root = tree("common/os/disk.c", "#include <boost/config.h>\n#include <sys/mman.h>\n")
    only(rules.check_third_party(root), "boost/config.h", "nobody decided")


@pytest.mark.parametrize("name", sorted(rules.BANNED))
def test_a_banned_call_is_found_in_the_text(tree, name):
    root = tree("agent/app.c", f"void f(void)\n{{\n    x = {name}(a, b);\n}}\n")
    only(rules.check_banned_text(root), "agent/app.c:3", name)


def test_words_that_only_look_like_banned_calls_are_let_be(tree):
    root = tree("agent/app.c", 'void f(void)\n{\n    p->gets(1);\n    my_strcpy(2);\n    puts("strcpy(a)"); /* atoi(x) */\n}\n')
    assert rules.check_banned_text(root) == []


@pytest.mark.parametrize("line", ["rdzv_give_up(st, 4, \"why\");", "quit(st,\n out, 0, text);", "d->exit_code = 3;",
                                  "if (v->exit_code != 130)", "enum { EXIT_DATA = 3, MOST = 4 };"])
def test_an_exit_code_without_its_name_is_found(tree, line):
    root = tree("agent/app.c", f"void f(void)\n{{\n    {line}\n}}\n")
    only(rules.check_exit_codes(root), "agent/app.c:3", "exit_code.h")


def test_exit_codes_with_their_names_are_let_be(tree):
    root = tree("agent/app.c", "void f(void)\n{\n    quit(st, out, EXIT_DONE, text); /* quit(st, 4, x) */\n"
                "    v->exit_code = EXIT_DATA;\n    exit_code = pod_code(0);\n}\n")
    assert rules.check_exit_codes(root) == []


def test_a_long_file_that_opens_with_code_is_found(tree):
    body = '#include "common/base/text.h"\n' + "int x;\n" * (rules.OPENING_LINES - 1)
    root = tree("agent/app.c", body)
    only(rules.check_openings(root), f"agent/app.c: has {rules.OPENING_LINES} lines")
    tree("agent/app.c", "/* Does this and that. */\n" + body)
    assert rules.check_openings(root) == []


def test_a_file_of_the_coordinators_core_opens_sooner(tree):
    tree("agent/core/long.c", "int a;\n" * 100)
    root = tree("coordinator/core/long.c", "int a;\n" * 100)
    only(rules.check_openings(root), "coordinator/core/long.c", "100 lines", "does not open with what it is for")


def test_a_walk_that_passes_what_is_gone_is_found(tree):
    root = tree("agent/app.c", "/* It leaves. */\nstatic void leave(int signo)\n{\n    go(signo);\n}\n")
    page = "# A\n\n## Six walks\n\n* `agent/app.c` (`{}`) -> **`{}`**\n\n## Else\n\n`gone.c`\n"
    tree("docs/architecture.md", page.format("leave", "app.c"))
    assert rules.check_walks(root) == []
    tree("docs/architecture.md", page.format("go", "app.c"))
    only(rules.check_walks(root), "go in agent/app.c")
    tree("docs/architecture.md", page.format("leave", "gone.c"))
    only(rules.check_walks(root), "gone.c", "is not there")
    tree("agent/core/state.c", '#include "common/base/text.h"\n')
    tree("docs/architecture.md", page.format("leave", "core/state.c"))
    only(rules.check_walks(root), "core/state.c", "does not open")
    tree("docs/architecture.md", "# A\n")
    only(rules.check_walks(root), "no walk is left")


def test_a_function_that_is_a_bare_verb_is_found(tree):
    root = tree("agent/app.c", "static void end_app(int code)\n{\n    look_at_it(code);\n}\n\nstatic void tell(int x)\n{\n    end_app(x);\n}\n")
    only(rules.check_names(root), "agent/app.c:6: tell")


def test_a_bare_verb_stays_where_its_name_is_hashed_into_a_numerics_id(tree):
    tree("trainer/backend/cpu/model/numerics_cpu.cmake", "set(numerics_cpu\n  trainer/exact/sum.c trainer/exact/sum.h\n  trainer/exact/one_x86.c)\n"
         "set(numerics_cpu_not\n  trainer/exact/free.c)\n")
    tree("trainer/backend/cuda/gpu/module.cmake", "  ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/lane/*.[ch] ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/gpu/gpu_*.[ch])\n")
    for path in ("exact/sum.c", "exact/one_x86.c", "exact/one_portable.c", "backend/cuda/lane/a.c", "backend/cuda/gpu/gpu_a.c"):
        tree(f"trainer/{path}", "static void take(int x)\n{\n    (void)x;\n}\n")
    root = tree("trainer/exact/free.c", "static void take(int x)\n{\n    (void)x;\n}\n")
    only(rules.check_names(root), "trainer/exact/free.c:1: take")


def test_a_comment_without_a_subject_is_found(tree):
    root = tree("agent/app.c", "/* Of a program nobody knows more. */\nint a;\n/* Of the pieces\n * before this one. */\nint b;\nint c; /* Of b. */\n")
    tree("agent/app.h", "/* The pieces of it. */\n/* Or what it started: all. */\nint d;\n/* In it all are. */\n/* With the lock held. */\nint e;\n")
    only(rules.check_comments(root)[:1], 'agent/app.c:3: "Of the pieces before this one"')
    only(rules.check_comments(root)[1:2], 'agent/app.h:2: "Or what it started"')
    only(rules.check_comments(root)[2:], 'agent/app.h:5: "With the lock held"')


def test_an_action_with_a_message_by_value_is_found(tree):
    root = tree("agent/core/agent.h", "struct agent_action {\n    int kind;\n    struct message *message;\n};\n")
    tree("agent/launch/core/launch.h", "struct launch_action {\n    int kind;\n    struct message message; /* SEND */\n};\n")
    only(rules.check_actions(root), "agent/launch/core/launch.h:3: launch_action")


def test_a_word_that_means_something_else_is_found(tree):
    root = tree("agent/app.c", "/* a plan */\nstruct snapshot *s;\nint drill_plan(void);\n")
    tree("operator/core/view.c", "struct op_plan *plan;\n")
    tree("trainer/core/plan.h", "int next(int step);\n")
    only(rules.check_words(root), "agent/app.c:3: drill_plan", '"plan"')
    tree("agent/app.c", "struct fleet *f;\n")
    only(rules.check_words(root), "agent/app.c:1: fleet")


def test_the_environment_has_one_reader(tree):
    root = tree("agent/app.c", 'void f(void)\n{\n    getenv("X");\n}\n')
    tree("common/os/config.c", 'void g(void)\n{\n    getenv("X");\n}\n')
    only(rules.check_banned_text(root), "agent/app.c:3", "config.c")


def test_a_banned_call_is_found_in_an_object(tree):
    root = tree("agent/app.c", "char *strcpy(char *, const char *);\nchar *f(char *a, char *b)\n{\n    return (strcpy)(a, b);\n}\n")
    build = compile_into_build(root, "agent/app.c")
    only(rules.check_symbols(root, build), "agent/app.c", "strcpy")


@pytest.mark.parametrize("call, why", [("time(0)", "clocks"), ("exit(1)", "only main.c"), ("getenv(0)", "environment"),
                                       ("random()", "chance")])
def test_a_call_out_of_its_place_is_found_in_an_object(tree, call, why):
    root = tree("agent/app.c", f"void f(void)\n{{\n    {call};\n}}\n")
    build = compile_into_build(root, "agent/app.c")
    only(rules.check_symbols(root, build), "agent/app.c", why)


def test_main_may_exit_and_the_clock_may_be_read_in_its_file(tree):
    root = tree("agent/main.c", "void f(void)\n{\n    exit(1);\n}\n")
    tree("common/os/clock.c", "void g(void)\n{\n    time(0);\n}\n")
    compile_into_build(root, "agent/main.c")
    build = compile_into_build(root, "common/os/clock.c")
    assert rules.check_symbols(root, build) == []


@pytest.mark.parametrize("call", ["read(0, 0, 0)", "clock_gettime(0, 0)", "pthread_create(0, 0, 0, 0)", "malloc(1)",
                                  "printf(\"x %d\", 1)", "rand()"])
def test_a_pure_core_that_reaches_out_is_found(tree, call):
    root = tree("agent/core/state.c", f"void f(void)\n{{\n    g({call});\n}}\nvoid g(long x)\n{{\n}}\n")
    build = compile_into_build(root, "agent/core/state.c")
    only(rules.check_pure_cores(root, build), "agent/core/state.c", "pure core")


def test_a_state_machine_takes_memory_only_when_opened(tree):
    tree("agent/core/state.c", "void *state_open(void)\n{\n    return calloc(1, 1);\n}\nvoid state_free(void *s)\n{\n    free(s);\n}\n")
    root = tree("agent/core/other.c", "int other;\n")
    build = compile_into_build(root, "agent/core/state.c")
    assert rules.check_pure_cores(root, build) == []
    tree("agent/core/state.c", "void *state_step(void)\n{\n    return calloc(1, 1);\n}\n")
    build = compile_into_build(root, "agent/core/state.c")
    only(rules.check_pure_cores(root, build), "state_step takes or gives back memory")


def test_a_pure_core_may_use_memory_functions_and_the_projects_own(tree):
    tree("common/base/text.c", "long text_length(char *t)\n{\n    return strlen(t) + (long)malloc(1);\n}\n")
    root = tree("agent/core/state.c", "void f(char *a, char *b)\n{\n    memcpy(a, b, text_length(b));\n}\n")
    compile_into_build(root, "common/base/text.c")
    build = compile_into_build(root, "agent/core/state.c")
    assert rules.check_pure_cores(root, build) == []


def test_a_long_function_and_a_long_file_are_found(tree):
    body = "    x++;\n" * 70
    root = tree("agent/app.c", f"int x;\nvoid f(void)\n{{\n{body}}}\n")
    only(rules.check_lengths(root, {}), "agent/app.c f: 73 lines")
    root = tree("agent/app.c", "int x;\n" + "/* */\n" * 800)
    only(rules.check_lengths(root, {}), "agent/app.c: 801 lines")


def test_the_ratchet_only_tightens(tree):
    root = tree("agent/app.c", "int x;\nvoid f(void)\n{\n" + "    x++;\n" * 70 + "}\n")
    assert rules.check_lengths(root, {"agent/app.c f": 73}) == []
    only(rules.check_lengths(root, {"agent/app.c f": 72}), "grew from 72")
    only(rules.check_lengths(root, {"agent/app.c f": 80}), "is 73 now", "tighten")
    only(rules.check_lengths(root, {"agent/app.c f": 73, "agent/gone.c g": 75}), "is long no more")


def test_a_share_of_functions_that_assert_is_held_and_raised(tree):
    silent = "int half(int n)\n{\n    return n / 2;\n}\n"
    loud = "int twice(int n)\n{\n    RM_ASSERT(n >= 0, \"%d\", n);\n    return 2 * n;\n}\n"
    root = tree("trainer/core/plan.c", silent + loud)
    assert rules.asserting(root)["trainer/core"] == (1, 2)
    assert rules.check_assertions(root, {"trainer/core": 50}) == []
    only(rules.check_assertions(root, {"trainer/core": 51}), "trainer/core: 1 of 2 functions", "says 51 %")
    only(rules.check_assertions(root, {"trainer/core": 45}), "trainer/core: 1 of 2 functions", "raise it")
    only(rules.check_assertions(root, {"trainer/core": 50, "agent": 1}), "agent: the ratchet file has it")


def test_a_header_that_leans_on_others_is_found(tree):
    root = tree("common/base/table.h", "size_t table_size(void);\n")
    only(rules.check_headers_alone(root), "common/base/table.h", "alone")


def test_unformatted_text_is_found(tree):
    tree(".clang-format", "BasedOnStyle: LLVM\nIndentWidth: 4\n")
    tree("agent/core/state.c", '#include "common/base/text.h"\n')
    root = tree("agent/app.c", "int    x ;\n")
    only(rules.check_format(root), "agent/app.c:1")


def test_files_that_use_each_other_are_found_and_pairs_have_to_be_said(tree, tmp_path):
    for name, uses in (("one", "two"), ("two", "three"), ("three", "one"), ("four", "one")):
        root = tree(f"agent/core/{name}.c", f"int {uses}(void);\nint {name}(void)\n{{\n    return {uses}();\n}}\n")
        build = compile_into_build(root, f"agent/core/{name}.c")
    only(rules.check_circles(root, build, set()), "agent/core/one.c, agent/core/three.c, agent/core/two.c use each other")
    tree("agent/core/two.c", "int one(void);\nint two(void)\n{\n    return one();\n}\n")
    compile_into_build(root, "agent/core/two.c")
    said = tmp_path / "pairs.txt"
    said.write_text("# pairs\nagent/core/one.c two.c: each asks the other\n")
    assert rules.check_circles(root, build, rules.read_pairs(said)) == []
    said.write_text(said.read_text() + "agent/core/one.c four.c: once\n")
    only(rules.check_circles(root, build, rules.read_pairs(said)), "agent/core/four.c and agent/core/one.c", "none any more")


def test_a_release_with_fault_points_is_found(tree):
    root = tree("agent/app.c", "void fault_point(const char *name)\n{\n}\nint main(void)\n{\n    return 0;\n}\n")
    build = compile_into_build(root, "agent/app.c")
    only(rules.check_no_fault_points([build / "CMakeFiles/agent.dir/agent/app.c.o"]), "fault points")


HEADER = "#ifdef RM_FAULTS\nvoid fault_point(const char *name);\n#define FAULT(name) fault_point(name)\n#else\n#define FAULT(name) ((void)0)\n#endif\n" \
         "#define FAULT_FAILS(name, number) 0\n#define FAULT_FLIP(name, bytes, count) ((void)0)\n" \
         "static inline void fault_who(const char *who)\n{\n}\nstatic inline void fault_worker(int worker)\n{\n}\nstatic inline void fault_disarm(void)\n{\n}\n"


@pytest.mark.parametrize("path, text, words", [
    (None, None, None),
    ("agent/app.c", "void fault_point(const char *);\n", ["agent/app.c: fault_point"]),
    ("common/os/fault.h", HEADER.replace("#ifdef RM_FAULTS", "#if 1"), ["common/os/fault.c: fault_point is there"]),
    ("common/os/fault.c", "int fault_fails(void)\n{\n    return 0;\n}\n", ["common/os/fault.c: fault_fails is there"]),
    ("CMakePresets.json", '{"configurePresets": [{"name": "base", "cacheVariables": {"RM_FAULTS": "ON"}}, {"name": "release", "inherits": "base"}]}',
     ["release sets RM_FAULTS"]),
    ("cmake/RingmasterTargets.cmake", 'option(RM_FAULTS "why" ON)\n', ["not off by itself"]),
])
def test_a_way_for_fault_points_into_a_release_is_found(tree, path, text, words):
    root = tree("common/os/fault.h", HEADER)
    tree("common/os/fault.c", '#include "common/os/fault.h"\n')
    tree("CMakePresets.json", '{"configurePresets": [{"name": "release"}]}')
    tree("cmake/RingmasterTargets.cmake", 'option(RM_FAULTS "why" OFF)\n')
    if not path:
        assert rules.check_fault_points_are_a_switch(root) == []
        return
    tree(path, text)
    only(rules.check_fault_points_are_a_switch(root), *words)


def test_a_unit_test_in_a_folder_of_another_name_is_found(tree):
    root = tree("tests/unit/agent/core/state_test.c", "int x;\n")
    assert rules.check_tests_mirror(root) == []
    tree("tests/unit/protocol/state_test.c", "int x;\n")
    only(rules.check_tests_mirror(root), "tests/unit/protocol", "no folder protocol")


def test_a_folder_a_program_and_a_page_that_nobody_tells_of_are_found(tree):
    folders = ("common/base", "common/os", "common/wire", "agent/core", "trainer/core", "agent", "ringmaster-agent")
    root = tree("docs/architecture.md", " ".join(f"`{name}`" for name in folders))
    tree("README.md", "[the folders](docs/architecture.md)\n")
    assert rules.check_folders_are_told(root) == []
    tree("docs/architecture.md", " ".join(f"`{name}`" for name in folders if name != "agent/core"))
    only(rules.check_folders_are_told(root), "agent/core")
    tree("docs/architecture.md", " ".join(f"`{name}`" for name in folders[:-1]))
    only(rules.check_folders_are_told(root), "ringmaster-agent")
    tree("docs/architecture.md", " ".join(f"`{name}`" for name in folders))
    tree("docs/ring.md", "The ring\n")
    only(rules.check_folders_are_told(root), "docs/ring.md")


def test_a_skip_that_nobody_tells_of_is_found(tree):
    root = tree("docs/testing.md", "# Testing\n`other_test.py`\n\n## What is skipped where\n\n| where |\n|---|\n| `a_test.py`, `b_test.c` |\n\n## More\n")
    tree("tests/e2e/a_test.py", "pytest.skip('no')\n")
    tree("tests/unit/b_test.c", 'cr_skip("no");\n')
    assert rules.check_skips_are_told(root) == []
    tree("tests/e2e/other_test.py", "@pytest.mark.skipif(True, reason='no')\n")
    only(rules.check_skips_are_told(root), "tests/e2e/other_test.py: can be skipped")
    tree("tests/e2e/other_test.py", "")
    tree("tests/unit/b_test.c", "")
    only(rules.check_skips_are_told(root), "b_test.c can't be skipped")


def test_a_row_with_more_or_fewer_cells_than_its_head_is_told(tree):
    head = "| fault | told by |\n|---|---|\n"
    root = tree("docs/faults.md", head + "| a `a || b` in code | a \\| written out |\n\n" + "| one |\n|---|\n| alone |\n")
    assert rules.check_tables(root) == []
    tree("docs/faults.md", head + "| lost | nobody | late |\n")
    only(rules.check_tables(root), "docs/faults.md:3: 3 cells in a table of 2")
