/* The agent's state machine: what one event changes, and which actions follow. It goes from the coordinator
 * (hello, terms, release) to the trainer (start, stop, end) and to what time brings. */
#include "agent/core/agent_state.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/prng.h"

enum {
    SILENT_BEATS = 2,
    UNWELCOME_MAX = 8, /* never welcome, although somebody is there */
    RETRY_MS = 20,
    RETRY_MAX_MS = 100
};

/* What is kept of messages: what type, and where in struct agent its place is pointed to. */
static const struct {
    enum msg_type type;
    size_t at;
} kept[] = {
    {MSG_PUBLISH, offsetof(struct agent, publish)},
    {MSG_PUBLISH, offsetof(struct agent, publish_next)},
    {MSG_SNAPSHOT, offsetof(struct agent, write)},
    {MSG_CHECKPOINTED, offsetof(struct agent, written[0])},
    {MSG_CHECKPOINTED, offsetof(struct agent, written[1])},
    {MSG_PUBLISHED, offsetof(struct agent, published)},
    {MSG_FAULT, offsetof(struct agent, fault)},
    {MSG_FAULT, offsetof(struct agent, failure)},
    {MSG_READY, offsetof(struct agent, ready)},
    {MSG_FINISHED, offsetof(struct agent, finished)},
};

enum { KEPT = sizeof kept / sizeof *kept };

_Static_assert(WRITTEN_KEPT == 2, "each has a row");

static size_t kept_room(void)
{
    size_t room = 0;
    for (int i = 0; i < KEPT; i++)
        room += message_room(kept[i].type);
    return room;
}

static void place_kept(struct agent *st)
{
    struct arena arena = arena_over((char *)st + arena_size(sizeof *st), kept_room());
    for (int i = 0; i < KEPT; i++) {
        struct message *place = message_place(&arena, kept[i].type);
        memcpy((char *)st + kept[i].at, &place, sizeof place);
    }
}

struct agent *agent_open(const struct agent_settings *settings)
{
    RM_ASSERT(settings->heartbeat > 0 && settings->lost_after > 0,
              "heartbeat %" PRId64 " ns, lostAfter %" PRId64, settings->heartbeat, settings->lost_after);
    RM_ASSERT(settings->worker >= 0 && settings->worker < RM_WORKERS_MAX && settings->attempt >= 0,
              "worker %d, attempt %d", settings->worker, settings->attempt);
    struct agent *st = calloc(1, arena_size(sizeof *st) + kept_room());
    if (!st)
        return NULL;
    place_kept(st);
    st->settings = *settings;
    st->chance = settings->incarnation;
    st->saved = st->save_step = st->progress_known = st->evaluated_known = -1;
    st->beat.step = st->beat.waiting_for = -1;
    st->beat_at = RM_NEVER;
    st->retry_at = st->leave_until = st->ends_at = st->up_by = RM_NEVER;
    return st;
}

void agent_free(struct agent *st)
{
    free(st);
}

bool agent_is_leaving(const struct agent *st)
{
    return st->leaving;
}

bool agent_has_left(const struct agent *st)
{
    return st->leaving && st->released && !st->unneeded && !st->writing && !st->publishing;
}

bool agent_fits_elsewhere(const struct agent *st)
{
    return st->elsewhere;
}

void agent_learn(struct agent *st, const char *job, const char *checkpoint_uri, rm_time beat, bool launcher)
{
    RM_ASSERT(beat > 0 && st->settings.awaits_job, "job %s is learnt, with a heartbeat of %" PRId64 " ns",
              job, beat);
    text_copy(st->settings.job, sizeof st->settings.job, job);
    text_copy(st->settings.checkpoint_uri, sizeof st->settings.checkpoint_uri, checkpoint_uri);
    st->settings.heartbeat = beat;
    st->settings.launcher = launcher;
    st->settings.awaits_job = false;
}

static void send_link(struct agent *st, struct agent_out *out, const struct message *m)
{
    if (st->trainer == TRAINER_UP)
        agent_pass(out, AGENT_SEND_LINK, m);
}

/* ---- the coordinator's connection ---- */

