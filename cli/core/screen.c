/* Writes the lines that a person sees while a run goes on, and at its end. */
#include "cli/core/screen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/core/picture_draw.h"
#include "common/base/assert.h"

enum tone { PLAIN, BOLD, DIM, RED, GREEN, YELLOW, CYAN };

static void tone(struct screen_style style, enum tone t, struct str *out)
{
    static const char *const codes[] = {"\033[0m",  "\033[1m",  "\033[2m", "\033[31m",
                                        "\033[32m", "\033[33m", "\033[36m"};
    RM_ASSERT((unsigned)t < sizeof codes / sizeof *codes, "tone %d has no code", (int)t);
    if (style.colour)
        str_adds(out, codes[t]);
}

static void toned(struct screen_style style, enum tone t, const char *text, struct str *out)
{
    tone(style, t, out);
    str_adds(out, text);
    tone(style, PLAIN, out);
}

static const char *folder(const char *uri)
{
    return strncmp(uri, "file://", 7) ? uri : uri + 7;
}

/* The name at the left edge of the head and of the final report. */
static void label(struct screen_style style, const char *name, struct str *out)
{
    char padded[16];
    snprintf(padded, sizeof padded, "  %-9s ", name);
    toned(style, DIM, padded, out);
}

static const char *plural(int64_t n)
{
    return n == 1 ? "" : "s";
}

static void workers(const struct job_spec *s, struct str *out)
{
    str_addf(out, "%d worker%s (%d to %d)\n\n", s->workers.target, plural(s->workers.target), s->workers.min,
             s->workers.max);
}

static void program_head(const struct job_spec *s, struct screen_style style, struct str *out)
{
    toned(style, BOLD, s->name, out);
    str_adds(out, "\n");
    label(style, "program", out);
    for (const char *at = NULL; (at = job_list_next(&s->launch.command, at));)
        str_addf(out, "%s%s", at == s->launch.command.text ? "" : " ", at);
    str_adds(out, "\n");
    label(style, "runs on", out);
    if (s->launch.processes > 1)
        str_addf(out, "%d processes on each of ", s->launch.processes);
    workers(s, out);
}

void screen_head(const struct screen_facts *f, struct screen_style style, struct str *out)
{
    const struct job_spec *s = f->spec;
    const struct model_shape *m = &s->model.shape;
    if (s->launched) {
        program_head(s, style, out);
        return;
    }
    toned(style, BOLD, s->name, out);
    if (f->resume_step)
        str_addf(out, ", going on from step %lld", (long long)f->resume_step);
    str_adds(out, "\n");
    label(style, "model", out);
    str_addf(out, "GPT-2, %d layer%s, %d head%s, width %d, context %d: ", m->layers, plural(m->layers),
             m->heads, plural(m->heads), m->width, m->context);
    show_count(f->parameters, out);
    str_adds(out, " parameters\n");
    label(style, "data", out);
    str_addf(out, "%s: ", folder(s->data.uri));
    show_count(f->data_files, out);
    str_addf(out, " file%s, ", plural(f->data_files));
    show_bytes(f->data_bytes, out);
    str_adds(out, "\n");
    label(style, "training", out);
    str_addf(out, "%lld step%s of ", (long long)s->steps, plural(s->steps));
    show_count((int64_t)s->batch.lanes * s->batch.lane_sequences * m->context, out);
    str_addf(out, " tokens, %s sums, ", s->reduction == JOB_EXACT ? "exact" : "fast");
    workers(s, out);
}

void screen_page(const char *address, struct screen_style style, struct str *out)
{
    label(style, "status", out);
    str_addf(out, "http://%s/v1/status (JSON, while it runs)\n", address);
    label(style, "metrics", out);
    str_addf(out, "http://%s/metrics\n\n", address);
}

