"""The tree as it lies keeps the rules of rules.py. Object files come from the build whose programs are tested."""

import os
from pathlib import Path

import pytest

import rules

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("RINGMASTER_BIN", ROOT / "build/test/bin")).parent


def show(wrong):
    assert not wrong, "\n" + "\n".join(wrong)


@pytest.fixture(name="build")
def built_tree():
    objects = list(rules.object_files(BUILD))
    assert objects, f"no object files in {BUILD}: build first"
    return BUILD


def test_each_layer_uses_only_what_the_build_lists_for_it():
    show(rules.check_include_graph(ROOT))


def test_the_engine_knows_no_backend_but_where_it_chooses_one():
    show(rules.check_backend_seam(ROOT))


def test_files_that_are_listed_bottom_first_use_each_other_in_that_order():
    show(rules.check_file_layers(ROOT))


def test_each_third_party_header_is_known_in_one_file():
    show(rules.check_third_party(ROOT))


def test_no_banned_call_stands_in_the_text():
    show(rules.check_banned_text(ROOT))


def test_each_exit_code_goes_by_its_name():
    show(rules.check_exit_codes(ROOT))


def test_no_object_calls_what_is_banned_or_has_another_place(build):
    show(rules.check_symbols(ROOT, build))


def test_no_files_use_each_other_but_pairs_that_are_said_to_be_one(build):
    show(rules.check_circles(ROOT, build, rules.read_pairs(Path(__file__).parent / "pairs.txt")))


def test_pure_cores_touch_nothing_outside(build):
    show(rules.check_pure_cores(ROOT, build))


def test_functions_and_files_are_short():
    show(rules.check_lengths(ROOT, rules.read_known(Path(__file__).parent / "known_long.txt")))


def test_functions_of_cores_assert_as_much_as_is_noted():
    show(rules.check_assertions(ROOT, rules.read_known(Path(__file__).parent / "asserting.txt")))


def test_each_file_of_weight_opens_with_what_it_is_for():
    show(rules.check_openings(ROOT))


def test_a_verb_of_many_functions_has_its_noun():
    show(rules.check_names(ROOT))


def test_a_comment_that_begins_with_a_genitive_or_a_preposition_is_a_sentence():
    show(rules.check_comments(ROOT))


def test_no_action_or_event_carries_a_message_by_value():
    show(rules.check_actions(ROOT))


def test_a_word_of_the_glossary_has_one_meaning_in_names():
    show(rules.check_words(ROOT))


def test_headers_compile_alone():
    show(rules.check_headers_alone(ROOT))


def test_everything_is_formatted():
    show(rules.check_format(ROOT))


def test_unit_tests_lie_as_what_they_test():
    show(rules.check_tests_mirror(ROOT))


def test_the_docs_tell_of_each_folder_program_and_page():
    show(rules.check_folders_are_told(ROOT))


def test_the_walks_through_the_tree_pass_what_is_there():
    show(rules.check_walks(ROOT))


def test_each_row_of_a_table_in_the_docs_has_the_cells_of_its_head():
    show(rules.check_tables(ROOT))


def test_whatever_can_be_skipped_stands_in_the_docs():
    show(rules.check_skips_are_told(ROOT))


def test_a_release_has_no_fault_points():
    """By what it is made from, and by its programs where they are there: a check with --fast builds none."""
    show(rules.check_fault_points_are_a_switch(ROOT))
    show(rules.check_no_fault_points(p for p in (ROOT / "build/release/bin").glob("ringmaster*") if p.is_file()))