static void say_hello(struct agent *st, struct agent_out *out)
{
    struct message *m = agent_say(out, AGENT_SEND_CONTROL, MSG_HELLO);
    RM_ASSERT(st->connection == GREETED || st->connection == WELCOMED, "a hello by no connection (%s)",
              agent_connection_name(st));
    m->term = st->term;
    struct msg_hello *h = &m->hello;
    h->protocol = MSG_PROTOCOL;
    text_copy(h->job, sizeof h->job, st->settings.job);
    h->worker = st->settings.worker;
    h->attempt = st->settings.attempt;
    h->incarnation = st->settings.incarnation;
    h->agent_pid = st->settings.agent_pid;
    h->ring = st->ring;
    h->phase = st->phase;
    h->finished = st->finished_set;
    h->begun = st->begun;
    h->members_count = st->form.count;
    for (int i = 0; i < h->members_count; i++)
        h->member[i] = st->form.member[i].worker;
    st->said_trainer = st->trainer == TRAINER_UP ? st->up.pid : 0;
    st->said_phase = st->phase;
    text_copy(h->fingerprint, sizeof h->fingerprint, st->up.fingerprint); /* of what it may still tell */
    if (st->trainer != TRAINER_UP)
        return;
    h->trainer_pid = st->up.pid;
    h->state = st->state;
    text_copy(h->address, sizeof h->address, st->up.address);
    text_copy(h->probe, sizeof h->probe, st->up.probe);
    text_copy(h->data_sha256, sizeof h->data_sha256, st->up.data_sha256);
    h->data_files = st->up.data_files;
    h->data_bytes = st->up.data_bytes;
}

static void say_leaving(struct agent *st, rm_time now, struct agent_out *out)
{
    struct message m;
    RM_ASSERT(st->leaving, "worker %d says that it leaves, and does not", st->settings.worker);
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, st->leave_why);
    if (st->leave_until != RM_NEVER)
        m.leaving.deadline = st->leave_until > now ? st->leave_until - now : 1;
    m.leaving.trains_on = st->trains_on;
    agent_send_control(st, out, &m);
}

static void say_noticed(struct agent *st, rm_time now, struct agent_out *out)
{
    const struct notice *n = &st->notice;
    struct message m;
    RM_ASSERT(st->noticed, "worker %d tells of a notice, and nobody gave one", st->settings.worker);
    message_init(&m, MSG_NOTICED);
    m.noticed.left = -1;
    if (st->notice_stands) {
        m.noticed.word = n->certainty == NOTICE_WILL ? NOTICED_WILL : NOTICED_MAY;
        text_copy(m.noticed.source, sizeof m.noticed.source, notice_kind(n->source)->name);
        text_copy(m.noticed.cause, sizeof m.noticed.cause, notice_cause_name(n->cause));
        text_copy(m.noticed.pool, sizeof m.noticed.pool, st->pool);
        text_copy(m.noticed.machine, sizeof m.noticed.machine, st->settings.machine);
        if (n->until != RM_NEVER)
            m.noticed.left = n->until > now ? n->until - now : 0;
    }
    agent_send_control(st, out, &m);
}

static void send_kept(struct agent *st, struct agent_out *out, enum msg_type type, const struct kept_step *k)
{
    struct message m;
    RM_ASSERT(type == MSG_PROGRESS || type == MSG_EVALUATED, "%s is kept as a step", msg_type_name(type));
    message_init(&m, type);
    m.generation = k->generation;
    if (type == MSG_PROGRESS)
        m.progress = k->progress;
    else
        m.evaluated = k->evaluated;
    agent_send_control(st, out, &m);
}

/* Whether a program failed by itself or after others did only its time tells. */
static void say_fault_again(struct agent *st, const struct message *fault, rm_time at, rm_time now,
                            struct agent_out *out)
{
    struct message m;
    message_copy(&m, fault);
    if (m.fault.kind == FAULT_PROGRAM)
        m.fault.lasted = now > at ? now - at : 0;
    agent_send_control(st, out, &m);
}

/* Everything that may have been under way when the old connection ended, in the order of its happening: steps
 * come before the answers that build on them. */