static void bar(const struct report *r, struct screen_style style, struct str *out)
{
    enum { CELLS = 24 };
    int full = r->steps ? (int)(CELLS * r->step / r->steps) : 0;
    tone(style, CYAN, out);
    for (int i = 0; i < full; i++)
        str_adds(out, style.unicode ? "━" : "=");
    tone(style, PLAIN, out);
    tone(style, DIM, out);
    for (int i = full; i < CELLS; i++)
        str_adds(out, style.unicode ? "─" : "-");
    tone(style, PLAIN, out);
    str_adds(out, "  ");
}

/* A program's: whatever it did not say is not there. */
static void told_progress(const struct report_told *t, struct str *out)
{
    str_addf(out, "  step %lld", (long long)t->step);
    if (t->steps)
        str_addf(out, "/%lld", (long long)t->steps);
    if (!isnan(t->loss))
        str_addf(out, "  loss %.4g", t->loss);
    if (t->step_time > 0)
        str_addf(out, "  %.3g steps/s", (double)RM_S / (double)t->step_time);
}

/* columns that the line takes with its bar; and with the numbers of the update as well */
enum { WIDE = 104, WIDER = 144 };

static void update_numbers(const struct report *r, struct str *out)
{
    if (!isnan(r->norm))
        str_addf(out, "  norm %.3g", r->norm);
    if (!isnan(r->rate))
        str_addf(out, "  lr %.3g", r->rate);
}

static void trainer_progress(const struct report *r, struct screen_style style, struct str *out)
{
    char step[48];
    snprintf(step, sizeof step, "%lld/%lld", (long long)r->step, (long long)r->steps);
    str_addf(out, "  step %-13s ", step);
    if (style.columns >= WIDE)
        bar(r, style, out);
    if (isnan(r->loss))
        str_adds(out, "starting");
    else
        str_addf(out, "loss %.4f", r->loss);
    if (style.columns >= WIDER)
        update_numbers(r, out);
    if (r->pace > 0) {
        str_adds(out, "  ");
        show_count((int64_t)r->pace, out);
        str_adds(out, r->samples ? " samples/s" : " tokens/s");
    }
}

void screen_progress(const struct report *r, struct screen_style style, struct str *out)
{
    if (r->told.known)
        told_progress(&r->told, out);
    else
        trainer_progress(r, style, out);
    if (r->world)
        str_addf(out, "  %d worker%s", r->world, plural(r->world));
    if (report_left(r) >= 0) {
        str_adds(out, "  ");
        show_time(report_left(r), out);
        str_adds(out, " left");
    }
    /* Without the bar it is plain ASCII, so bytes are columns. A line that wraps could not be drawn over. */
    bool bar_is_drawn = style.columns >= WIDE && !r->told.known;
    if (!bar_is_drawn && out->length >= (size_t)style.columns) {
        out->length = (size_t)style.columns - 1;
        out->data[out->length] = 0;
    }
}

/* "  step 100  " in front of a line about something that happened; of a program, which has none, nothing. */
static void at_step(const struct report *r, int64_t step, struct screen_style style, struct str *out)
{
    char text[40];
    snprintf(text, sizeof text, "  step %-6lld ", (long long)step);
    toned(style, DIM, r->steps ? text : "  ", out);
}

static void worker_line(const struct report *r, const struct event *e, struct screen_style style, enum tone t,
                        const char *what, struct str *out)
{
    RM_ASSERT(*what, "worker %d, and nothing of it", e->worker);
    char text[48];
    snprintf(text, sizeof text, "worker %d %s", e->worker, what);
    at_step(r, r->step, style, out);
    toned(style, t, text, out);
    bool new_to_people = *e->text && strncmp(e->text, "Worker", 6) != 0; /* "WorkerJoined" was just said */
    const char *done = e->worker >= 0 && e->worker < RM_WORKERS_MAX ? r->drilled[e->worker] : NULL;
    if (e->kind == EVENT_WORKER_LOST && done)
        str_addf(out, " (%s by the drill)", done);
    else if (new_to_people)
        str_addf(out, " (%s)", e->text);
    str_adds(out, "\n");
}

