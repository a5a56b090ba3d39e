/* The table of faults, row by row: what is done, and its bound. */
#include "coordinator/core/rdzv_fault.h"

#include <criterion/criterion.h>

static const struct fault_facts calm = {.class = CLASS_MACHINE, .times = 1, .patience = 600 * RM_S};

static enum fault_remedy remedy(struct fault_facts f)
{
    return fault_decide(&f).remedy;
}

Test(fault_table, who_waits_is_asked_again_after_1_2_4_and_at_most_30_seconds)
{
    static const int seconds[] = {1, 2, 4, 8, 16, 30, 30, 30};
    for (int i = 0; i < 8; i++)
        cr_expect_eq(fault_pause(i + 1), seconds[i] * RM_S, "the %d. time", i + 1);
    cr_expect_eq(fault_pause(100000), 30 * RM_S);
}

/* In a run nobody would come in its place. */
Test(fault_table,
     one_that_the_job_needs_and_that_keeps_all_from_saving_goes_after_the_patience_where_another_may_come)
{
    struct fault_facts f = calm;
    f.where = FAULT_IN_SLICE;
    f.scarce = f.unsupervised = true;
    f.lasted = 599 * RM_S;
    cr_expect_eq(remedy(f), FAULT_WAITS);
    f.lasted = 600 * RM_S;
    cr_expect_eq(remedy(f), FAULT_LEAVES_OUT);
    f.scarce = false;
    cr_expect_eq(remedy(f), FAULT_WAITS);
    f.scarce = true;
    f.unsupervised = false;
    cr_expect_eq(remedy(f), FAULT_WAITS);
}

struct row {
    enum fault_where where;
    enum fault_class class;
    bool others_can;
    int lasted; /* s */
    bool unsupervised;
    enum fault_remedy remedy;
};

