#include "cli/core/screen.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

static const struct screen_style plain = {.columns = 80};

static struct event event_of(enum event_kind kind)
{
    return (struct event){.kind = kind,
                          .step = -1,
                          .worker = -1,
                          .loss = NAN,
                          .norm = NAN,
                          .clip = NAN,
                          .rate = NAN,
                          .goodput = NAN};
}

static void step(struct report *r, int64_t s, double loss, rm_time now)
{
    struct event e = event_of(EVENT_STEP);
    e.step = s;
    e.loss = loss;
    e.tokens_per_second = 81234;
    e.world = 3;
    report_take(r, &e, now);
}

static void shows(struct str *out, const char *text)
{
    cr_assert_str_eq(str_text(out), text);
    str_clear(out);
}

Test(screen, the_progress_line_says_step_loss_pace_workers_and_time_left)
{
    static struct report r;
    struct str out = str_init(4096);
    report_init(&r, 300, 0, 0);
    screen_progress(&r, plain, &out);
    shows(&out, "  step 0/300         starting");
    step(&r, 1, 5.5, RM_S);
    step(&r, 101, 2.51234, 101 * RM_S);
    screen_progress(&r, plain, &out);
    shows(&out, "  step 101/300       loss 2.5123  81,234 tokens/s  3 workers  3 min 19 s left");
}

/* 144 columns and more have room for what the update was made with, and no line is longer than the terminal.
 */
Test(screen, a_very_wide_terminal_gets_the_numbers_of_the_update_as_far_as_they_are_known)
{
    static struct report r;
    struct str out = str_init(4096);
    struct event e = event_of(EVENT_STEP);
    report_init(&r, 12345678, 0, 0);
    step(&r, 1, 5.5, RM_S);
    screen_progress(&r, (struct screen_style){.columns = 144}, &out);
    cr_assert_null(strstr(str_text(&out), "norm"), "%s", str_text(&out));
    e.step = 1234567;
    e.loss = 12.5;
    e.norm = 1234.5;
    e.rate = 5.9876e-05;
    e.world = 64;
    e.tokens_per_second = 12345678;
    report_take(&r, &e, 2000000 * RM_S);
    for (int columns = 143; columns <= 144; columns++) {
        str_reset(&out);
        screen_progress(&r, (struct screen_style){.columns = columns}, &out);
        bool shown = strstr(str_text(&out), "loss 12.5000  norm 1.23e+03  lr 5.99e-05  ");
        cr_assert_eq(shown, columns == 144, "%s", str_text(&out));
        size_t bar_cells = 24, bytes_of_one = 3;
        cr_assert_leq(out.length - bar_cells * (bytes_of_one - 1), (size_t)columns, "%s", str_text(&out));
    }
    str_clear(&out);
}

Test(screen, what_has_samples_is_not_said_to_have_tokens)
{
    static struct report r;
    struct str out = str_init(4096);
    struct event e = event_of(EVENT_STEP);
    report_init(&r, 100, 0, 0);
    e.step = 1;
    e.loss = 2.5;
    e.samples_per_second = 4321;
    report_take(&r, &e, RM_S);
    screen_progress(&r, plain, &out);
    shows(&out, "  step 1/100         loss 2.5000  4,321 samples/s");
}

Test(screen, a_wide_terminal_gets_a_bar_and_colours_only_where_wanted)
{
    static struct report r;
    struct str out = str_init(4096);
    report_init(&r, 100, 0, 0);
    step(&r, 50, 2.5, RM_S);
    screen_progress(&r, (struct screen_style){.columns = 120, .unicode = true}, &out);
    cr_assert(strstr(str_text(&out), "━━━━━━━━━━━━────────────"), "%s", str_text(&out));
    str_reset(&out);
    screen_progress(&r, (struct screen_style){.columns = 120}, &out);
    cr_assert(strstr(str_text(&out), "============------------"), "%s", str_text(&out));
    cr_assert_null(strchr(str_text(&out), '\033'));
    str_reset(&out);
    screen_progress(&r, (struct screen_style){.columns = 120, .colour = true}, &out);
    cr_assert_not_null(strchr(str_text(&out), '\033'));
    str_clear(&out);
}

static void lose_worker(struct report *r, struct str *out)
{
    struct event lost = event_of(EVENT_WORKER_LOST), back = event_of(EVENT_RECOVERED);
    lost.worker = 1;
    text_copy(lost.text, sizeof lost.text, "its connection closed");
    report_take(r, &lost, 0);
    screen_event(r, &lost, plain, out);
    text_copy(back.text, sizeof back.text, "WorkerLost");
    back.recovered.detect = 2;
    back.recovered.total = 57.4;
    back.recovered.steps_redone = 1;
    report_take(r, &back, 0);
    screen_event(r, &back, plain, out);
}