static void takeover_line(const struct report *r, const struct event *e, struct screen_style style,
                          struct str *out)
{
    at_step(r, r->step, style, out);
    tone(style, GREEN, out);
    str_adds(out, "another coordinator after ");
    show_ms(e->recovered.total, out);
    tone(style, PLAIN, out);
    tone(style, DIM, out);
    str_addf(out, " (detect %.0f, agree %.0f); workers train meanwhile", e->recovered.detect,
             e->recovered.agree);
    tone(style, PLAIN, out);
    str_adds(out, "\n");
}

static void restarted_line(const struct event *e, struct screen_style style, struct str *out)
{
    RM_ASSERT(e->kind == EVENT_RECOVERED, "a recovery of an event of kind %d", (int)e->kind);
    str_adds(out, "  ");
    tone(style, GREEN, out);
    str_adds(out, "running again after ");
    show_ms(e->recovered.total, out);
    tone(style, PLAIN, out);
    tone(style, DIM, out);
    str_addf(out, " (detect %.0f, stop %.0f, start %.0f)", e->recovered.detect, e->recovered.agree,
             e->recovered.ring + e->recovered.state);
    tone(style, PLAIN, out);
    str_adds(out, "\n");
}

static void recovered_line(const struct report *r, const struct event *e, struct screen_style style,
                           struct str *out)
{
    RM_ASSERT(e->kind == EVENT_RECOVERED && r->steps, "a recovery of a program, by an event of kind %d",
              (int)e->kind);
    at_step(r, r->step, style, out);
    tone(style, GREEN, out);
    str_adds(out, "recovered in ");
    show_ms(e->recovered.total, out);
    tone(style, PLAIN, out);
    tone(style, DIM, out);
    str_addf(out, " (detect %.0f, agree %.0f, ring %.0f, state %.0f, first step %.0f), ", e->recovered.detect,
             e->recovered.agree, e->recovered.ring, e->recovered.state, e->recovered.first_step);
    if (e->recovered.steps_redone)
        str_addf(out, "%lld step%s redone", (long long)e->recovered.steps_redone,
                 plural(e->recovered.steps_redone));
    else
        str_adds(out, "no step redone");
    tone(style, PLAIN, out);
    str_adds(out, "\n");
}

static void saved_line(const struct report *r, const struct event *e, struct screen_style style,
                       struct str *out)
{
    at_step(r, e->step, style, out);
    tone(style, DIM, out);
    str_adds(out, "checkpoint saved, ");
    show_bytes(e->bytes, out);
    str_adds(out, " in ");
    show_ms(e->ms, out);
    tone(style, PLAIN, out);
    if (e->waited > 0) {
        str_adds(out, "; ");
        toned(style, GREEN, "the store takes checkpoints again", out);
        str_adds(out, " after ");
        show_time((rm_time)(e->waited * RM_S), out);
    }
    str_adds(out, "\n");
}

static void reason_line(const struct report *r, struct screen_style style, const char *what,
                        const char *reason, struct str *out)
{
    at_step(r, r->step, style, out);
    toned(style, YELLOW, what, out);
    str_addf(out, ": %s\n", reason);
}

/* What is a line about one worker. */
static const struct {
    enum event_kind kind;
    enum tone tone;
    const char *what;
} worker_rows[] = {
    {EVENT_WORKER_LOST, RED, "lost"},
    {EVENT_PROGRAM_FAILED, RED, "failed"},
    {EVENT_WORKER_LEFT, YELLOW, "left"},
    {EVENT_WORKER_QUARANTINED, RED, "in quarantine"},
    {EVENT_WORKER_LEFT_OUT, YELLOW, "left out"},
    {EVENT_WORKER_DIFFERS, RED, "differs"},
    {EVENT_PROOF_FAILED, RED, "was given a wrong sum"},
    {EVENT_WORKER_SLOW, YELLOW, "is slow"},
    {EVENT_NOTICE_RECEIVED, YELLOW, "was given notice"},
    {EVENT_NOTICE_WITHDRAWN, GREEN, "is no longer under notice"},
    {EVENT_WORKER_JOINED, GREEN, "joined"},
};