static void say_again(struct agent *st, rm_time now, struct agent_out *out)
{
    RM_ASSERT(st->connection == WELCOMED, "all is said again by no connection (%s)",
              agent_connection_name(st));
    if (st->noticed)
        say_noticed(st, now, out);
    if (st->leaving)
        say_leaving(st, now, out);
    for (int i = 0; i < st->progress_count; i++)
        if (st->progress[i].progress.step > st->progress_known)
            send_kept(st, out, MSG_PROGRESS, &st->progress[i]);
    for (int i = 0; i < st->evaluated_count; i++)
        if (st->evaluated[i].evaluated.step > st->evaluated_known)
            send_kept(st, out, MSG_EVALUATED, &st->evaluated[i]);
    for (int i = 0; i < st->written_count; i++)
        agent_send_control(st, out, st->written[i]);
    if (st->published_set)
        agent_send_control(st, out, st->published);
    agent_say_what_waits(st, now, out);
    if (st->failure_set)
        say_fault_again(st, st->failure, st->failure_at, now, out);
    if (st->fault_set)
        say_fault_again(st, st->fault, st->fault_at, now, out);
    if (st->ready_set)
        agent_send_control(st, out, st->ready);
    if (st->finished_set)
        agent_send_control(st, out, st->finished);
}

static rm_time first_delay(const struct agent *st)
{
    RM_ASSERT(st->settings.retry_first >= 0, "a first try in %" PRId64 " ns", st->settings.retry_first);
    return st->settings.retry_first > 0 ? st->settings.retry_first : RETRY_MS * RM_MS;
}

static void on_welcome(struct agent *st, rm_time now, struct agent_out *out)
{
    if (st->term < 1) {
        agent_quit(st, out, EXIT_MACHINE, "the coordinator does not say of which term it is");
        return;
    }
    st->connection = WELCOMED;
    st->lost_at = RM_NEVER;
    st->retry_delay = first_delay(st);
    st->beat_at = now + st->settings.heartbeat;
    if (!st->spawned)
        agent_spawn(st, out);
    /* A trainer that came up, died or stopped between our hello and this welcome has not been told of yet. */
    bool stopped_since = st->phase == PHASE_STOPPED && st->said_phase != PHASE_STOPPED;
    if (stopped_since || st->said_trainer != (st->trainer == TRAINER_UP ? st->up.pid : 0))
        say_hello(st, out);
    say_again(st, now, out);
}

/* Agents that lost one coordinator do not knock at the next one in step. */
static rm_time spread(struct agent *st, rm_time delay)
{
    RM_ASSERT(delay > 0, "a try in %" PRId64 " ns", delay);
    if (!st->settings.retry_first)
        return delay;
    return delay / 2 + (rm_time)prng_below(&st->chance, (uint64_t)(delay / 2) + 1);
}

static void on_disconnected(struct agent *st, const char *why, rm_time now)
{
    text_copy_ends(st->cut_why, sizeof st->cut_why, why);
    if (st->connection == WELCOMED || st->lost_at == RM_NEVER)
        st->lost_at = now;
    bool tried = st->connection == CONNECTING;
    if (!tried)
        st->unwelcome = st->connection == GREETED ? st->unwelcome + 1 : 0;
    st->connection = DISCONNECTED;
    st->beat_at = RM_NEVER;
    rm_time most = st->settings.retry_most > 0 ? st->settings.retry_most : RETRY_MAX_MS * RM_MS;
    rm_time took =
        tried ? now - st->tried_at : 0; /* a try that led nowhere was pause enough for whom it spared */
    st->retry_at = now + rm_later(spread(st, st->retry_delay) - took, first_delay(st) / 2);
    st->retry_delay = st->retry_delay * 2 < most ? st->retry_delay * 2 : most;
    RM_ASSERT(st->lost_at <= now && st->retry_at > now,
              "lost at %" PRId64 ", tried again at %" PRId64 ", now %" PRId64, st->lost_at, st->retry_at,
              now);
}

static void give_up_on_coordinator(struct agent *st, rm_time now, struct agent_out *out)
{
    char text[MSG_DETAIL_MAX];
    double seconds = (double)(now - st->lost_at) / RM_S;
    RM_ASSERT(st->lost_at <= now, "the coordinator is lost %" PRId64 " ns from now", st->lost_at - now);
    if (st->unwelcome && st->term == 0) {
        snprintf(text, sizeof text,
                 "the coordinator ends the connection after each hello, for %.1f s now: its key is another "
                 "one than this agent's",
                 seconds);
        agent_quit(st, out, EXIT_MACHINE, text);
        return;
    }
    int n = snprintf(text, sizeof text,
                     "the coordinator is lost: no connection to it has stood for %.1f s%s%.100s; ", seconds,
                     *st->cut_why ? ", the last one: " : "", st->cut_why);
    if (st->saved > 0)
        snprintf(text + n, sizeof text - (size_t)n, "the newest checkpoint is of step %" PRId64 " in %.200s",
                 st->saved, st->settings.checkpoint_uri);
    else
        snprintf(text + n, sizeof text - (size_t)n, "no checkpoint is known to be in %.200s",
                 st->settings.checkpoint_uri);
    agent_quit(st, out, EXIT_MACHINE, text);
}

