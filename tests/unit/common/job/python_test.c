/* Where a Python's own words end and the program begins. */
#include "common/job/python.h"

#include <criterion/criterion.h>
#include <string.h>

static struct job_list list_of(const char *words)
{
    struct job_list list = {0};
    char text[256];
    text_copy(text, sizeof text, words);
    for (char *rest, *word = strtok_r(text, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
        cr_assert(job_list_add(&list, word));
    return list;
}

Test(python, its_options_end_where_what_is_run_begins)
{
    static const struct {
        const char *words;
        struct python_command expected;
    } rows[] = {
        {"python train.py --epochs 3", {PYTHON_FILE, 1, 1, true}},
        {"/opt/venv/bin/python3.11 -u -W ignore -Xdev train.py", {PYTHON_FILE, 5, 5, true}},
        {"python3 -uO -X dev -m pkg.train -c x", {PYTHON_MODULE, 4, 5, true}},
        {"python3 -c print(1)", {PYTHON_CODE, 1, 2, true}},
        {"python3 -I a.py", {PYTHON_FILE, 2, 2, false}},
        {"python3 -BP a.py", {PYTHON_FILE, 2, 2, false}},
        {"python3 --check-hash-based-pycs always a.py", {PYTHON_FILE, 3, 3, true}},
        {"python3 -WI a.py", {PYTHON_FILE, 2, 2, true}}, /* I is the value of W */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_list list = list_of(rows[i].words);
        struct python_command found;
        cr_assert(python_command_read(&list, &found), "%s", rows[i].words);
        const struct python_command *e = &rows[i].expected;
        cr_assert(found.what == e->what && found.options == e->options && found.script == e->script &&
                      found.near == e->near,
                  "%s: %d %d %d %d", rows[i].words, found.what, found.options, found.script, found.near);
    }
}

Test(python, what_is_none_or_runs_nothing_is_refused)
{
    static const char *const rows[] = {"sh train.py",        "python-config x", "python",
                                       "python -u",          "python -m",       "python -W",
                                       "python3 - train.py", "torchrun x",      "python3 -uc code"};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_list list = list_of(rows[i]);
        struct python_command found;
        cr_assert_not(python_command_read(&list, &found), "%s", rows[i]);
    }
}

Test(python, torchrun_may_not_say_itself_where_its_nodes_meet)
{
    static const struct {
        const char *words, *own;
    } rows[] = {
        {"torchrun --nproc-per-node=2 train.py", NULL},
        {"torchrun --standalone --nproc-per-node=2 train.py", "--standalone"},
        {"python3 -m torch.distributed.run --nnodes=1 train.py", "--nnodes=1"},
        {"torchrun --rdzv_endpoint h:1 train.py", "--rdzv_endpoint"},
        {"torchrun train.py --nnodes 3", NULL}, /* the script's own */
        {"torchrun --nnodesque train.py", NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct job_list list = list_of(rows[i].words);
        const char *own = python_own_meeting(&list);
        cr_assert(python_starts_ranks(&list));
        cr_assert(rows[i].own ? own && !strcmp(own, rows[i].own) : !own, "%s: %s", rows[i].words,
                  own ? own : "none");
    }
}