Test(screen, a_loss_and_what_it_cost_are_two_lines)
{
    static struct report r;
    struct str out = str_init(4096);
    report_init(&r, 300, 0, 0);
    step(&r, 100, 2.5, RM_S);
    lose_worker(&r, &out);
    shows(&out, "  step 100    worker 1 lost (its connection closed)\n"
                "  step 100    recovered in 57 ms (detect 2, agree 0, ring 0, state 0, first step 0), "
                "1 step redone\n");
}

Test(screen, a_loss_by_a_drill_is_told_as_one_until_the_worker_is_back)
{
    static struct report r;
    struct str out = str_init(4096);
    struct event lost = event_of(EVENT_WORKER_LOST), back = event_of(EVENT_WORKER_JOINED);
    report_init(&r, 300, 0, 0);
    step(&r, 100, 2.5, RM_S);
    report_drill(&r, 1, "killed");
    text_copy(lost.text, sizeof lost.text, "a ring neighbour lost it too");
    for (int i = 0; i < 2; i++) {
        lost.worker = back.worker = 1;
        report_take(&r, &lost, 0);
        screen_event(&r, &lost, plain, &out);
        report_take(&r, &back, 0);
    }
    shows(&out, "  step 100    worker 1 lost (killed by the drill)\n"
                "  step 100    worker 1 lost (a ring neighbour lost it too)\n");
}

static struct job_spec of_a_job; /* exact */

Test(screen, the_end_names_each_recovery_and_where_the_weights_are)
{
    static struct report r;
    struct str out = str_init(8192), ignored = str_init(4096);
    report_init(&r, 300, 0, 0);
    step(&r, 1, 5.5, RM_S);
    step(&r, 300, 2.1, 70 * RM_S);
    lose_worker(&r, &ignored);
    struct event end = event_of(EVENT_COMPLETE);
    end.step = 300;
    end.loss = 2.1;
    end.goodput = 0.971;
    end.exact = true;
    text_copy(end.uri, sizeof end.uri, "file:///runs/a/final");
    text_copy(end.weights_sha256, sizeof end.weights_sha256, "abcd");
    report_take(&r, &end, 72 * RM_S);
    screen_end(&r, &of_a_job, plain, 72 * RM_S, &out);
    const char *said = str_text(&out);
    cr_assert(
        strstr(said, "Complete: 300 steps in 1 min 12 s, loss 2.1000 (it began at 5.5000), goodput 97.1 %"),
        "%s", said);
    cr_assert(strstr(said, "step 300  worker 1 lost"), "%s", said);
    cr_assert(strstr(said, "57.4       1\n"), "%s", said);
    cr_assert(strstr(said, "/runs/a/final\n"), "%s", said);
    cr_assert(strstr(said, "SHA-256   abcd"), "%s", said);
    str_clear(&out);
    str_clear(&ignored);
}

Test(screen, bits_that_were_not_exact_say_why_by_how_they_were_summed)
{
    static struct report r;
    struct str out = str_init(8192);
    struct job_spec spec = {.reduction = JOB_FAST};
    struct event end = event_of(EVENT_COMPLETE);
    report_init(&r, 300, 0, 0);
    step(&r, 300, 2.1, RM_S);
    report_take(&r, &end, RM_S);
    screen_end(&r, &spec, plain, RM_S, &out);
    cr_assert(strstr(str_text(&out), "exact     no: another number or history of workers gives other bits\n"),
              "%s", str_text(&out));
    spec.reduction = JOB_EXACT;
    str_reset(&out);
    screen_end(&r, &spec, plain, RM_S, &out);
    cr_assert(strstr(str_text(&out), "exact     no: its sums are exact, but a part of it was computed by "
                                     "other arithmetic\n"),
              "%s", str_text(&out));
    str_clear(&out);
}

Test(screen, a_job_that_was_complete_before_says_so)
{
    static struct report r;
    struct str out = str_init(8192);
    report_init(&r, 300, 300, 0);
    struct event end = event_of(EVENT_COMPLETE);
    end.step = 300;
    report_take(&r, &end, 0);
    screen_end(&r, &of_a_job, plain, 0, &out);
    cr_assert(strstr(str_text(&out), "Complete already: 300 steps; --overwrite trains anew\n"), "%s",
              str_text(&out));
    str_clear(&out);
}

Test(screen, a_recovery_without_a_named_worker_is_named_by_its_cause)
{
    static struct report r;
    report_init(&r, 300, 0, 0);
    struct event back = event_of(EVENT_RECOVERED);
    text_copy(back.text, sizeof back.text, "TrainerExit");
    report_take(&r, &back, 0);
    cr_assert_str_eq(r.recovery[0].label, "a trainer ended");
}

Test(screen, more_recoveries_than_there_is_room_for_are_counted)
{
    static struct report r;
    struct str out = str_init(1 << 16), ignored = str_init(1 << 16);
    report_init(&r, 300, 0, 0);
    for (int i = 0; i < REPORT_RECOVERIES_MAX + 5; i++)
        lose_worker(&r, &ignored);
    struct event end = event_of(EVENT_COMPLETE);
    end.step = 300;
    report_take(&r, &end, 0);
    screen_end(&r, &of_a_job, plain, 0, &out);
    cr_assert(strstr(str_text(&out), "and 5 more"), "%s", str_text(&out));
    str_clear(&out);
    str_clear(&ignored);
}