/* ---- what the coordinator says ---- */

static void know(int64_t *known, int64_t step)
{
    if (step > *known)
        *known = step;
}

/* A successor may not know what its predecessor was told and acknowledged. */
static void obey_term(struct agent *st, int64_t term)
{
    RM_ASSERT(term >= st->term, "term %" PRId64 " is obeyed after %" PRId64, term, st->term);
    if (term > st->term)
        st->progress_known = st->evaluated_known = -1;
    st->term = term;
}

static void on_form(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (generation_compare(m->generation, st->ring) <= 0 || st->trainer != TRAINER_UP)
        return;
    st->ring = m->generation;
    st->phase = PHASE_FORMING;
    st->save_step = -1;
    st->fault_set = st->ready_set = st->finished_set = false;
    /* one that nobody goes on from was damaged, and may have to be published once more */
    int64_t from = m->form.resume.held ? m->form.resume.step : 0;
    st->published_set = st->published_set && st->published->published.step <= from;
    if (m->form.saved > st->saved)
        st->saved = m->form.saved;
    st->form = m->form;
    st->begun = m->form.begun > st->begun ? m->form.begun : st->begun;
    send_link(st, out, m);
    RM_ASSERT(st->begun >= 0 && st->form.count <= RM_WORKERS_MAX, "a ring of %d after %" PRId64 " others",
              st->form.count, st->begun);
    agent_load_for(st, &m->form, out);
}

static void on_release(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (!st->released)
        send_link(st, out, m);
    st->released = true;
    st->leaving = st->leaving || !m->release.over; /* what was withdrawn may have come too late */
    st->unneeded = st->unneeded || m->release.over;
    st->write_waits = st->publish_waits = false;
}

/* Of one that is to come as it trains nobody waits. */
static void on_save(struct agent *st, const struct msg_save *save)
{
    if (!save->count)
        return;
    st->save_step = save->step;
    st->save_final = save->final;
}

/* A predecessor's word is not, nor a zombie's; nor is one about a store, where there is none. */
static bool is_for_us(const struct agent *st, const struct message *m)
{
    bool of_store = m->type == MSG_LIST || m->type == MSG_PUBLISH;
    RM_ASSERT(st->term >= 0, "term %" PRId64 " is obeyed", st->term);
    return m->term >= st->term && !(st->settings.launcher && of_store);
}

static void obey_answer(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    obey_term(st, m->term);
    agent_hold_hear(st, m, now, out);
}

static void on_control(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    if (!is_for_us(st, m))
        return;
    obey_answer(st, m, now, out);
    switch (m->type) {
    case MSG_WELCOME:
        on_welcome(st, now, out);
        break;
    case MSG_ACK:
        know(&st->progress_known, m->ack.step);
        know(&st->evaluated_known, m->ack.evaluated);
        break;
    case MSG_FORM:
        on_form(st, m, out);
        break;
    case MSG_STOP:
        if (m->stop.at == STOP_NOW)
            agent_drop_load(st, out);
        st->save_step = -1;
        send_link(st, out, m);
        break;
    case MSG_SAVE:
        on_save(st, &m->save);
        send_link(st, out, m);
        break;
    case MSG_GO:
        if (generation_compare(m->generation, st->ring) == 0 && st->phase == PHASE_READY) {
            st->phase = PHASE_TRAINING;
            st->ready_set = false;
            st->failure_set = false; /* who heard that this trainer is ready has heard of those before it */
            send_link(st, out, m);
        }
        break;
    case MSG_LIST:
        agent_on_list(st, out);
        break;
    case MSG_PUBLISH:
        agent_on_publish(st, m, now, out);
        break;
    case MSG_RELEASE:
        on_release(st, m, out);
        break;
    case MSG_PROBE:
    case MSG_LISTEN:
    case MSG_SAVE_EVERY:
        send_link(st, out, m);
        break;
    case MSG_FAULT:
        if (m->fault.kind == FAULT_HANG && st->trainer == TRAINER_UP)
            agent_act(out, AGENT_KILL); /* its end starts another one */
        break;
    case MSG_ABANDON:
        st->elsewhere = m->abandon.elsewhere;
        agent_quit(st, out, m->abandon.exit_code, m->abandon.why);
        break;
    default:
        break;
    }
}

