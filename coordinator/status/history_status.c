/* The status page and the result: what stands in the state machine and the history, brought into the page's
 * struct. Keys and order are the rows of common/wire/status.c. */
#include <math.h>
#include <string.h>

#include "common/wire/json.h"
#include "common/wire/status.h"
#include "coordinator/core/rdzv_base.h"
#include "coordinator/core/rdzv_fit.h"
#include "coordinator/core/rdzv_interval.h"
#include "coordinator/core/rdzv_pairs.h"
#include "coordinator/core/rdzv_relief.h"
#include "coordinator/core/rdzv_ring.h"
#include "coordinator/core/rdzv_state.h"
#include "coordinator/core/rdzv_trouble.h"
#include "coordinator/status/history.h"
#include "coordinator/status/rdzv_text.h"

static const enum status_state said[RDZV_STATES] = {
    [RDZV_RECOVERING] = STATUS_RECOVERING, [RDZV_GATHERING] = STATUS_GATHERING,
    [RDZV_FORMING] = STATUS_FORMING,       [RDZV_TRAINING] = STATUS_TRAINING,
    [RDZV_QUIESCING] = STATUS_QUIESCING,   [RDZV_SAVING] = STATUS_SAVING,
    [RDZV_FINISHED] = STATUS_FINISHED,     [RDZV_FAILED] = STATUS_FAILED,
};

/* The texts that a result borrows. */
struct result_texts {
    char uri[RDZV_URI_MAX], hex[RM_HASH_HEX];
};

static void add_worker(struct status_workers *list, struct status_worker entry)
{
    list->worker[list->count++] = entry;
}

static void fill_ring(struct status_ring *ring, const struct history *c, const struct rdzv *st)
{
    bool stands = st->state == RDZV_TRAINING;
    ring->generation = st->ring.n;
    ring->term = st->settings.term;
    ring->size = stands ? st->world : 0;
    ring->begun = st->begun;
    ring->formed = c->formed_wall_ms;
    for (int r = 0; r < ring->size; r++)
        add_worker(&ring->members, (struct status_worker){.worker = st->member[r],
                                                          .attempt = st->worker[st->member[r]].attempt});
}

static enum status_phase member_phase(const struct rdzv *st, const struct rdzv_worker *w)
{
    switch (st->state) {
    case RDZV_FORMING:
        return w->ready ? STATUS_PHASE_READY : STATUS_PHASE_FORMING;
    case RDZV_TRAINING:
        return w->finished ? STATUS_PHASE_FINISHED : STATUS_PHASE_TRAINING;
    case RDZV_QUIESCING:
        return w->stopped_round == st->round ? STATUS_PHASE_STOPPED : STATUS_PHASE_STOPPING;
    case RDZV_SAVING:
        return STATUS_PHASE_SAVING;
    default:
        return STATUS_PHASE_WAITING;
    }
}

static enum status_phase phase_of(const struct rdzv *st, const struct rdzv_worker *w)
{
    if (w->quarantine[0])
        return STATUS_PHASE_QUARANTINED;
    if (w->presence == ABSENT)
        return STATUS_PHASE_EXPECTED;
    if (w->presence == AWAY)
        return STATUS_PHASE_AWAY;
    if (w->released)
        return STATUS_PHASE_RELEASED;
    if (w->leaving)
        return STATUS_PHASE_LEAVING;
    if (!w->trainer_pid)
        return STATUS_PHASE_STARTING;
    if (w->left_out[0] && rdzv_pairs_bar(st, rdzv_index(st, w)))
        return STATUS_PHASE_LEFT_OUT;
    return w->rank >= 0 ? member_phase(st, w) : STATUS_PHASE_WAITING;
}

static struct status_notice notice_of(const struct rdzv_worker *w, rm_time now)
{
    const struct notice *n = &w->notice;
    if (!w->noticed || w->presence == ABSENT)
        return (struct status_notice){.known = false};
    return (struct status_notice){
        .known = true,
        .source = notice_kind(n->source)->name,
        .cause = notice_cause_name(n->cause),
        .certainty = notice_certainty_name(n->certainty),
        .left_seconds = n->until == RM_NEVER ? NAN : (double)rm_later(n->until - now, 0) / RM_S};
}

