/* What the pages say of a story. */
#include "coordinator/status/history.h"

#include <math.h>
#include <stdio.h>

#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_state.h"

#include "common/wire/json.h"
#include "operator/core/coordinator.h"
#include "tests/unit/coordinator/core/story.h"

struct watch {
    struct story s;
    struct history *c;
    struct js *page;
};

static const struct history_terms terms = {.wall_ms = 99, .job = "uid", .checkpoint_uri = "file:///c"};

static void arrange_with(struct watch *w, bool mixed)
{
    *w = (struct watch){0};
    struct rdzv_settings settings = story_settings(1);
    settings.unsupervised = true;
    settings.lost_after = 60 * RM_S;
    settings.allow_mixed_hardware = mixed;
    story_begin(&w->s, settings);
    w->c = calloc(1, sizeof *w->c);
}

static void arrange(struct watch *w)
{
    arrange_with(w, false);
}

static void dismiss(struct watch *w)
{
    js_free(w->page);
    free(w->c);
    story_end(&w->s);
}

/* What the last step told. */
static void take_note(struct watch *w)
{
    for (int i = 0; i < w->s.out->count; i++)
        if (w->s.out->action[i].kind == RDZV_TELL)
            history_note(w->c, w->s.out->action[i].tell, 1000 + w->s.now / RM_MS, w->s.now);
    history_look(w->c, w->s.st);
}

static const struct js *page(struct watch *w)
{
    struct error err;
    struct str out = str_init(1 << 20);
    history_print_status(w->c, w->s.st, &terms, w->s.now, &out);
    cr_assert_leq(out.length, STATUS_BYTES_MAX);
    js_free(w->page);
    w->page = js_parse(str_text(&out), out.length, "status", &err);
    cr_assert(w->page, "%s", err.text);
    str_clear(&out);
    return w->page;
}

static int64_t number(const struct js *o, const char *key)
{
    int64_t value = -999;
    js_as_int(js_get(o, key), &value);
    return value;
}

static const char *words(const struct js *o, const char *key)
{
    const char *text = js_as_string(js_get(o, key));
    return text ? text : "absent";
}

static void train_three(struct watch *w)
{
    for (int i = 0; i < 3; i++) {
        hello(&w->s, i, -1);
        stopped(&w->s, i, -1, -1);
        listed(&w->s, i, -1, -1);
        take_note(w);
    }
    for (int i = 0; i < 3; i++) {
        ready(&w->s, i, 0);
        take_note(w);
    }
}

Test(history, a_ring_at_work_is_shown_with_its_members_and_attempts)
{
    struct watch w;
    arrange(&w);
    w.s.attempt[2] = 4;
    train_three(&w);
    const struct js *o = page(&w), *ring = js_get(o, "ring");
    cr_assert_str_eq(words(o, "state"), "Training");
    cr_assert_str_eq(words(o, "job"), "uid");
    cr_assert_eq(number(ring, "size"), 3);
    cr_assert_eq(number(js_at(js_get(ring, "members"), 2), "attempt"), 4);
    cr_assert_gt(number(ring, "formedTime"), 1000);
    cr_assert_str_eq(words(js_at(js_get(o, "workers"), 0), "phase"), "training");
    cr_assert_eq(js_kind(js_get(o, "result")), JS_NULL);
    cr_assert_eq(js_kind(js_get(o, "checkpoint")), JS_NULL);
    dismiss(&w);
}

static bool is_mixed(struct watch *w)
{
    bool mixed;
    cr_assert(js_as_bool(js_get(page(w), "mixedHardware"), &mixed));
    return mixed;
}

Test(history, that_kinds_of_machines_were_mixed_is_shown)
{
    struct watch w;
    arrange_with(&w, true);
    w.s.machine[2] = "cpu-b";
    train_three(&w);
    cr_assert(is_mixed(&w));
    dismiss(&w);
}

/* Those that are there now are of one kind; the state that they took over says that others were not. */
Test(history, that_they_were_mixed_before_is_known_with_the_next_checkpoint)
{
    struct watch w;
    struct message m;
    arrange_with(&w, true);
    train_three(&w);
    cr_assert_not(is_mixed(&w));
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed = (struct msg_checkpointed){.step = 2, .parts = 1, .count = 1};
    hear(&w.s, 0, &m);
    cr_assert(is_mixed(&w));
    dismiss(&w);
}