/* ---- what the trainer says ---- */

/* The oldest goes when there are too many; the coordinator then tells that step without its loss. */
static void keep_step(struct kept_step *queue, int *count, int most, const struct message *m)
{
    RM_ASSERT(*count >= 0 && *count <= most, "%d of %d steps are kept", *count, most);
    if (*count == most) {
        memmove(queue, queue + 1, (size_t)(most - 1) * sizeof *queue);
        --*count;
    }
    struct kept_step *k = &queue[(*count)++];
    *k = (struct kept_step){.generation = m->generation};
    if (m->type == MSG_PROGRESS)
        k->progress = m->progress;
    else
        k->evaluated = m->evaluated;
}

static void on_up(struct agent *st, const struct msg_up *up, struct agent_out *out)
{
    RM_ASSERT(up->pid > 0, "a trainer is up with pid %" PRId64, up->pid);
    st->trainer = TRAINER_UP;
    st->tries = 0;
    st->up_by = RM_NEVER;
    st->up = *up;
    st->state = up->state;
    st->phase = PHASE_IDLE;
    if (st->connection == WELCOMED)
        say_hello(st, out);
}

/* A launcher says more than one failure, each of a generation; a trainer ends by that of its program. */
static void on_trainer_fault(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    bool beside = m->fault.kind == FAULT_PROGRAM && !st->settings.launcher;
    struct message *keep = beside ? st->failure : st->fault;
    RM_ASSERT(st->spawned > 0, "a trainer fails that was never started: %s", m->fault.detail);
    message_keep(keep, m);
    keep->fault.trainer = st->spawned;
    bool replaced = agent_judge_fault(st, &keep->fault);
    *(beside ? &st->failure_set : &st->fault_set) = true;
    *(beside ? &st->failure_at : &st->fault_at) = now;
    agent_send_control(st, out, keep);
    if (replaced)
        agent_replace_trainer(st, "killed: its device failed under it", out);
}

static void on_stopped(struct agent *st, const struct message *m, struct agent_out *out)
{
    RM_ASSERT(st->trainer == TRAINER_UP, "a trainer in state %s stopped", agent_trainer_name(st));
    struct message answer;
    message_copy(&answer, m);
    answer.stopped.trainer_pid = st->up.pid;
    st->phase = PHASE_STOPPED;
    st->state = m->stopped.state;
    st->fault_set = st->ready_set = false;
    agent_drop_load(st, out);
    agent_send_control(st, out, &answer);
}

static void on_link(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    switch (m->type) {
    case MSG_UP:
        on_up(st, &m->up, out);
        break;
    case MSG_HEARTBEAT:
        if (st->trainer == TRAINER_UP) /* before that it says that it lives, and no more */
            st->beat = m->heartbeat;
        break;
    case MSG_PROGRESS:
        keep_step(st->progress, &st->progress_count, PROGRESS_KEPT, m);
        st->beat.step = m->progress.step;
        st->beat.counter++;
        agent_send_control(st, out, m);
        break;
    case MSG_EVALUATED:
        keep_step(st->evaluated, &st->evaluated_count, EVALUATED_KEPT, m);
        agent_send_control(st, out, m);
        break;
    case MSG_FAULT:
        on_trainer_fault(st, m, now, out);
        break;
    case MSG_STOPPED:
        on_stopped(st, m, out);
        break;
    case MSG_READY:
        st->phase = PHASE_READY;
        st->state = m->ready.state;
        message_keep(st->ready, m);
        st->ready->ready.trainer_pid = st->up.pid;
        st->ready_set = true;
        if (generation_compare(m->generation, st->ring) == 0)
            st->begun = st->form.begun + (st->form.begun < MSG_NUMBER_MOST); /* `go` may be under way */
        agent_send_control(st, out, st->ready);
        break;
    case MSG_FINISHED:
        message_keep(st->finished, m);
        st->finished_set = true;
        agent_send_control(st, out, m);
        break;
    case MSG_PROBED:
    case MSG_HEARD:    /* not kept: whoever says hello is asked anew */
    case MSG_REPORTED: /* not kept: it is said again */
    case MSG_FROZEN:   /* likewise: the store has it, and the time that is not counted is little */
        agent_send_control(st, out, m);
        break;
    case MSG_LOAD:
        agent_on_load(st, m, out);
        break;
    case MSG_SNAPSHOT:
        agent_on_snapshot(st, m, now, out);
        break;
    case MSG_SNAPSHOT_WANTED:
        agent_on_snapshot_wanted(st, out);
        break;
    default:
        break;
    }
}