static struct status_speed pace_of(const struct rdzv_worker *w)
{
    const struct msg_pace *p = &w->pace;
    if (w->rank < 0 || w->presence == ABSENT || w->paced != w->incarnation || !p->lanes)
        return (struct status_speed){.known = false};
    return (struct status_speed){.known = true,
                                 .lanes = p->lanes,
                                 .lane_ms = p->lane_us ? (double)p->lane_us / 1000 : NAN,
                                 .slow = p->slow > 0,
                                 .times = p->slow / 100.0,
                                 .by = msg_slow_name(p->by)};
}

static void fill_workers(struct status_workers *list, const struct rdzv *st, rm_time now)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        if (!history_lists(st, i))
            continue;
        rm_time takes = w->presence == ABSENT ? RM_NEVER : rdzv_relief_takes(st, w);
        add_worker(list,
                   (struct status_worker){.worker = i,
                                          .attempt = w->attempt > w->expected ? w->attempt : w->expected,
                                          .phase = status_phase_name(phase_of(st, w)),
                                          .rank = w->rank,
                                          .notice = notice_of(w, now),
                                          .pace = pace_of(w),
                                          .told = takes != RM_NEVER,
                                          .leave_seconds = takes < 0 ? NAN : (double)takes / RM_S});
    }
}

/* Those that are not back, or followed by another attempt, since. */
static void fill_gone(struct status_workers *list, const struct rdzv *st, const struct history_going *gone)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct history_going *g = &gone[i];
        const struct rdzv_worker *w = &st->worker[i];
        bool here = w->presence != ABSENT && !w->released && w->attempt >= g->attempt;
        if (g->known && !here && w->attempt <= g->attempt)
            add_worker(list, (struct status_worker){
                                 .worker = i, .attempt = g->attempt, .cause = g->cause, .time = g->wall_ms});
    }
}

static void fill_quarantined(struct status_workers *list, const struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        if (st->worker[i].quarantine[0])
            add_worker(list, (struct status_worker){.worker = i, .cause = st->worker[i].quarantine});
}

/* Not known where it says nothing: never a 0. */
static struct status_progress program_progress_of(const struct rdzv *st)
{
    const struct rdzv_report *r = &st->report;
    double seconds = st->step_time / RM_S;
    bool timed = r->known && seconds > 0;
    int64_t left = r->steps > r->step ? r->steps - r->step : 0;
    return (struct status_progress){
        .known = r->known,
        .step = r->step,
        .steps = r->steps,
        .loss = r->loss,
        .held_out = NAN,
        .norm = NAN,
        .clip = NAN,
        .rate = NAN,
        .tokens_per_second = NAN,
        .samples_per_second = NAN,
        .steps_per_second = timed ? 1 / seconds : NAN,
        .eta_seconds = timed && r->steps && rdzv_ring_has_pace(st) ? (double)left * seconds : NAN,
    };
}

static struct status_progress progress_of(const struct rdzv *st)
{
    if (st->settings.program)
        return program_progress_of(st);
    int64_t step = st->told > 0 ? st->told : 0;
    double seconds = st->step_time / RM_S, pace = seconds > 0 ? (double)st->tokens / seconds : 0;
    return (struct status_progress){
        .known = true,
        .step = step,
        .steps = st->settings.steps,
        .loss = st->told > 0 ? st->loss : NAN,
        .held_out = st->held_out,
        .norm = st->told > 0 ? st->numbers.norm : NAN,
        .clip = st->told > 0 ? st->numbers.clip : NAN,
        .rate = st->told > 0 ? st->numbers.rate : NAN,
        .tokens_per_second = st->settings.brought ? NAN : pace,
        .samples_per_second = st->settings.brought ? pace : NAN,
        .steps_per_second = seconds > 0 ? 1 / seconds : NAN,
        .eta_seconds = rdzv_ring_has_pace(st) ? (double)(st->settings.steps - step) * seconds : NAN,
    };
}