Test(history, the_revision_grows_with_events_and_not_with_each_step)
{
    struct watch w;
    arrange(&w);
    train_three(&w);
    w.s.now += 10 * RM_S;
    progress(&w.s, 0, 1);
    take_note(&w);
    int64_t before = w.c->revision;
    progress(&w.s, 0, 2);
    take_note(&w);
    cr_assert_eq(w.c->revision, before, "a step follows a step");
    w.s.now += 5 * RM_S;
    progress(&w.s, 0, 3);
    take_note(&w);
    cr_assert_eq(w.c->revision, before + 1, "now and then one is news");
    closed(&w.s, 1);
    take_note(&w);
    cr_assert_eq(w.c->revision, before + 2, "the sentence is another one");
    dismiss(&w);
}

Test(history, a_lost_worker_is_named_until_a_higher_attempt_is_there)
{
    struct watch w;
    arrange(&w);
    train_three(&w);
    fault_of(&w.s, 0, FAULT_RING, 1, -1);
    take_note(&w);
    closed(&w.s, 1);
    take_note(&w);
    const struct js *lost = js_get(page(&w), "lost");
    cr_assert_eq(js_size(lost), 1, "%s", str_text(&w.s.log));
    cr_assert_eq(number(js_at(lost, 0), "worker"), 1);
    cr_assert_eq(number(js_at(lost, 0), "attempt"), 0);
    w.s.attempt[1] = 1;
    hello(&w.s, 1, -1);
    take_note(&w);
    cr_assert_eq(js_size(js_get(page(&w), "lost")), 0);
    dismiss(&w);
}

Test(history, the_end_has_a_result)
{
    struct watch w;
    struct str text = str_init(1 << 16);
    arrange(&w);
    train_three(&w);
    for (int64_t step = 1; step <= 100; step++) {
        progress(&w.s, 0, step);
        take_note(&w);
    }
    for (int i = 0; i < 3; i++)
        finished(&w.s, i);
    for (int i = 0; i < 3; i++)
        checkpointed(&w.s, i, 100, i, 3, true);
    published(&w.s, 0, 100, true);
    take_note(&w);
    cr_assert_eq(w.s.ended, 0, "%s", str_text(&w.s.log));
    const struct js *o = page(&w), *result = js_get(o, "result");
    cr_assert_str_eq(words(o, "state"), "Finished");
    cr_assert_eq(number(result, "exitCode"), 0);
    cr_assert_eq(number(result, "step"), 100);
    cr_assert_eq(number(result, "bytes"), 1000);
    cr_assert_eq(number(result, "savedTime"), number(js_get(o, "checkpoint"), "savedTime"));
    cr_assert_str_eq(words(result, "uri"), "file:///c/final");
    cr_assert_eq(strncmp(words(result, "weightsSha256"), "07", 2), 0);
    cr_assert_str_eq(words(js_get(o, "checkpoint"), "uri"), "file:///c/final");
    history_print_result(w.c, &terms, &text);
    cr_assert(strstr(str_text(&text), "\"weightsSha256\":\"07"), "%s", str_text(&text));
    cr_assert_lt(text.length, RESULT_BYTES_MAX);
    str_clear(&text);
    dismiss(&w);
}

Test(history, a_page_is_bounded_whatever_happened)
{
    struct watch w;
    arrange(&w);
    struct rdzv_tell tell = {.kind = TELL_WORKER_LOST, .attempt = INT32_MAX};
    memset(tell.text, '\x01', sizeof tell.text - 1); /* takes six bytes each in JSON */
    for (int i = 0; i < 10 * HISTORY_EVENTS; i++) {
        tell.worker = i % RM_WORKERS_MAX;
        history_note(w.c, &tell, i, i);
    }
    size_t kept = js_size(js_get(page(&w), "events"));
    cr_assert_lt(kept, HISTORY_EVENTS);
    dismiss(&w);
}

Test(history, of_many_events_the_newest_are_kept_in_order)
{
    struct watch w;
    arrange(&w);
    struct rdzv_tell tell = {.kind = TELL_WAITING};
    for (int i = 0; i < 100; i++)
        history_note(w.c, &tell, i, i);
    const struct js *events = js_get(page(&w), "events");
    cr_assert_eq(js_size(events), HISTORY_EVENTS);
    cr_assert_eq(number(js_at(events, 0), "sequence"), 37);
    cr_assert_eq(number(js_at(events, HISTORY_EVENTS - 1), "sequence"), 100);
    dismiss(&w);
}