/* ---- time ---- */

/* Told again with no nearer time it says nothing: everybody knows. */
static void begin_leave(struct agent *st, const char *why, rm_time until, bool trains_on, rm_time now,
                        struct agent_out *out)
{
    bool sooner = !st->leaving || until < st->leave_until || (st->trains_on && !trains_on);
    if (!sooner)
        return;
    st->trains_on = trains_on && (st->trains_on || !st->leaving);
    st->leaving = true;
    st->leave_until = rm_earlier(st->leave_until, until);
    text_copy(st->leave_why, sizeof st->leave_why, why);
    if (st->term == 0)
        agent_quit(st, out, EXIT_DONE, ""); /* nobody knows of it yet */
    else
        say_leaving(st, now, out);
    RM_ASSERT(st->leaving && st->leave_until <= until, "it leaves %" PRId64 " ns later than it was told",
              st->leave_until - until);
}

static void on_term(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    rm_time until = e->deadline > 0 ? now + e->deadline : RM_NEVER;
    st->ends_at = rm_earlier(st->ends_at, until);
    begin_leave(st, "SIGTERM", until, false, now, out);
}

static void on_notice(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    bool known = e->deadline > 0;
    begin_leave(st, e->text, known ? now + e->deadline : RM_NEVER, known, now, out);
}

static void on_noticed(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    const struct notice *notice = e->notice;
    text_copy(st->pool, sizeof st->pool, e->text);
    st->noticed = true;
    st->notice_stands = notice != NULL;
    if (notice)
        st->notice = *notice;
    if (st->trains_on && !st->released && (!notice || notice->certainty != NOTICE_WILL)) {
        st->leaving = st->trains_on = false;
        st->leave_until = RM_NEVER;
    }
    say_noticed(st, now, out);
}

static void heartbeat(struct agent *st, rm_time now, struct agent_out *out)
{
    struct message m;
    RM_ASSERT(st->connection == WELCOMED, "a heartbeat by no connection (%s)", agent_connection_name(st));
    message_init(&m, MSG_HEARTBEAT);
    m.generation = st->ring;
    m.heartbeat = st->beat;
    m.heartbeat.phase = st->phase;
    st->busy_beats += agent_waits_for_store(st);
    m.heartbeat.counter = (m.heartbeat.counter + st->busy_beats) & MSG_NUMBER_MOST;
    if (now - st->trainer_heard > SILENT_BEATS * st->settings.heartbeat)
        m.heartbeat.waiting_for = -1; /* what it said last is no longer so */
    agent_send_control(st, out, &m);
    st->beat_at = now + st->settings.heartbeat;
}

static rm_time lost_by(const struct agent *st)
{
    bool patient = st->settings.lost_after == RM_NEVER || st->lost_at == RM_NEVER;
    return patient || st->connection == WELCOMED ? RM_NEVER : st->lost_at + st->settings.lost_after;
}

static void leave_at_last(struct agent *st, struct agent_out *out)
{
    char text[MSG_DETAIL_MAX];
    RM_ASSERT(st->ends_at != RM_NEVER && !st->released,
              "worker %d ends late, and nobody told it to (until %" PRId64 ")", st->settings.worker,
              st->ends_at);
    snprintf(text, sizeof text, "told to leave, and not released in time%s",
             st->connection == WELCOMED ? "" : ": the coordinator is away");
    agent_quit(st, out, EXIT_MACHINE, text);
}

