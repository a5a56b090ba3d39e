#include "cli/core/drill.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

static const struct drill_terms terms = {
    .workers_min = 1, .workers_max = 4, .workers_target = 3, .steps = 40, .resume_step = 0, .proven = true};

static int make_list(struct drill_list *p, const struct drill_terms *t, struct error *err, const char *list)
{
    char one[64];
    *p = (struct drill_list){0};
    while (*list) {
        size_t n = strcspn(list, " ");
        memcpy(one, list, n);
        one[n] = 0;
        if (drill_add(p, one, err) < 0)
            return -1;
        list += n + (list[n] == ' ');
    }
    return drill_list_check(p, t, err);
}

static void refused(const char *list, const char *part)
{
    static struct drill_list p;
    struct error err = {0};
    cr_assert_lt(make_list(&p, &terms, &err, list), 0, "%s was taken", list);
    cr_assert_eq(err.code, ERR_USAGE);
    cr_assert(strstr(err.text, part), "%s: %s", list, err.text);
}

Test(drill, drills_come_when_their_step_has_come_and_in_the_order_given)
{
    static struct drill_list p;
    struct error err = {0};
    cr_assert_eq(make_list(&p, &terms, &err, "join@20 kill:1@10 trainer:0@20 term:2@12"), 0, "%s", err.text);
    cr_assert_null(drill_due(&p, 9));
    cr_assert_str_eq(drill_due(&p, 11)->spec, "kill:1@10");
    cr_assert_null(drill_due(&p, 11));
    cr_assert_str_eq(drill_due(&p, 30)->spec, "term:2@12");
    cr_assert_str_eq(drill_due(&p, 30)->spec, "join@20");
    cr_assert_str_eq(drill_due(&p, 30)->spec, "trainer:0@20");
    cr_assert_null(drill_due(&p, 39));
}

Test(drill, drills_with_times_come_when_their_time_has_come_whatever_the_step)
{
    static struct drill_list p;
    struct error err = {0};
    cr_assert_eq(make_list(&p, &terms, &err, "join@1m kill:1@2500ms trainer:0@1m"), 0, "%s", err.text);
    cr_assert_null(drill_due(&p, INT64_MAX), "no step makes a drill with a time due");
    cr_assert_eq(drill_next_after(&p), 2500 * RM_MS);
    cr_assert_null(drill_due_after(&p, 2499 * RM_MS));
    cr_assert_str_eq(drill_due_after(&p, 2500 * RM_MS)->spec, "kill:1@2500ms");
    cr_assert_eq(drill_next_after(&p), 60 * RM_S);
    cr_assert_str_eq(drill_due_after(&p, 70 * RM_S)->spec, "join@1m");
    cr_assert_str_eq(drill_due_after(&p, 70 * RM_S)->spec, "trainer:0@1m");
    cr_assert_eq(drill_next_after(&p), RM_NEVER);
    cr_assert_null(drill_due_after(&p, RM_NEVER - 1));
    cr_assert_eq(make_list(&p, &terms, &err, "kill:1@2"), 0);
    cr_assert_eq(drill_next_after(&p), RM_NEVER, "a drill with a step has no time");
}

Test(drill, a_history_has_steps_or_times_and_a_programs_has_times)
{
    static struct drill_list p;
    struct error err = {0};
    struct drill_terms program = terms;
    program.steps = 0;
    refused("kill:1@3 join@3s", "steps or times, not both");
    refused("kill:1@3s join@3", "steps or times, not both");
    refused("kill:1@3s kill:1@4s", "no worker 1 at 4s");
    refused("kill:1@0s", "kill:W@S");
    static const char *const none[] = {"kill:1@1.s",           "kill:1@.5s",           "kill:1@1.5",
                                       "kill:1@1.5m",          "kill:1@0.0s",          "kill:1@1.5s3",
                                       "kill:1@1.0000000001s", "kill:1@99999999999.5s"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++)
        refused(none[i], "kill:W@S");
    cr_assert_lt(make_list(&p, &program, &err, "kill:1@3"), 0);
    cr_assert(strstr(err.text, "write a time, as kill:1@20s"), "%s", err.text);
    cr_assert_lt(make_list(&p, &program, &err, "random:3"), 0);
    cr_assert(strstr(err.text, "write drills with times"), "%s", err.text);
    cr_assert_eq(make_list(&p, &program, &err, "kill:1@3s"), 0, "%s", err.text);
}

Test(drill, what_is_no_drill_is_told_the_forms)
{
    static const char *const wrong[] = {
        "",         "kill",      "kill:1",    "kill@3",   "kill:x@3",
        "kill:1@x", "kill:1@3x", "join:1@3",  "join@",    "kill:-1@3",
        "random:",  "random:x",  "kill:99@3", "boom:1@3", "kill:1@99999999999999999999"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        static struct drill_list p;
        struct error err = {0};
        cr_assert_lt(drill_add(&p, wrong[i], &err), 0, "%s", wrong[i]);
        cr_assert(strstr(err.text, "kill:W@S"), "%s", err.text);
    }
    refused("coordinator:1@3", "coordinator@S");
}