static void metrics_of(const struct watch *w, struct str *out)
{
    struct exposition metrics = exposition_begin(out, "ringmaster_", NULL);
    str_reset(out);
    history_print_metrics(w->c, w->s.st, w->s.now, &metrics);
    exposition_end(&metrics);
}

/* A step of 10 tokens, or samples, as worker `w` tells it. */
static void step_with(struct watch *w, int worker, int64_t step, struct msg_numbers numbers)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.progress.step = step;
    m.progress.loss = 2.5;
    m.progress.loss_known = true;
    m.progress.numbers = numbers;
    m.progress.tokens = 10;
    m.progress.step_time = RM_S / 2;
    hear(&w->s, worker, &m);
    take_note(w);
}

static void step_in(struct watch *w, int64_t step, rm_time took)
{
    progress_in(&w->s, 0, step, took);
    take_note(w);
}

static double real_of(const struct js *o, const char *key)
{
    double value = NAN;
    cr_assert_not_null(js_get(o, key), "%s", key);
    js_as_real(js_get(o, key), &value);
    return value;
}

static double time_left(struct watch *w)
{
    return real_of(js_get(page(w), "progress"), "etaSeconds");
}

/* The other two go on from that step. */
static void lose_worker_one(struct watch *w, int64_t step)
{
    fault_of(&w->s, 0, FAULT_RING, 1, -1);
    closed(&w->s, 1);
    stopped(&w->s, 0, step, step);
    stopped(&w->s, 2, step, step);
    ready(&w->s, 0, step);
    ready(&w->s, 2, step);
    take_note(w);
    cr_assert_eq(rdzv_state(w->s.st), RDZV_TRAINING, "%s", str_text(&w->s.log));
    cr_assert_eq(w->s.st->world, 2);
}

static void shows_metric(const struct watch *w, const char *line, bool shown)
{
    struct str out = str_init(1 << 20);
    metrics_of(w, &out);
    cr_assert_eq(strstr(str_text(&out), line) != NULL, shown, "%s: %s", line, str_text(&out));
    str_clear(&out);
}

/* By it an autoscaler chooses a size: what the one before could do says nothing of this one. */
Test(history, the_time_left_is_that_of_a_ring_of_this_size)
{
    struct watch w;
    arrange(&w);
    train_three(&w);
    cr_assert(isnan(time_left(&w)), "null, and not 0");
    for (int64_t step = 1; step <= 20; step++)
        step_in(&w, step, RM_S);
    cr_assert_eq(time_left(&w), 80);
    lose_worker_one(&w, 20);
    cr_assert(isnan(time_left(&w)), "%g s", time_left(&w));
    shows_metric(&w, "\nringmaster_step_seconds 1\n", true);
    step_in(&w, 21, 2 * RM_S);
    cr_assert_eq(time_left(&w), 2 * 79);
    step_in(&w, 22, 4 * RM_S);
    cr_assert_eq(time_left(&w), 3 * 78, "the first steps are a mean");
    dismiss(&w);
}

Test(history, what_an_update_was_made_with_is_told_with_its_step_and_stands_on_both_pages)
{
    struct watch w;
    arrange(&w);
    train_three(&w);
    step_with(&w, 0, 1, (struct msg_numbers){.norm = 1.5, .clip = 0.5, .rate = 0.125});
    cr_assert(said(&w.s, "\"tokensPerSecond\":20.0,\"world\":3,\"gradientNorm\":1.5,\"clipFactor\":0.5,"
                         "\"learningRate\":0.125}"),
              "%s", str_text(&w.s.log));
    const struct js *progress = js_get(page(&w), "progress");
    cr_assert(real_of(progress, "gradientNorm") == 1.5 && real_of(progress, "clipFactor") == 0.5 &&
              real_of(progress, "learningRate") == 0.125);
    cr_assert(isnan(real_of(progress, "heldOutLoss")) && isnan(real_of(progress, "samplesPerSecond")));
    shows_metric(&w, "\nringmaster_gradient_norm 1.5\n", true);
    shows_metric(&w, "\nringmaster_clip_factor 0.5\n", true);
    shows_metric(&w, "\nringmaster_learning_rate 0.125\n", true);
    shows_metric(&w, "ringmaster_held_out_loss", false);
    struct message m;
    message_init(&m, MSG_EVALUATED);
    m.evaluated.step = 1;
    m.evaluated.loss = 3.25;
    hear(&w.s, 0, &m);
    shows_metric(&w, "\nringmaster_held_out_loss 3.25\n", true);
    cr_assert_eq(real_of(js_get(page(&w), "progress"), "heldOutLoss"), 3.25);
    dismiss(&w);
}