/* One that a predecessor published, or that was there before, is known by its step alone; a snapshot of
 * processes only once it is told. */
static struct status_checkpoint checkpoint_of(const struct history *c, const struct rdzv *st,
                                              const char *checkpoint_uri, char uri[RDZV_URI_MAX])
{
    bool of_processes = st->settings.alone && c->checkpoint.count;
    int64_t step = of_processes ? c->checkpoint.step : st->saved;
    if (step < 0)
        return (struct status_checkpoint){0};
    bool told = c->checkpoint.count && c->checkpoint.step == step;
    return (struct status_checkpoint){
        .known = true,
        .step = step,
        .uri = of_processes ? rdzv_frozen_uri(uri, checkpoint_uri, step)
                            : rdzv_uri(uri, checkpoint_uri, step, told && c->checkpoint.final),
        .seen = told,
        .saved = c->checkpoint.wall_ms,
        .bytes = c->checkpoint.bytes,
    };
}

static struct status_interval interval_of(const struct rdzv *st, rm_time now, char *why, size_t size)
{
    const struct rdzv_interval *i = &st->interval;
    if (!i->every)
        return (struct status_interval){0};
    interval_sentence(&i->reason, why, size);
    return (struct status_interval){
        .known = true,
        .every_seconds = (double)i->every / RM_S,
        .reason = why,
        .losses = i->known.losses,
        .observed_seconds = (double)rdzv_interval_facts(st, now).observed / RM_S,
        .stall_ms = rm_ms(rm_later(i->known.stall, 0)),
        .safe_ms = rm_ms(i->known.safe),
    };
}

/* Why a store keeps the job from beginning, or its workers from going on. */
static struct status_store store_of(const struct error *waits, const struct rdzv_trouble *trouble)
{
    if (waits)
        return (struct status_store){.known = true, .reason = waits->text, .person = waits->person};
    if (trouble)
        return (struct status_store){.known = true, .reason = trouble->why, .person = trouble->person};
    return (struct status_store){0};
}

static struct status_outage outage_of(const struct rdzv *st, rm_time now)
{
    return (struct status_outage){.known = st->outage.on,
                                  .step = st->outage.step,
                                  .age_seconds = (double)(now - st->outage.taken) / RM_S,
                                  .reason = st->outage.why};
}

static struct status_transport transport_of(const struct rdzv *st)
{
    const struct rdzv_transport *t = &st->transport;
    return (struct status_transport){.known = t->ring.n > 0, .used = t->used, .reason = t->why};
}

static struct status_recovery recovery_of(const struct rdzv *st)
{
    struct status_recovery recovery = rdzv_recovery_of(&st->last_recovery);
    recovery.known = st->recoveries > 0;
    return recovery;
}

static struct status_goodput goodput_of(const struct rdzv *st, rm_time now)
{
    struct rdzv_goodput g = rdzv_goodput(st, now);
    return (struct status_goodput){.known = true,
                                   .ratio = rdzv_productive_share(g),
                                   .seconds = {[GOODPUT_PRODUCTIVE] = (double)g.productive / RM_S,
                                               [GOODPUT_CHECKPOINT] = (double)g.checkpoint / RM_S,
                                               [GOODPUT_RECOVERY] = (double)g.recovery / RM_S,
                                               [GOODPUT_WAITING] = (double)g.waiting / RM_S,
                                               [GOODPUT_REWORK] = (double)g.rework / RM_S}};
}

/* As far as it was kept; of `most` events, and of those behind `told`. To be freed. */
static struct js *events_of(const struct history *c, const char *checkpoint_uri, int most, int64_t told)
{
    struct js *array = js_array();
    int64_t first = c->events - most < told ? told : c->events - most;
    for (int64_t n = first; n < c->events; n++) {
        const struct history_event *e = &c->event[(n + 1) % HISTORY_EVENTS];
        struct js *o = js_object();
        js_set_int(o, event_key(EVENT_KEY_SEQUENCE), e->sequence);
        rdzv_set_tell(o, &e->tell, e->wall_ms, checkpoint_uri);
        js_push(array, o);
    }
    return array;
}