Test(drill, a_step_outside_the_run_is_refused)
{
    refused("kill:1@0", "from 1 to 39");
    refused("kill:1@40", "from 1 to 39");
    struct drill_terms resumed = terms;
    resumed.resume_step = 20;
    static struct drill_list p;
    struct error err = {0};
    cr_assert_lt(make_list(&p, &resumed, &err, "kill:1@20"), 0);
    cr_assert(strstr(err.text, "goes on from step 20"), "%s", err.text);
    cr_assert_eq(make_list(&p, &resumed, &err, "kill:1@21"), 0);
}

Test(drill, workers_are_followed_through_the_history)
{
    static struct drill_list p;
    struct error err = {0};
    refused("kill:3@5", "no worker 3 at step 5");
    refused("stop:1@5 hang:1@6", "no worker 1 at step 6");
    refused("kill:1@5 kill:1@6", "no worker 1 at step 6");
    refused("kill:1@5 trainer:1@6", "no worker 1 at step 6");
    refused("join@5 join@6", "more workers at once than spec.workers.max (4)");
    cr_assert_eq(make_list(&p, &terms, &err, "kill:1@5 join@6 kill:1@7"), 0,
                 "the join takes the lowest free index: %s", err.text);
    cr_assert_eq(make_list(&p, &terms, &err, "trainer:1@5 kill:1@6"), 0);
    cr_assert_eq(make_list(&p, &terms, &err, "kill:0@5 kill:1@5 kill:2@5"), 0,
                 "below min is allowed: it is a test too");
}

/* It takes nobody away, and where sums have no checksums it would only spoil the result. */
Test(drill, a_bit_is_flipped_where_somebody_can_see_it)
{
    static struct drill_list p;
    struct error err = {0};
    struct drill_terms fast = terms;
    fast.proven = false;
    cr_assert_eq(make_list(&p, &terms, &err, "corrupt:1@5 kill:1@6"), 0, "%s", err.text);
    const struct drill *drill = drill_due(&p, 5);
    cr_assert(drill->kind == DRILL_CORRUPT && drill->worker == 1 &&
              drill_cause(drill->kind) == CAUSE_RING_ERROR);
    refused("kill:1@5 corrupt:1@6", "no worker 1 at step 6");
    refused("corrupt@5", "corrupt:W@S");
    refused("corupt:1@5", "corrupt");
    cr_assert_lt(make_list(&p, &fast, &err, "corrupt:1@5"), 0);
    cr_assert(strstr(err.text, "nobody would see it"), "%s", err.text);
}

Test(drill, a_random_history_is_the_seeds_alone_and_never_goes_below_min)
{
    for (int seed = 0; seed < 500; seed++) {
        static struct drill_list a, b;
        struct error err = {0};
        char text[32];
        snprintf(text, sizeof text, "random:%d", seed);
        struct drill_terms t = {
            .workers_min = 1 + seed % 3, .workers_max = 3 + seed % 5, .workers_target = 3, .steps = 5 + seed};
        cr_assert_eq(make_list(&a, &t, &err, text), 0, "seed %d: %s", seed, err.text);
        cr_assert_eq(make_list(&b, &t, &err, text), 0);
        cr_assert_eq(memcmp(&a, &b, sizeof a), 0);
        cr_assert_geq(a.count, 3);
        int living = 3;
        for (int i = 0; i < a.count; i++) {
            enum drill_kind kind = a.drill[i].kind;
            cr_assert_neq(kind, DRILL_CORRUPT, "what a seed draws stays what it was");
            bool taken = kind == DRILL_KILL || kind == DRILL_TERM || kind == DRILL_STOP;
            living += kind == DRILL_JOIN ? 1 : taken ? -1 : 0;
            cr_assert_geq(living, t.workers_min, "seed %d", seed);
        }
        for (int i = 0; i < a.count; i++) {
            struct drill_list again = {0};
            cr_assert_eq(drill_add(&again, a.drill[i].spec, &err), 0);
            cr_assert_eq(again.drill[0].step, a.drill[i].step, "a drawn drill can be written by hand");
        }
    }
    refused("random:1 kill:1@3", "stands alone");
}

Test(drill, a_second_has_fractions)
{
    static struct drill_list p;
    struct error err = {0};
    cr_assert_eq(make_list(&p, &terms, &err, "kill:1@1.5s join@2.25s trainer:0@3.000000001s"), 0, "%s",
                 err.text);
    cr_assert_null(drill_due_after(&p, 1499999999));
    cr_assert_str_eq(drill_due_after(&p, 1500 * RM_MS)->spec, "kill:1@1.5s");
    cr_assert_str_eq(drill_due_after(&p, 2250 * RM_MS)->spec, "join@2.25s");
    cr_assert_eq(drill_next_after(&p), 3 * RM_S + 1);
}