void screen_event(const struct report *r, const struct event *e, struct screen_style style, struct str *out)
{
    for (size_t i = 0; i < sizeof worker_rows / sizeof *worker_rows; i++)
        if (worker_rows[i].kind == e->kind)
            worker_line(r, e, style, worker_rows[i].tone, worker_rows[i].what, out);
    switch (e->kind) {
    case EVENT_RECOVERED:
        if (report_is_takeover(e))
            takeover_line(r, e, style, out);
        else if (!r->steps)
            restarted_line(e, style, out);
        else
            recovered_line(r, e, style, out);
        break;
    case EVENT_EVALUATED:
        at_step(r, e->step, style, out);
        str_addf(out, "held-out loss %.4f\n", e->loss);
        break;
    case EVENT_CHECKPOINT_SAVED:
        saved_line(r, e, style, out);
        break;
    case EVENT_CHECKPOINT_WAITING:
        at_step(r, e->step, style, out);
        toned(style, YELLOW, "checkpoint waits", out);
        str_addf(out, ": the newest state is kept and tried again: %s\n", e->text);
        break;
    case EVENT_CHECKPOINT_INTERVAL:
        at_step(r, r->step, style, out);
        str_addf(out, "checkpoints %s\n", e->text);
        break;
    case EVENT_CHECKPOINT_SKIPPED:
        reason_line(r, style, "not saved", e->text, out);
        break;
    case EVENT_CHECKPOINT_REFUSED:
        reason_line(r, style, "checkpoint not used", e->text, out);
        break;
    case EVENT_JOIN_SKIPPED:
        reason_line(r, style, "join skipped", e->text, out);
        break;
    case EVENT_WAITING:
        reason_line(r, style, "waiting", e->text, out);
        break;
    default:
        break;
    }
}

void screen_drill(const struct report *r, const char *spec, int64_t step, struct screen_style style,
                  struct str *out)
{
    at_step(r, step, style, out);
    toned(style, DIM, "drill ", out);
    str_addf(out, "%s\n", spec);
}

static void recovery_table(const struct report *r, struct screen_style style, struct str *out)
{
    if (!r->recoveries)
        return;
    str_adds(out, "\n");
    tone(style, DIM, out);
    str_addf(out, "  %-34s %9s %8s %8s %8s %10s %9s %7s\n", "what happened, times in ms", "detect", "agree",
             "ring", "state", "first step", "total", "redone");
    tone(style, PLAIN, out);
    int digits = snprintf(NULL, 0, "%lld", (long long)r->step);
    int kept = r->recoveries < REPORT_RECOVERIES_MAX ? r->recoveries : REPORT_RECOVERIES_MAX;
    for (int i = 0; i < kept; i++) {
        const struct report_recovery *v = &r->recovery[i];
        char what[REPORT_LABEL_MAX + 48];
        snprintf(what, sizeof what, "step %-*lld  %s", digits, (long long)v->step, v->label);
        str_addf(out, "  %-34.64s %9.1f %8.1f %8.1f %8.1f %10.1f %9.1f %7lld\n", what, v->detect, v->agree,
                 v->ring, v->state, v->first_step, v->total, (long long)v->steps_redone);
    }
    if (r->recoveries > kept)
        str_addf(out, "  and %d more\n", r->recoveries - kept);
}

static void picture_lines(const struct report *r, struct screen_style style, struct str *out)
{
    if (!r->last_step_at)
        return;
    str_adds(out, "\n");
    picture_text(r, style, out);
}

/* Times in which a checkpoint waited for its store. */
static void store_line(const struct report *r, struct screen_style style, struct str *out)
{
    if (!r->store_was_away)
        return;
    str_adds(out, "\n");
    label(style, "store", out);
    str_addf(out, "did not take checkpoints %d time%s", r->store_was_away, plural(r->store_was_away));
    if (r->store_away > 0) {
        str_adds(out, ", ");
        show_time((rm_time)(r->store_away * RM_S), out);
        str_adds(out, " in all");
    }
    str_adds(out, r->store_is_away ? "; it still doesn't\n" : "\n");
}