/* A trainer that died and came back tells the step that it holds, without the numbers; another one has them.
 */
Test(history, numbers_that_nobody_knows_are_absent_until_somebody_does)
{
    static const char *const names[] = {"gradient_norm", "clip_factor", "learning_rate"};
    struct watch w;
    arrange(&w);
    train_three(&w);
    step_with(&w, 0, 1, msg_numbers_unknown());
    cr_assert(said(&w.s, "\"tokensPerSecond\":20.0,\"world\":3}"), "%s", str_text(&w.s.log));
    cr_assert(isnan(real_of(js_get(page(&w), "progress"), "gradientNorm")), "null, and not 0");
    for (int i = 0; i < 3; i++)
        shows_metric(&w, names[i], false);
    step_with(&w, 1, 1, (struct msg_numbers){.norm = 0, .clip = 1, .rate = 0.125});
    cr_assert_eq(real_of(js_get(page(&w), "progress"), "gradientNorm"), 0, "a norm may be 0");
    for (int i = 0; i < 3; i++)
        shows_metric(&w, names[i], true);
    /* a program's: its optimizer is its own */
    step_with(&w, 0, 2, (struct msg_numbers){.norm = 0.75, .clip = NAN, .rate = NAN});
    cr_assert(said(&w.s, "\"gradientNorm\":0.75}"), "%s", str_text(&w.s.log));
    shows_metric(&w, "learning_rate", false);
    dismiss(&w);
}

Test(history, tokens_are_counted_once_a_step_also_where_a_step_was_told_by_nobody)
{
    struct watch w;
    arrange(&w);
    train_three(&w);
    shows_metric(&w, "\nringmaster_tokens_total 0\n", true);
    step_with(&w, 0, 1, msg_numbers_unknown());
    step_with(&w, 1, 1, msg_numbers_unknown());
    shows_metric(&w, "\nringmaster_tokens_total 10\n", true);
    step_with(&w, 1, 4, msg_numbers_unknown()); /* nobody knows of 2 and 3 any more */
    shows_metric(&w, "\nringmaster_tokens_total 40\n", true);
    shows_metric(&w, "samples", false);
    dismiss(&w);
}

Test(history, a_program_whose_steps_are_made_of_samples_has_no_tokens)
{
    struct watch w;
    arrange(&w);
    w.s.st->settings.brought = true;
    train_three(&w);
    step_with(&w, 0, 1, msg_numbers_unknown());
    cr_assert(said(&w.s, "\"samplesPerSecond\":20.0,\"world\":3}"), "%s", str_text(&w.s.log));
    const struct js *progress = js_get(page(&w), "progress");
    cr_assert_eq(real_of(progress, "samplesPerSecond"), 20);
    cr_assert(isnan(real_of(progress, "tokensPerSecond")));
    shows_metric(&w, "\nringmaster_samples_total 10\n", true);
    shows_metric(&w, "\nringmaster_step_samples 10\n", true);
    shows_metric(&w, "tokens", false);
    dismiss(&w);
}