Test(fault_table, every_row_does_what_it_says_at_its_bound_and_not_before)
{
    static const struct row rows[] = {
        /* one can't read while others can: 30 s */
        {FAULT_IN_LIST, CLASS_UNKNOWN, true, 29, false, FAULT_WAITS},
        {FAULT_IN_LIST, CLASS_UNKNOWN, true, 30, false, FAULT_LEAVES_OUT},
        {FAULT_IN_LOAD, CLASS_PASSING, true, 29, true, FAULT_WAITS},
        {FAULT_IN_LOAD, CLASS_PASSING, true, 30, true, FAULT_LEAVES_OUT},
        {FAULT_IN_LOAD, CLASS_MACHINE, true, 30, false, FAULT_LEAVES_OUT},
        /* nobody can: endTimeout of a run, no end in pods */
        {FAULT_IN_LIST, CLASS_MACHINE, false, 599, false, FAULT_WAITS},
        {FAULT_IN_LIST, CLASS_MACHINE, false, 600, false, FAULT_ENDS},
        {FAULT_IN_LOAD, CLASS_PASSING, false, 599, false, FAULT_WAITS},
        {FAULT_IN_LOAD, CLASS_PASSING, false, 600, false, FAULT_ENDS},
        {FAULT_IN_LOAD, CLASS_PASSING, false, 1000000, true, FAULT_WAITS},
        {FAULT_IN_LIST, CLASS_UNKNOWN, false, 1000000, true, FAULT_WAITS},
        /* a slice goes to another holder at once */
        {FAULT_IN_SAVE, CLASS_MACHINE, true, 0, false, FAULT_ANOTHER},
        {FAULT_IN_SAVE, CLASS_MACHINE, false, 599, false, FAULT_WAITS},
        {FAULT_IN_SAVE, CLASS_MACHINE, false, 600, false, FAULT_ENDS},
        {FAULT_IN_SAVE, CLASS_PASSING, false, 1000000, true, FAULT_WAITS},
        /* one that holds up the checkpoints of all while these train on */
        {FAULT_IN_SLICE, CLASS_PASSING, true, 29, false, FAULT_WAITS},
        {FAULT_IN_SLICE, CLASS_PASSING, true, 30, false, FAULT_LEAVES_OUT},
        {FAULT_IN_SLICE, CLASS_MACHINE, true, 30, true, FAULT_LEAVES_OUT},
        {FAULT_IN_SLICE, CLASS_MACHINE, false, 1000000, false, FAULT_WAITS},
        {FAULT_IN_SLICE, CLASS_JOB, false, 1000000, true, FAULT_WAITS},
        /* a trainer that says that its machine won't do is believed */
        {FAULT_IN_WORK, CLASS_MACHINE, true, 0, false, FAULT_LEAVES_OUT},
        {FAULT_IN_WORK, CLASS_UNKNOWN, true, 0, true, FAULT_LEAVES_OUT},
        {FAULT_IN_WORK, CLASS_PASSING, true, 29, false, FAULT_WAITS},
        {FAULT_IN_WORK, CLASS_PASSING, true, 30, false, FAULT_LEAVES_OUT},
        {FAULT_IN_WORK, CLASS_PASSING, false, 600, false, FAULT_ENDS},
        {FAULT_IN_WORK, CLASS_PASSING, false, 1000000, true, FAULT_WAITS},
        {FAULT_IN_WORK, CLASS_JOB, true, 0, false, FAULT_LEAVES_OUT},
        /* its agent has another one try it, once */
        {FAULT_IN_WORK, CLASS_DEVICE, true, 0, false, FAULT_WAITS},
        {FAULT_IN_WORK, CLASS_DEVICE, false, 0, true, FAULT_WAITS},
        /* programs that do not fit do not begin to */
        {FAULT_IN_LOAD, CLASS_SOFTWARE, true, 0, true, FAULT_LEAVES_OUT},
        {FAULT_IN_LOAD, CLASS_SOFTWARE, false, 0, false, FAULT_ENDS},
        /* the first pod that comes may be the one that has an old image */
        {FAULT_IN_LOAD, CLASS_SOFTWARE, false, 0, true, FAULT_LEAVES_OUT},
        {FAULT_IN_LIST, CLASS_SOFTWARE, false, 0, true, FAULT_LEAVES_OUT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const struct row *r = &rows[i];
        struct fault_facts f = calm;
        f.where = r->where;
        f.class = r->class;
        f.others_can = r->others_can;
        f.lasted = r->lasted * RM_S;
        f.unsupervised = r->unsupervised;
        cr_expect_eq(remedy(f), r->remedy, "row %zu", i);
    }
}

Test(fault_table, what_a_person_must_set_right_fails_at_once_before_the_first_step_of_a_run)
{
    struct fault_facts f = calm;
    f.class = CLASS_PASSING;
    f.person = f.first = true;
    f.exit_code = 3;
    for (int where = FAULT_IN_LIST; where <= FAULT_IN_WORK; where++) {
        f.where = (enum fault_where)where;
        cr_expect_eq(remedy(f), where == FAULT_IN_SAVE || where == FAULT_IN_SLICE ? FAULT_WAITS : FAULT_ENDS,
                     "%d", where);
    }
    cr_expect_eq(fault_decide(&f).exit_code, 3);
    f.first = false;
    cr_expect_eq(remedy(f), FAULT_WAITS, "in the middle of a run it may be set right meanwhile");
}

Test(fault_table, the_same_from_all_is_the_jobs_unless_time_may_heal_it)
{
    struct fault_facts f = calm;
    f.where = FAULT_IN_WORK;
    f.all_say_so = true;
    cr_expect_eq(remedy(f), FAULT_ENDS);
    cr_expect_eq(fault_decide(&f).exit_code, 4, "where no code was told");
    f.class = CLASS_PASSING;
    cr_expect_eq(remedy(f), FAULT_WAITS);
    f.where = FAULT_IN_LOAD;
    f.class = CLASS_MACHINE;
    cr_expect_eq(remedy(f), FAULT_WAITS, "a store that all can't reach is no fault of the job");
    f.where = FAULT_IN_SAVE;
    cr_expect_eq(remedy(f), FAULT_WAITS);
    f.class = CLASS_JOB;
    cr_expect_eq(remedy(f), FAULT_ENDS, "a place that can be none is none for all");
}

Test(fault_table, a_checkpoint_is_refused_only_when_its_damage_is_proven)
{
    struct fault_facts f = calm;
    f.where = FAULT_IN_LOAD;
    f.class = CLASS_OBJECT;
    cr_expect_eq(remedy(f), FAULT_ANOTHER, "somebody else reads that part");
    f.times = 2;
    cr_expect_eq(remedy(f), FAULT_WAITS);
    f.proven = true;
    cr_expect_eq(remedy(f), FAULT_REFUSES);
    for (int c = 0; c < FAULT_CLASSES; c++) {
        f.class = (enum fault_class)c;
        cr_expect_eq(remedy(f) == FAULT_REFUSES, c == CLASS_OBJECT, "%s", fault_class_names[c]);
    }
}
