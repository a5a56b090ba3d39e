#include "cli/core/crew.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <string.h>

static struct crew crew_of(int living, int max)
{
    struct crew crew;
    crew_init(&crew, max, 2, 3600 * RM_S);
    for (int w = 0; w < living; w++)
        crew_start(&crew, w);
    return crew;
}

static struct crew_decision ended(struct crew *crew, int worker, int code, int signal)
{
    return crew_exited(crew, &(struct crew_exit){worker, code, signal}, RM_S);
}

Test(crew, expect_names_all_who_live_with_their_attempts)
{
    struct crew crew = crew_of(3, 4);
    struct str line = str_init(4096);
    crew_seen(&crew, 1);
    cr_assert_eq(ended(&crew, 1, 0, 9).verdict, CREW_RESTART);
    cr_assert_eq(crew_start(&crew, 1), 1);
    crew_drilled(&crew, 0);
    ended(&crew, 0, 0, 9);
    crew_expect(&crew, &line);
    cr_assert_str_eq(str_text(&line), "{\"command\":\"expect\",\"workers\":[{\"worker\":1,\"attempt\":1},"
                                      "{\"worker\":2,\"attempt\":0}]}\n");
    cr_assert_eq(crew_living(&crew), 2);
    str_clear(&line);
}

Test(crew, a_worker_taken_by_a_drill_or_released_is_not_replaced)
{
    struct crew crew = crew_of(3, 3);
    crew_drilled(&crew, 0);
    crew_released(&crew, 1);
    cr_assert_eq(ended(&crew, 0, 0, 9).verdict, CREW_GONE);
    cr_assert_eq(ended(&crew, 1, 0, 0).verdict, CREW_GONE);
    cr_assert_eq(ended(&crew, 2, 0, 0).verdict, CREW_GONE, "it left by itself");
    cr_assert_eq(crew_free_index(&crew), 0);
}

Test(crew, a_joiner_takes_the_lowest_free_index_with_a_higher_attempt)
{
    struct crew crew = crew_of(3, 3);
    cr_assert_eq(crew_free_index(&crew), -1);
    crew_drilled(&crew, 1);
    ended(&crew, 1, 0, 9);
    cr_assert_eq(crew_free_index(&crew), 1);
    cr_assert_eq(crew_start(&crew, 1), 1);
    cr_assert_eq(ended(&crew, 1, 4, 0).verdict, CREW_RESTART, "the drill was for the attempt before");
}

Test(crew, a_joiner_has_the_index_of_one_taken_away_as_soon_as_that_has_ended)
{
    struct crew crew = crew_of(3, 3);
    crew_drilled(&crew, 1);
    cr_assert_eq(crew_free_index(&crew), 1, "its process is still there, but it is on its way out");
    crew_promise(&crew, 1);
    cr_assert_eq(crew_free_index(&crew), -1, "it is given away once");
    struct str line = str_init(4096);
    crew_expect(&crew, &line);
    cr_assert(strstr(str_text(&line), "{\"worker\":1,\"attempt\":0,\"next\":true}"), "%s", str_text(&line));
    str_clear(&line);
    cr_assert_eq(ended(&crew, 1, 0, 9).verdict, CREW_NEXT);
    cr_assert_eq(crew_start(&crew, 1), 1);
    cr_assert_eq(crew_free_index(&crew), -1);
}

Test(crew, a_worker_that_nobody_ever_saw_is_not_started_for_ever)
{
    struct crew crew = crew_of(1, 1);
    for (int i = 0; i < 3; i++) { /* at the third the coordinator has its say */
        cr_assert_eq(ended(&crew, 0, 4, 0).verdict, CREW_RESTART);
        crew_start(&crew, 0);
    }
    struct crew_decision d = ended(&crew, 0, 4, 0);
    cr_assert_eq(d.verdict, CREW_FAIL);
    cr_assert_eq(d.exit_code, 5);
    cr_assert_str_eq(d.why, "workers ended 4 times before they could join (worker 0, exit 4), more than "
                            "failurePolicy.maxRestarts (2)");
}

Test(crew, one_in_quarantine_stays_away_and_its_index_is_given_to_nobody)
{
    struct crew crew = crew_of(2, 3);
    struct str line = str_init(4096);
    crew_quarantined(&crew, 1);
    cr_assert_eq(ended(&crew, 1, 4, 0).verdict, CREW_GONE);
    cr_assert_eq(crew_free_index(&crew), 2);
    crew_expect(&crew, &line);
    cr_assert_str_eq(str_text(&line),
                     "{\"command\":\"expect\",\"workers\":[{\"worker\":0,\"attempt\":0}]}\n");
    str_clear(&line);
}

Test(crew, what_one_in_quarantine_did_is_not_counted_here_either)
{
    struct crew crew = crew_of(2, 2);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(ended(&crew, 1, 4, 0).verdict, CREW_RESTART);
        crew_start(&crew, 1);
    }
    crew_quarantined(&crew, 1);
    cr_assert_eq(ended(&crew, 1, 4, 0).verdict, CREW_GONE);
    cr_assert_eq(ended(&crew, 0, 4, 0).verdict, CREW_RESTART);
}

Test(crew, deaths_of_workers_that_were_in_a_ring_are_the_coordinators_to_count)
{
    struct crew crew = crew_of(1, 1);
    for (int i = 0; i < 20; i++) {
        crew_seen(&crew, 0);
        cr_assert_eq(ended(&crew, 0, 0, 9).verdict, CREW_RESTART);
        crew_start(&crew, 0);
    }
}

Test(crew, the_window_of_failures_moves_on)
{
    struct crew crew;
    crew_init(&crew, 1, 1, 10 * RM_S);
    for (int i = 0; i < 5; i++) {
        crew_start(&crew, 0);
        cr_assert_eq(crew_exited(&crew, &(struct crew_exit){0, 4, 0}, (1 + i * 11) * RM_S).verdict,
                     CREW_RESTART);
    }
}

Test(crew, wrong_data_or_a_wrong_job_ends_the_run_at_once)
{
    struct crew crew = crew_of(2, 2);
    struct crew_decision d = ended(&crew, 1, 3, 0);
    cr_assert_eq(d.verdict, CREW_FAIL);
    cr_assert_eq(d.exit_code, 3);
}

Test(crew, who_lives_is_not_started_a_second_time, .signal = SIGABRT)
{
    struct crew crew;
    crew_init(&crew, 3, 2, RM_S);
    cr_assert_eq(crew_start(&crew, 1), 0);
    crew_start(&crew, 1);
}

Test(crew, nobody_ends_twice, .signal = SIGABRT)
{
    struct crew crew;
    const struct crew_exit killed = {.worker = 1, .signal = SIGKILL};
    crew_init(&crew, 3, 2, RM_S);
    crew_start(&crew, 1);
    cr_assert_eq(crew_exited(&crew, &killed, 0).verdict, CREW_RESTART);
    crew_exited(&crew, &killed, 0);
}