Test(screen, numbers_are_written_for_people)
{
    struct str out = str_init(64);
    show_count(0, &out);
    shows(&out, "0");
    show_count(1234567, &out);
    shows(&out, "1,234,567");
    show_count(-1234, &out);
    shows(&out, "-1,234");
    show_bytes(999, &out);
    shows(&out, "999 bytes");
    show_bytes(1450000, &out);
    shows(&out, "1.4 MB");
    show_time(3725 * RM_S, &out);
    shows(&out, "1 h 02 min");
    show_time(42 * RM_S, &out);
    shows(&out, "42 s");
    show_ms(3.21, &out);
    shows(&out, "3.2 ms");
}

Test(screen, a_coordinator_that_was_replaced_is_told_as_that_and_takes_no_workers_name)
{
    static struct report r;
    struct str out = str_init(4096);
    struct event lost = event_of(EVENT_WORKER_LOST), back = event_of(EVENT_RECOVERED);
    report_init(&r, 300, 0, 0);
    step(&r, 80, 2.5, RM_S);
    lost.worker = 1;
    report_take(&r, &lost, 0);
    text_copy(back.text, sizeof back.text, "CoordinatorLost");
    back.recovered.detect = 29;
    back.recovered.agree = 47;
    back.recovered.total = 76;
    report_take(&r, &back, 0);
    screen_event(&r, &back, plain, &out);
    shows(&out,
          "  step 80     another coordinator after 76 ms (detect 29, agree 47); workers train meanwhile\n");
    text_copy(back.text, sizeof back.text, "WorkerLost");
    report_take(&r, &back, 0);
    cr_assert_str_eq(r.recovery[0].label, "coordinator lost");
    cr_assert_str_eq(r.recovery[1].label, "worker 1 lost");
    cr_assert_eq(r.recovery[1].step, 80);
}

Test(screen, how_often_is_saved_is_told_with_its_reason)
{
    static struct report r;
    struct str out = str_init(8192);
    struct event chosen = event_of(EVENT_CHECKPOINT_INTERVAL);
    report_init(&r, 300, 0, 0);
    text_copy(chosen.text, sizeof chosen.text, "every 60 s: what a save costs is not known yet");
    report_take(&r, &chosen, RM_S);
    screen_event(&r, &chosen, plain, &out);
    shows(&out, "  step 0      checkpoints every 60 s: what a save costs is not known yet\n");
}

Test(screen, a_store_that_was_away_is_told_when_it_happens_and_in_the_report)
{
    static struct report r;
    struct str out = str_init(8192);
    struct event waits = event_of(EVENT_CHECKPOINT_WAITING), saved = event_of(EVENT_CHECKPOINT_SAVED);
    struct event ended = event_of(EVENT_FAILED);
    report_init(&r, 300, 0, 0);
    waits.step = saved.step = 20;
    text_copy(waits.text, sizeof waits.text, "no answer");
    report_take(&r, &waits, RM_S);
    screen_event(&r, &waits, plain, &out);
    shows(&out, "  step 20     checkpoint waits: the newest state is kept and tried again: no answer\n");
    out = str_init(8192);
    report_take(&r, &waits, 2 * RM_S);
    saved.bytes = 5000;
    saved.ms = 12;
    saved.waited = 34;
    report_take(&r, &saved, 35 * RM_S);
    screen_event(&r, &saved, plain, &out);
    shows(&out,
          "  step 20     checkpoint saved, 5.0 kB in 12 ms; the store takes checkpoints again after 34 s\n");
    out = str_init(8192);
    report_take(&r, &waits, 40 * RM_S);
    report_take(&r, &ended, 41 * RM_S);
    screen_end(&r, &of_a_job, plain, 41 * RM_S, &out);
    shows(&out, "\n  store     did not take checkpoints 2 times, 34 s in all; it still doesn't\n");
}

Test(screen, a_notice_and_its_end_are_a_line_each)
{
    static struct report r;
    struct str out = str_init(4096);
    struct event e = event_of(EVENT_NOTICE_RECEIVED);
    report_init(&r, 300, 0, 0);
    e.worker = 2;
    text_copy(e.text, sizeof e.text, "reclaim");
    screen_event(&r, &e, plain, &out);
    e.kind = EVENT_NOTICE_WITHDRAWN;
    screen_event(&r, &e, plain, &out);
    cr_assert(strstr(str_text(&out), "worker 2 was given notice (reclaim)\n"), "%s", str_text(&out));
    cr_assert(strstr(str_text(&out), "worker 2 is no longer under notice (reclaim)\n"), "%s", str_text(&out));
    str_clear(&out);
}
