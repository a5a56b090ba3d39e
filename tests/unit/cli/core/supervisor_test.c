#include "cli/core/supervisor.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

static struct supervisor supervisor_of(int living, int max)
{
    struct supervisor supervisor;
    supervisor_init(&supervisor, max, 2, 3600 * RM_S);
    for (int w = 0; w < living; w++)
        supervisor_start(&supervisor, w);
    return supervisor;
}

static struct supervisor_decision ended(struct supervisor *supervisor, int worker, int code, int signal)
{
    return supervisor_exited(supervisor, &(struct supervisor_exit){worker, code, signal}, RM_S);
}

Test(supervisor, expect_names_all_who_live_with_their_attempts)
{
    struct supervisor supervisor = supervisor_of(3, 4);
    struct str line = str_init(4096);
    supervisor_seen(&supervisor, 1);
    cr_assert_eq(ended(&supervisor, 1, 0, 9).action, SUPERVISOR_RESTART);
    cr_assert_eq(supervisor_start(&supervisor, 1), 1);
    supervisor_drilled(&supervisor, 0);
    ended(&supervisor, 0, 0, 9);
    supervisor_expect(&supervisor, &line);
    cr_assert_str_eq(str_text(&line), "{\"command\":\"expect\",\"workers\":[{\"worker\":1,\"attempt\":1},"
                                      "{\"worker\":2,\"attempt\":0}]}\n");
    cr_assert_eq(supervisor_living(&supervisor), 2);
    str_clear(&line);
}

Test(supervisor, a_worker_taken_by_a_drill_or_released_is_not_replaced)
{
    struct supervisor supervisor = supervisor_of(3, 3);
    supervisor_drilled(&supervisor, 0);
    supervisor_released(&supervisor, 1);
    cr_assert_eq(ended(&supervisor, 0, 0, 9).action, SUPERVISOR_GONE);
    cr_assert_eq(ended(&supervisor, 1, 0, 0).action, SUPERVISOR_GONE);
    cr_assert_eq(ended(&supervisor, 2, 0, 0).action, SUPERVISOR_GONE, "it left by itself");
    cr_assert_eq(supervisor_free_index(&supervisor), 0);
}

Test(supervisor, a_joiner_takes_the_lowest_free_index_with_a_higher_attempt)
{
    struct supervisor supervisor = supervisor_of(3, 3);
    cr_assert_eq(supervisor_free_index(&supervisor), -1);
    supervisor_drilled(&supervisor, 1);
    ended(&supervisor, 1, 0, 9);
    cr_assert_eq(supervisor_free_index(&supervisor), 1);
    cr_assert_eq(supervisor_start(&supervisor, 1), 1);
    cr_assert_eq(ended(&supervisor, 1, 4, 0).action, SUPERVISOR_RESTART,
                 "the drill was for the attempt before");
}

Test(supervisor, a_joiner_has_the_index_of_one_taken_away_as_soon_as_that_has_ended)
{
    struct supervisor supervisor = supervisor_of(3, 3);
    supervisor_drilled(&supervisor, 1);
    cr_assert_eq(supervisor_free_index(&supervisor), 1,
                 "its process is still there, but it is on its way out");
    supervisor_promise(&supervisor, 1);
    cr_assert_eq(supervisor_free_index(&supervisor), -1, "it is given away once");
    struct str line = str_init(4096);
    supervisor_expect(&supervisor, &line);
    cr_assert(strstr(str_text(&line), "{\"worker\":1,\"attempt\":0,\"next\":true}"), "%s", str_text(&line));
    str_clear(&line);
    cr_assert_eq(ended(&supervisor, 1, 0, 9).action, SUPERVISOR_NEXT);
    cr_assert_eq(supervisor_start(&supervisor, 1), 1);
    cr_assert_eq(supervisor_free_index(&supervisor), -1);
}

Test(supervisor, a_worker_that_nobody_ever_saw_is_not_started_for_ever)
{
    struct supervisor supervisor = supervisor_of(1, 1);
    for (int i = 0; i < 3; i++) { /* at the third the coordinator has its say */
        cr_assert_eq(ended(&supervisor, 0, 4, 0).action, SUPERVISOR_RESTART);
        supervisor_start(&supervisor, 0);
    }
    struct supervisor_decision d = ended(&supervisor, 0, 4, 0);
    cr_assert_eq(d.action, SUPERVISOR_FAIL);
    cr_assert_eq(d.exit_code, 5);
    cr_assert_str_eq(d.why, "workers ended 4 times before they could join (worker 0, exit 4), more than "
                            "failurePolicy.maxRestarts (2)");
}