static struct status_result result_of(const struct history *c, const char *checkpoint_uri,
                                      struct result_texts *texts)
{
    const struct rdzv_tell *t = &c->end;
    bool complete = t->kind == TELL_COMPLETE;
    bool seen = complete && c->checkpoint.count && c->checkpoint.final;
    if (!c->over)
        return (struct status_result){0};
    hex_encode(t->digest, RM_HASH_BYTES, texts->hex);
    return (struct status_result){
        .known = true,
        .exit_code = complete ? EXIT_DONE : t->exit_code,
        .reason = complete ? "" : t->text,
        .interrupted = t->kind == TELL_INTERRUPTED,
        .step = t->step,
        .program = t->program,
        .program_code = t->program_code,
        .complete = complete,
        .trained = complete && !t->program,
        .loss = t->loss,
        .weights_sha256 = texts->hex,
        .exact = t->exact,
        .goodput = t->goodput,
        .uri = rdzv_uri(texts->uri, checkpoint_uri, t->step, true),
        .weighed = seen || (complete && t->bytes),
        .bytes = seen ? c->checkpoint.bytes : t->bytes,
        .timed = seen,
        .saved = c->checkpoint.wall_ms,
    };
}

static void fill_lists(struct status_page *page, const struct history *c, const struct rdzv *st, rm_time now)
{
    fill_ring(&page->ring, c, st);
    fill_workers(&page->workers, st, now);
    fill_gone(&page->lost, st, c->lost);
    fill_gone(&page->left, st, c->left);
    fill_quarantined(&page->quarantined, st);
}

static void print_status(const struct history *c, const struct rdzv *st, const struct history_terms *terms,
                         rm_time now, int events, struct str *out)
{
    char uri[RDZV_URI_MAX], why[MSG_DETAIL_MAX];
    struct result_texts texts;
    struct js *o = js_object(), *told = events_of(c, terms->checkpoint_uri, events, terms->told);
    struct status_page page = {
        .revision = c->revision,
        .time = terms->wall_ms,
        .job = terms->job,
        .name = st->settings.job,
        .term = st->settings.term,
        .preparing = terms->waits_for != NULL,
        .state = status_state_name(said[st->state]),
        .message = terms->waits_for ? terms->waits_for : st->why,
        .mixed_hardware = rdzv_is_mixed(st),
        .program = st->settings.program,
        .progress = progress_of(st),
        .checkpoint = checkpoint_of(c, st, terms->checkpoint_uri, uri),
        .interval = interval_of(st, now, why, sizeof why),
        .store = store_of(terms->store_waits, rdzv_store_trouble(st, now)),
        .fenced = !terms->unfenced,
        .outage = outage_of(st, now),
        .transport = transport_of(st),
        .failures = st->failures_total,
        .recoveries = st->recoveries,
        .lanes_dealt = st->lanes_dealt,
        .last_recovery = recovery_of(st),
        .goodput = goodput_of(st, now),
        .steps_redone = {.announced = c->redone_announced, .sudden = c->redone_sudden},
        .result = result_of(c, terms->checkpoint_uri, &texts),
        .events = told,
    };
    fill_lists(&page, c, st, now);
    status_set_page(o, &page);
    js_print(o, out);
    js_free(o);
    js_free(told);
}

void history_print_status(const struct history *c, const struct rdzv *st, const struct history_terms *terms,
                          rm_time now, struct str *out)
{
    struct str text = str_init(8 * STATUS_BYTES_MAX);
    int events = HISTORY_EVENTS;
    print_status(c, st, terms, now, events, &text);
    while (events && text.length > STATUS_BYTES_MAX) {
        events /= 2;
        str_reset(&text);
        print_status(c, st, terms, now, events, &text);
    }
    str_add(out, str_text(&text), text.length);
    str_clear(&text);
}

void history_print_result(const struct history *c, const struct history_terms *terms, struct str *out)
{
    struct result_texts texts;
    const struct status_result result = result_of(c, terms->checkpoint_uri, &texts);
    struct js *o = result.known ? js_object() : js_new_null();
    if (result.known)
        status_set_result(o, &result);
    js_print(o, out);
    js_free(o);
}