Test(history, how_long_recoveries_took_is_a_histogram)
{
    static const rm_time took[] = {9 * RM_MS, 10 * RM_MS, 57 * RM_MS, 20 * 60 * RM_S};
    struct watch w;
    arrange(&w);
    for (int i = 0; i < 4; i++) {
        struct rdzv_tell tell = {.kind = TELL_RECOVERED,
                                 .recovery = {.cause = CAUSE_WORKER_LOST, .total = took[i]}};
        history_note(w.c, &tell, i, i);
    }
    shows_metric(&w, "\n# TYPE ringmaster_recovery_duration_seconds histogram\n", true);
    shows_metric(&w, "duration_seconds_bucket{le=\"0.01\"} 2\n", true);
    shows_metric(&w, "duration_seconds_bucket{le=\"0.05\"} 2\n", true);
    shows_metric(&w, "duration_seconds_bucket{le=\"0.1\"} 3\n", true);
    shows_metric(&w, "duration_seconds_bucket{le=\"300.0\"} 3\n", true);
    shows_metric(&w, "duration_seconds_bucket{le=\"+Inf\"} 4\n", true);
    shows_metric(&w, "duration_seconds_sum 1200.076\n", true);
    shows_metric(&w, "duration_seconds_count 4\n", true);
    dismiss(&w);
}

/* The value of each sample of a counter of the page, in the page's order; returns how many. */
static int counters(const struct watch *w, double value[], int most)
{
    struct str out = str_init(1 << 20);
    struct exposition metrics = exposition_begin(&out, "", NULL);
    history_print_metrics(w->c, w->s.st, w->s.now, &metrics);
    int count = 0;
    bool counts = false;
    for (const char *line = str_text(&out); *line; line = strchr(line, '\n') + 1) {
        const char *end = strchr(line, '\n');
        if (!strncmp(line, "# TYPE", 6))
            counts = !strncmp(end - 8, " counter", 8);
        if (*line == '#' || !counts)
            continue;
        cr_assert_lt(count, most);
        value[count++] = strtod((const char *)memrchr(line, ' ', (size_t)(end - line)), NULL);
    }
    str_clear(&out);
    return count;
}

static double productive(struct watch *w)
{
    double seconds = -1;
    js_as_real(js_get(js_get(page(w), "goodput"), "productiveSeconds"), &seconds);
    return seconds;
}

Test(history, no_counter_ever_falls_though_time_is_moved_to_where_it_was_lost)
{
    enum { MOST = 64 };
    struct watch w;
    double before[MOST], after[MOST];
    arrange(&w);
    train_three(&w);
    for (int64_t step = 1; step <= 3; step++) {
        w.s.now += RM_S;
        progress(&w.s, 0, step);
        take_note(&w);
    }
    w.s.now += 20 * RM_S; /* as it turns out, nobody trained */
    double then = productive(&w);
    int count = counters(&w, before, MOST);
    cr_assert_gt(count, 10);
    closed(&w.s, 1);
    take_note(&w);
    fault_of(&w.s, 0, FAULT_RING, 1, 3);
    take_note(&w);
    cr_assert_lt(productive(&w), then, "no time was moved: the story is another one");
    cr_assert_eq(counters(&w, after, MOST), count);
    for (int i = 0; i < count; i++)
        cr_assert_geq(after[i], before[i], "sample %d fell from %g to %g", i, before[i], after[i]);
    dismiss(&w);
}

/* The page as the operator takes it; to be freed. */
static struct coordinator_view *as_the_operator_reads(struct watch *w)
{
    struct error err = {0};
    struct str out = str_init(1 << 20);
    struct coordinator_view *view = calloc(1, sizeof *view);
    history_print_status(w->c, w->s.st, &terms, w->s.now, &out);
    cr_assert_eq(coordinator_read(str_text(&out), out.length, view, &err), 0, "%s", err.text);
    str_clear(&out);
    return view;
}

Test(history, the_operator_knows_each_state_that_the_page_may_say)
{
    struct watch w;
    bool seen[STATUS_FAILED + 1] = {false};
    arrange(&w);
    for (int state = 0; state < RDZV_STATES; state++) {
        w.s.st->state = (enum rdzv_state)state;
        struct coordinator_view *view = as_the_operator_reads(&w);
        cr_assert_neq(view->state, STATUS_UNKNOWN, "%s", rdzv_state_name(state));
        cr_assert_not(seen[view->state], "%s is taken for another one", rdzv_state_name(state));
        seen[view->state] = true;
        free(view);
    }
    dismiss(&w);
}