static void restart_table(const struct report *r, struct screen_style style, struct str *out)
{
    int kept = r->recoveries < REPORT_RECOVERIES_MAX ? r->recoveries : REPORT_RECOVERIES_MAX;
    if (!r->recoveries)
        return;
    str_adds(out, "\n");
    tone(style, DIM, out);
    str_addf(out, "  %-34s %9s %8s %8s %9s\n", "what happened, times in ms", "detect", "stop", "start",
             "total");
    tone(style, PLAIN, out);
    for (int i = 0; i < kept; i++) {
        const struct report_recovery *v = &r->recovery[i];
        str_addf(out, "  %-34.64s %9.1f %8.1f %8.1f %9.1f\n", v->label, v->detect, v->agree,
                 v->ring + v->state, v->total);
    }
    if (r->recoveries > kept)
        str_addf(out, "  and %d more\n", r->recoveries - kept);
}

static void program_lines(const struct report *r, struct screen_style style, rm_time now, struct str *out)
{
    RM_ASSERT(r->ended && !r->steps, "a program ends after %lld steps", (long long)r->steps);
    str_adds(out, "\n");
    toned(style, BOLD, "Complete", out);
    str_addf(out, ": every process ended with 0, on %d worker%s, after ", r->world, plural(r->world));
    show_time(now - r->begun, out);
    if (!isnan(r->end.goodput))
        str_addf(out, ", goodput %.1f %%", 100 * r->end.goodput);
    str_adds(out, "\n");
    restart_table(r, style, out);
}

static void complete_lines(const struct report *r, const struct job_spec *spec, struct screen_style style,
                           rm_time now, struct str *out)
{
    RM_ASSERT(r->ended && r->end.kind == EVENT_COMPLETE, "complete with an event of kind %d",
              (int)r->end.kind);
    const struct event *e = &r->end;
    str_adds(out, "\n");
    toned(style, BOLD, r->last_step_at ? "Complete" : "Complete already", out);
    str_addf(out, ": %lld step%s", (long long)e->step, plural(e->step));
    if (r->last_step_at) {
        str_adds(out, " in ");
        show_time(now - r->begun, out);
    } else {
        str_adds(out, "; --overwrite trains anew");
    }
    if (!isnan(e->loss))
        str_addf(out, ", loss %.4f", e->loss);
    if (!isnan(r->first_loss) && r->first_step == 0)
        str_addf(out, " (it began at %.4f)", r->first_loss);
    if (!isnan(e->goodput))
        str_addf(out, ", goodput %.1f %%", 100 * e->goodput);
    str_adds(out, "\n");
    picture_lines(r, style, out);
    recovery_table(r, style, out);
    store_line(r, style, out);
    str_adds(out, "\n");
    label(style, "weights", out);
    str_addf(out, "%s\n", folder(e->uri));
    label(style, "SHA-256", out);
    str_addf(out, "%s\n", e->weights_sha256);
    label(style, "exact", out);
    str_addf(out, "%s\n", job_exactness(spec->reduction, e->exact));
}

void screen_end(const struct report *r, const struct job_spec *spec, struct screen_style style, rm_time now,
                struct str *out)
{
    if (!r->ended)
        return;
    if (!r->steps && r->end.kind == EVENT_COMPLETE)
        program_lines(r, style, now, out);
    else if (!r->steps)
        restart_table(r, style, out);
    else if (r->end.kind == EVENT_COMPLETE)
        complete_lines(r, spec, style, now, out);
    else { /* why it ended is said on standard error */
        picture_lines(r, style, out);
        recovery_table(r, style, out);
        store_line(r, style, out);
    }
}

void screen_picture(const char *uri, struct screen_style style, struct str *out)
{
    label(style, "picture", out);
    str_addf(out, "%s/run.svg\n", folder(uri));
}