static void on_time(struct agent *st, rm_time now, struct agent_out *out)
{
    bool at_work = (st->writing || st->publishing) && !agent_calls_are_stuck(st, &st->writes);
    at_work = at_work && !st->unneeded;
    if (st->released && !at_work) {
        agent_quit(st, out, EXIT_DONE, "");
        return;
    }
    bool unwanted = st->settings.lost_after == RM_NEVER && st->term == 0 && st->unwelcome >= UNWELCOME_MAX;
    if (!st->released && (now >= lost_by(st) || unwanted)) {
        give_up_on_coordinator(st, now, out);
        return;
    }
    if (!st->released && now >= st->ends_at) {
        leave_at_last(st, out);
        return;
    }
    if (st->connection == DISCONNECTED && !st->released && now >= st->retry_at) {
        agent_act(out, AGENT_CONNECT);
        st->connection = CONNECTING;
        st->tried_at = now;
        st->retry_at = RM_NEVER;
    }
    if (agent_asks_store_again(st) && now >= st->store_at)
        agent_ask_store_again(st, out);
    if (now >= st->up_by)
        agent_trainer_is_still(st, out);
    agent_hold_on_time(st, now, out);
    agent_tell_of_calls(st, out);
    if (st->connection == WELCOMED && now >= st->beat_at)
        heartbeat(st, now, out);
}

static void start_agent(struct agent *st, rm_time now, struct agent_out *out)
{
    RM_ASSERT(st->connection == DISCONNECTED && st->trainer == TRAINER_NONE,
              "it starts twice (connection %s, trainer %s)", agent_connection_name(st),
              agent_trainer_name(st));
    st->lost_at = now;
    st->retry_at = now;
    st->retry_delay = first_delay(st);
    if (!st->settings.awaits_job)
        agent_spawn(st, out);
}

static void handle(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    switch (e->kind) {
    case AGENT_START:
        start_agent(st, now, out);
        break;
    case AGENT_CONNECTED:
        st->connection = GREETED;
        st->control_heard = now;
        say_hello(st, out);
        break;
    case AGENT_DISCONNECTED:
        on_disconnected(st, e->text, now);
        break;
    case AGENT_REFUSED:
        agent_quit(st, out, EXIT_MACHINE, e->text);
        break;
    case AGENT_CONTROL:
        st->control_heard = now;
        on_control(st, e->message, now, out);
        break;
    case AGENT_LINK:
        st->trainer_heard = now;
        if (agent_hears_trainer(st, e->message, out))
            on_link(st, e->message, now, out);
        break;
    case AGENT_TRAINER_EXIT:
        agent_on_trainer_exit(st, e, out);
        break;
    case AGENT_TERM:
        on_term(st, e, now, out);
        break;
    case AGENT_NOTICE:
        on_notice(st, e, now, out);
        break;
    case AGENT_NOTICED:
        on_noticed(st, e, now, out);
        break;
    case AGENT_LISTED:
        agent_on_listed(st, e, out);
        break;
    case AGENT_LOADED:
        agent_on_loaded(st, e, out);
        break;
    case AGENT_WRITTEN:
        agent_on_written(st, e, now, out);
        break;
    case AGENT_PUBLISHED:
        agent_on_published(st, e, now, out);
        break;
    case AGENT_TICK:
        break;
    }
}

void agent_step(struct agent *st, const struct agent_event *event, rm_time now, struct agent_out *out)
{
    out->count = 0;
    out->arena = arena_over(out->bodies, sizeof out->bodies);
    if (st->over)
        return;
    agent_calls_hear(st, event, now);
    handle(st, event, now, out);
    if (!st->over)
        on_time(st, now, out);
    agent_check_invariants(st);
    st->due = agent_deadline(st);
}

rm_time agent_deadline(const struct agent *st)
{
    if (st->over)
        return RM_NEVER;
    if (st->released)
        return agent_calls_at(st);
    rm_time at = rm_earlier(rm_earlier(st->beat_at, st->retry_at), rm_earlier(agent_calls_at(st), st->up_by));
    if (agent_asks_store_again(st))
        at = rm_earlier(at, st->store_at);
    at = rm_earlier(at, agent_hold_at(st));
    return rm_earlier(at, rm_earlier(lost_by(st), st->ends_at));
}
