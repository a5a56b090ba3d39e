#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static struct replay *read_text(const char *text, struct error *err)
{
    struct replay *r = calloc(1, sizeof *r);
    cr_assert(r);
    if (replay_read(r, text, err) == 0)
        return r;
    free(r);
    return NULL;
}

Test(replay, a_trace_is_moments_and_machines_until_the_last_line)
{
    struct error err = {0};
    struct replay *r = read_text("# seconds machines\n0 8\n\n 12.5\t7 # one goes\r\n60 7", &err);
    cr_assert(r, "%s", err.text);
    cr_assert_eq(r->moments, 3);
    cr_assert_eq(r->moment[1].at, 12500 * RM_MS);
    cr_assert_eq(r->moment[1].machines, 7);
    cr_assert_eq(r->until, 60 * RM_S);
    free(r);
}

Test(replay, a_trace_that_is_none_is_refused_with_its_line)
{
    static const struct {
        const char *text, *says;
    } bad[] = {{"", "begins at second 0 and has an end"},
               {"0 8\n", "begins at second 0 and has an end"},
               {"5 8\n9 8\n", "begins at second 0"},
               {"0 8\nx 7\n", "line 2 of the trace: it does not begin with seconds"},
               {"0 8\n-1 7\n", "line 2 of the trace: it does not begin with seconds"},
               {"0 8\nnan 7\n", "line 2 of the trace: it does not begin with seconds"},
               {"0 8\n1e300 7\n", "line 2 of the trace: it does not begin with seconds"},
               {"0 8\n5\n", "line 2 of the trace: there is to be a whole number"},
               {"0 8\n5 7.5\n", "line 2 of the trace: there is to be a whole number"},
               {"0 8\n5 7 6\n", "line 2 of the trace: there is to be a whole number"},
               {"0 8\n5 65\n", "line 2 of the trace: a job has 0 to 64 machines"},
               {"0 8\n5 -1\n", "line 2 of the trace: a job has 0 to 64 machines"},
               {"0 8\n5 7\n5 6\n", "line 3 of the trace: it is not later"}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err = {0};
        cr_assert_null(read_text(bad[i].text, &err), "'%s' is read", bad[i].text);
        cr_assert(strstr(err.text, bad[i].says), "'%s': %s", bad[i].text, err.text);
    }
}

Test(replay, a_line_without_end_and_moments_without_number_are_refused)
{
    struct error err = {0};
    char *text = calloc(1, REPLAY_TEXT_MAX);
    cr_assert(text);
    memset(text, '1', 1000);
    cr_assert_null(read_text(text, &err));
    cr_assert(strstr(err.text, "longer than any moment"), "%s", err.text);
    char *at = text;
    for (int i = 0; i <= REPLAY_MOMENTS; i++)
        at += snprintf(at, 20, "%d 1\n", i);
    cr_assert_null(read_text(text, &err));
    cr_assert(strstr(err.text, "20000 moments at most"), "%s", err.text);
    free(text);
}

/* ---- what a job makes of it ---- */

static struct replay_result play(const char *trace, rm_time lead)
{
    struct error err = {0};
    struct replay *r = read_text(trace, &err);
    struct sim *sim = sim_new();
    cr_assert(r && sim, "%s", err.text);
    r->least = 1;
    r->lanes = 16;
    r->lane = r->transfer = 2 * RM_S;
    r->start = 5 * RM_S;
    r->save = r->load = 40 * RM_S;
    r->lead = lead;
    sim->replay = r;
    cr_assert(sim_run(sim, 1), "%s", sim->violation);
    struct replay_result ret = r->ret;
    sim_free(sim);
    free(r);
    return ret;
}

/* Eight machines make a step in 4 s, five in 8 s, as one of them has four lanes. */
static const char eight[] = "0 8\n1600 5\n2400 8\n4000 0\n5000 8\n7000 8\n";

Test(replay, what_machines_allow_is_summed_by_hand)
{
    struct replay_result ret = play(eight, 0);
    cr_assert_float_eq(ret.allowed, 1600 / 4 + 800 / 8 + 1600 / 4 + 2000 / 4, 1e-6, "%f", ret.allowed);
    cr_assert_float_eq(ret.machine_hours, (8 * 1600 + 5 * 800 + 8 * 1600 + 8 * 2000) / 3600.0, 1e-6);
    cr_assert_eq(ret.told, 0);
}

Test(replay, who_is_told_in_time_loses_no_step_and_trains_on)
{
    static const rm_time leads[] = {120 * RM_S, 30 * RM_S};
    for (size_t i = 0; i < sizeof leads / sizeof *leads; i++) {
        struct replay_result ret = play(eight, leads[i]);
        cr_assert_eq(ret.back, 0, "%d steps", (int)ret.back);
        cr_assert_eq(ret.told, 11);
        cr_assert_eq(ret.out, 11, "%d are taken along", (int)ret.along);
        cr_assert_eq(ret.notice, 11 * leads[i]);
        cr_assert_geq((double)ret.trained, 0.5 * (double)ret.notice);
        cr_assert_leq(ret.trained, ret.notice);
        cr_assert_geq((double)ret.steps, 0.95 * ret.allowed, "%d of %.1f", (int)ret.steps, ret.allowed);
    }
}

Test(replay, who_is_told_nothing_loses_what_was_not_saved)
{
    struct replay_result told = play(eight, 120 * RM_S), untold = play(eight, 0);
    cr_assert_gt(untold.back, 1, "all that was made since the newest checkpoint");
    cr_assert_lt(untold.steps, told.steps);
    cr_assert_eq(untold.loads, 1);
}

/* One of eight at a time: a step takes 4 s, and 6 where seven are left. */
static const char singles[] = "0 8\n400 7\n800 8\n1200 7\n1600 8\n2000 7\n2400 8\n2800 7\n3200 7\n";

Test(replay, of_half_a_minutes_notice_who_leaves_others_behind_trains_in_four_fifths)
{
    struct replay_result ret = play(singles, 30 * RM_S);
    cr_assert_eq(ret.told, 4);
    cr_assert(ret.out == 4 && ret.back == 0, "%d are taken along, with %d steps", (int)ret.along,
              (int)ret.back);
    cr_assert_geq((double)ret.trained, 0.8 * (double)ret.notice, "%.1f s", (double)ret.trained / RM_S);
}

/* It takes 12 s and begins at second 9, so that the one behind it would end too late. */
Test(replay, who_is_told_before_a_job_has_made_a_step_is_out_behind_the_first_one)
{
    struct replay_result ret = play("0 3\n31 2\n300 2\n", 30 * RM_S);
    cr_assert_eq(ret.told, 1);
    cr_assert_eq(ret.out, 1, "it is taken along");
    cr_assert_eq(ret.back, 0);
}

/* One machine alone takes 64 s for a step. */
Test(replay, a_step_that_is_as_long_as_the_trace_says_is_no_standstill)
{
    struct error err = {0};
    struct replay *r = read_text("0 4\n200 1\n1000 1\n", &err);
    struct sim *sim = sim_new();
    cr_assert(r && sim, "%s", err.text);
    r->least = 1;
    r->lanes = 64;
    r->lane = RM_S;
    r->start = r->save = r->load = 5 * RM_S;
    sim->replay = r;
    cr_assert(sim_run(sim, 1), "%s", sim->violation);
    cr_assert_geq(r->ret.steps, 20);
    sim_free(sim);
    free(r);
}