Test(supervisor, one_in_quarantine_stays_away_and_its_index_is_given_to_nobody)
{
    struct supervisor supervisor = supervisor_of(2, 3);
    struct str line = str_init(4096);
    supervisor_quarantined(&supervisor, 1);
    cr_assert_eq(ended(&supervisor, 1, 4, 0).action, SUPERVISOR_GONE);
    cr_assert_eq(supervisor_free_index(&supervisor), 2);
    supervisor_expect(&supervisor, &line);
    cr_assert_str_eq(str_text(&line),
                     "{\"command\":\"expect\",\"workers\":[{\"worker\":0,\"attempt\":0}]}\n");
    str_clear(&line);
}

Test(supervisor, an_index_that_goes_into_quarantine_before_its_process_ends_is_the_newcomers_no_more)
{
    struct supervisor supervisor = supervisor_of(3, 3);
    supervisor_drilled(&supervisor, 1);
    cr_assert_eq(supervisor_free_index(&supervisor), 1);
    supervisor_promise(&supervisor, 1);
    supervisor_quarantined(&supervisor, 1);
    cr_assert_eq(ended(&supervisor, 1, 3, 0).action, SUPERVISOR_GONE);
}

Test(supervisor, what_one_in_quarantine_did_is_not_counted_here_either)
{
    struct supervisor supervisor = supervisor_of(2, 2);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(ended(&supervisor, 1, 4, 0).action, SUPERVISOR_RESTART);
        supervisor_start(&supervisor, 1);
    }
    supervisor_quarantined(&supervisor, 1);
    cr_assert_eq(ended(&supervisor, 1, 4, 0).action, SUPERVISOR_GONE);
    cr_assert_eq(ended(&supervisor, 0, 4, 0).action, SUPERVISOR_RESTART);
}

Test(supervisor, deaths_of_workers_that_were_in_a_ring_are_the_coordinators_to_count)
{
    struct supervisor supervisor = supervisor_of(1, 1);
    for (int i = 0; i < 20; i++) {
        supervisor_seen(&supervisor, 0);
        cr_assert_eq(ended(&supervisor, 0, 0, 9).action, SUPERVISOR_RESTART);
        supervisor_start(&supervisor, 0);
    }
}

Test(supervisor, the_window_of_failures_moves_on)
{
    struct supervisor supervisor;
    supervisor_init(&supervisor, 1, 1, 10 * RM_S);
    for (int i = 0; i < 5; i++) {
        supervisor_start(&supervisor, 0);
        cr_assert_eq(
            supervisor_exited(&supervisor, &(struct supervisor_exit){0, 4, 0}, (1 + i * 11) * RM_S).action,
            SUPERVISOR_RESTART);
    }
}

Test(supervisor, wrong_data_or_a_wrong_job_ends_the_run_at_once)
{
    struct supervisor supervisor = supervisor_of(2, 2);
    struct supervisor_decision d = ended(&supervisor, 1, 3, 0);
    cr_assert_eq(d.action, SUPERVISOR_FAIL);
    cr_assert_eq(d.exit_code, 3);
}

Test(supervisor, who_lives_is_not_started_a_second_time, .signal = SIGABRT)
{
    struct supervisor supervisor;
    supervisor_init(&supervisor, 3, 2, RM_S);
    cr_assert_eq(supervisor_start(&supervisor, 1), 0);
    supervisor_start(&supervisor, 1);
}

Test(supervisor, nobody_ends_twice, .signal = SIGABRT)
{
    struct supervisor supervisor;
    const struct supervisor_exit killed = {.worker = 1, .signal = SIGKILL};
    supervisor_init(&supervisor, 3, 2, RM_S);
    supervisor_start(&supervisor, 1);
    cr_assert_eq(supervisor_exited(&supervisor, &killed, 0).action, SUPERVISOR_RESTART);
    supervisor_exited(&supervisor, &killed, 0);
}