Test(history, the_operator_finds_what_the_page_says_of_time_and_recoveries)
{
    struct watch w;
    arrange(&w);
    train_three(&w);
    w.s.st->recoveries = 1;
    w.s.st->last_recovery = (struct rdzv_recovery){.cause = CAUSE_HANG,
                                                   .detect = RM_MS,
                                                   .agree = 2 * RM_MS,
                                                   .ring = 3 * RM_MS,
                                                   .state = 4 * RM_MS,
                                                   .first_step = 5 * RM_MS,
                                                   .total = 15 * RM_MS,
                                                   .steps_redone = 7};
    w.s.st->goodput = (struct rdzv_goodput){11 * RM_S, 12 * RM_S, 13 * RM_S, 14 * RM_S, 15 * RM_S};
    struct coordinator_view *view = as_the_operator_reads(&w);
    const struct op_recovery *recovery = &view->last_recovery;
    cr_assert_str_eq(recovery->cause, "Hang");
    for (int part = 0; part < RECOVERY_TOTAL; part++)
        cr_assert_eq(recovery->ms[part], part + 1, "%s", recovery_key(part));
    cr_assert_eq(recovery->ms[RECOVERY_TOTAL], 15);
    cr_assert_eq(recovery->steps_redone, 7);
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        cr_assert_geq(view->goodput.seconds[which], 11 + which, "%s", goodput_key(which));
    cr_assert_str_eq(view->job, "uid");
    cr_assert(view->ring_size == 3 && view->workers_count == 3 && view->progress.steps == 100);
    free(view);
    dismiss(&w);
}

Test(history, the_operator_knows_each_event_that_the_page_may_tell)
{
    struct watch w;
    arrange(&w);
    for (int kind = 0; kind < EVENT_OF_RUN; kind++) {
        const struct rdzv_tell tell = {.kind = (enum rdzv_tell_kind)kind, .text = "a reason"};
        history_note(w.c, &tell, kind, kind);
    }
    struct coordinator_view *view = as_the_operator_reads(&w);
    cr_assert_gt(view->events_count, 10);
    for (int i = 0; i < view->events_count; i++) {
        const struct op_coordinator_event *event = &view->event[i];
        cr_assert_neq(event->kind, EVENT_KINDS);
        cr_assert_eq(event_row(event->kind)->reason != NULL, *event->note != 0, "%s: its note is '%s'",
                     event_name(event->kind), event->note);
    }
    free(view);
    dismiss(&w);
}

static void golden(const char *name, const char *text)
{
    char path[512], got[512];
    static char wanted[1 << 17];
    snprintf(path, sizeof path, RM_SOURCE "/tests/unit/coordinator/status/golden/%s", name);
    snprintf(got, sizeof got, RM_BINARY "/%s.got", name);
    FILE *file = fopen(got, "w");
    cr_assert(file && fputs(text, file) >= 0 && fclose(file) == 0);
    file = fopen(path, "r");
    cr_assert(file, "%s", path);
    wanted[fread(wanted, 1, sizeof wanted - 1, file)] = 0;
    fclose(file);
    cr_assert_str_eq(text, wanted, "%s is not as golden: diff %s %s", name, path, got);
    remove(got);
}

/* A job to which all happened that a page can tell. */
static void let_all_happen(struct watch *w)
{
    train_three(w);
    struct rdzv *st = w->s.st;
    w->s.now = 100 * RM_S;
    st->told = 12;
    st->loss = 2.0611;
    st->numbers = (struct msg_numbers){.norm = 0.75, .clip = 1, .rate = 0.125};
    st->worker[0].paced = st->worker[0].incarnation;
    st->worker[2].paced = st->worker[2].incarnation;
    st->worker[0].pace = (struct msg_pace){.lanes = 3, .lane_us = 2500};
    st->worker[2].pace = (struct msg_pace){.lanes = 1, .lane_us = 8000, .slow = 320, .by = SLOW_BY_CPU_LIMIT};
    st->held_out = 2.25;
    rdzv_ring_paced(st, 0.25 * RM_S);
    st->tokens = 4096;
    st->saved = 10;
    st->failures_total = 3;
    st->recoveries = 1;
    st->last_recovery = (struct rdzv_recovery){.cause = CAUSE_HANG,
                                               .detect = RM_MS,
                                               .agree = 2 * RM_MS,
                                               .ring = 3 * RM_MS,
                                               .state = 4 * RM_MS + 500,
                                               .first_step = 5 * RM_MS,
                                               .total = 15 * RM_MS,
                                               .steps_redone = 7};
    st->goodput = (struct rdzv_goodput){11 * RM_S, 12 * RM_S, 13 * RM_S, 14 * RM_S, 15 * RM_S};
    st->outage = (struct rdzv_outage){.on = true, .step = 11, .taken = 90 * RM_S, .why = "503 Slow Down"};
    text_copy(st->worker[7].quarantine, sizeof st->worker[7].quarantine, "it failed\n3 times");
    w->c->redone_announced = 2;
    w->c->redone_sudden = 5;
    w->c->checkpoint.count = 1;
    w->c->checkpoint.step = 10;
    w->c->checkpoint.bytes = 812334;
    w->c->checkpoint.wall_ms = 77000;
    w->c->lost[5] = (struct history_going){.known = true, .attempt = 2, .wall_ms = 71000};
    memset(w->c->lost[5].cause, 'x', 95);
    memcpy(w->c->lost[5].cause + 95, "\xc3\xa4 is cut", 10); /* in the middle of a character */
    w->c->left[6] = (struct history_going){.known = true, .attempt = 1, .wall_ms = 72000};
}

static void print_page(struct watch *w, const struct history_terms *of, struct str *out)
{
    history_print_status(w->c, w->s.st, of, w->s.now, out);
    str_adds(out, "\n");
}

static void print_end(struct watch *w, const struct rdzv_tell *end, struct str *out)
{
    w->c->over = true;
    w->c->end = *end;
    history_print_result(w->c, &terms, out);
    str_adds(out, "\n");
}

Test(history, what_the_pages_say_is_byte_for_byte_as_golden)
{
    static const struct error waits = {.text = "the bucket takes no key", .person = true};
    static const struct history_terms waiting = {.job = "uid",
                                                 .checkpoint_uri = "s3://c",
                                                 .waits_for = "the store",
                                                 .unfenced = true,
                                                 .store_waits = &waits};
    const struct rdzv_tell complete = {
        .kind = TELL_COMPLETE, .step = 100, .loss = 1.5, .goodput = 0.96, .exact = true, .digest = {7, 8}};
    struct rdzv_tell found = complete, weighed = complete;
    struct watch w;
    struct str text = str_init(1 << 20);
    arrange(&w);
    print_page(&w, &waiting, &text); /* before anything happened */
    history_print_result(w.c, &terms, &text);
    str_adds(&text, "\n");
    let_all_happen(&w);
    print_page(&w, &terms, &text);
    for (int kind = 0; kind < EVENT_OF_RUN; kind++) {
        struct rdzv_tell tell = {
            .kind = (enum rdzv_tell_kind)kind, .text = "a reason", .step = 9, .bytes = 3};
        tell.recovery = w.s.st->last_recovery;
        history_note(w.c, &tell, 70000 + kind, kind);
    }
    w.c->over = false;
    print_page(&w, &waiting, &text);
    print_end(&w, &found, &text);
    weighed.bytes = 99;
    print_end(&w, &weighed, &text);
    print_end(&w, &(struct rdzv_tell){.kind = TELL_FAILED, .step = 3, .exit_code = 5, .text = "no"}, &text);
    print_end(&w, &(struct rdzv_tell){.kind = TELL_INTERRUPTED, .step = 3, .exit_code = 6}, &text);
    w.c->checkpoint.count = 1;
    w.c->checkpoint.final = true;
    print_end(&w, &complete, &text);
    print_page(&w, &terms, &text);
    golden("status.txt", str_text(&text));
    str_clear(&text);
    dismiss(&w);
}

static void given_notice(struct watch *w, int worker, rm_time left)
{
    struct message m;
    message_init(&m, MSG_NOTICED);
    m.noticed.word = NOTICED_WILL;
    m.noticed.left = left;
    text_copy(m.noticed.source, sizeof m.noticed.source, "aws-spot");
    text_copy(m.noticed.cause, sizeof m.noticed.cause, "reclaim");
    hear(&w->s, worker, &m);
    take_note(w);
}

static void step_by(struct story *s, int w, int64_t step, bool used, const char *why)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.generation = s->st->ring;
    m.progress.step = step;
    m.progress.loss = 2.5;
    m.progress.loss_known = true;
    m.progress.numbers = msg_numbers_unknown();
    m.progress.tokens = 10;
    m.progress.step_time = RM_S;
    m.progress.second.used = used;
    text_copy(m.progress.second.why, sizeof m.progress.second.why, why);
    hear(s, w, &m);
}

static void expect_way(struct watch *w, bool used, const char *reason)
{
    const struct js *way = js_get(page(w), "secondTransport");
    bool said;
    cr_assert(js_as_bool(js_get(way, "used"), &said) && said == used);
    cr_assert_str_eq(words(way, "reason"), reason);
}

/* Workers are heard in any order, and who knows why tells it. */
Test(history, how_the_sums_of_gpus_went_is_shown_and_why_not_by_the_quicker_way)
{
    struct watch w;
    arrange(&w);
    w.s.st->settings.gpus = true;
    train_three(&w);
    cr_assert_eq(js_kind(js_get(page(&w), "secondTransport")), JS_NULL);
    step_by(&w.s, 1, 1, false, "worker 1 has none: no NCCL");
    step_by(&w.s, 0, 1, false, "");
    expect_way(&w, false, "worker 1 has none: no NCCL");
    step_by(&w.s, 0, 2, true, "");
    step_by(&w.s, 1, 1, false, "worker 1 has none: no NCCL"); /* late */
    expect_way(&w, true, "");
    step_by(&w.s, 2, 3, false, "");
    expect_way(&w, false, "");
    dismiss(&w);
}

Test(history, who_was_given_notice_is_shown_with_it_and_others_without)
{
    struct watch w;
    struct status_page read = {.fenced = true};
    arrange(&w);
    train_three(&w);
    given_notice(&w, 1, 100 * RM_S);
    given_notice(&w, 2, -1);
    w.s.now += 40 * RM_S;
    status_read_page(&read, page(&w));
    const struct status_notice *one = &read.workers.worker[1].notice;
    cr_assert_not(read.workers.worker[0].notice.known);
    cr_assert_null(js_get(js_at(js_get(w.page, "workers"), 0), "notice"));
    cr_assert(one->known && !strcmp(one->source, "aws-spot") && !strcmp(one->cause, "reclaim") &&
              !strcmp(one->certainty, "will"));
    cr_assert_float_eq(one->left_seconds, 60, 1e-9);
    cr_assert(isnan(read.workers.worker[2].notice.left_seconds), "no time was told");
    w.s.now += 100 * RM_S;
    status_read_page(&read, page(&w));
    cr_assert_eq(read.workers.worker[1].notice.left_seconds, 0);
    dismiss(&w);
}

/* How long its leave takes, for who asks. */
Test(history, who_is_said_to_go_by_its_node_is_shown_with_the_time_of_its_leave)
{
    struct watch w;
    struct status_page read = {.fenced = true};
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief = {.stay = 3, .count = 1}};
    arrange(&w);
    train_three(&w);
    e.relief.one[0].worker = 1;
    e.relief.one[0].attempt = w.s.st->worker[1].attempt;
    e.relief.one[0].by = EASED_BY_WILL;
    e.relief.one[0].left = 100 * RM_S;
    play(&w.s, &e);
    status_read_page(&read, page(&w));
    cr_assert_not(read.workers.worker[0].told);
    cr_assert_null(js_get(js_at(js_get(w.page, "workers"), 0), "leaveSeconds"));
    cr_assert(read.workers.worker[1].told);
    cr_assert(read.workers.worker[1].leave_seconds > 1 && read.workers.worker[1].leave_seconds < 10, "%g",
              read.workers.worker[1].leave_seconds);
    e.relief.count = 0;
    play(&w.s, &e);
    read = (struct status_page){.fenced = true};
    status_read_page(&read, page(&w));
    cr_assert_not(read.workers.worker[1].told, "it is withdrawn");
    dismiss(&w);
}

Test(history, a_notice_that_is_no_object_is_none)
{
    static const char *const bad[] = {"null", "7", "\"will\"", "[]"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct error err;
        struct status_page read = {.fenced = true};
        char text[200];
        snprintf(text, sizeof text, "{\"workers\":[{\"worker\":1,\"attempt\":0,\"notice\":%s}]}", bad[i]);
        struct js *o = js_parse(text, strlen(text), "status", &err);
        status_read_page(&read, o);
        cr_assert(read.workers.count == 1 && !read.workers.worker[0].notice.known, "%s", bad[i]);
        js_free(o);
    }
}
