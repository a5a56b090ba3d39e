#include "agent/core/agent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROGRESS_KEPT = 64,
    EVALUATED_KEPT = 64,
    WRITTEN_KEPT = 2,
    START_TRIES = 5,
    SILENT_BEATS = 2,
    RETRY_MS = 20,
    RETRY_MAX_MS = 100
};

enum connection { DISCONNECTED, CONNECTING, GREETED, WELCOMED };
enum trainer { TRAINER_NONE, TRAINER_STARTING, TRAINER_UP };

/* A progress or an evaluation, without the room that a whole message takes. */
struct kept_step {
    struct msg_generation generation;
    struct msg_progress progress;
    struct msg_evaluated evaluated;
};

struct agent {
    struct agent_settings settings;
    char why[MSG_DETAIL_MAX];
    enum connection connection;
    rm_time lost_at, retry_at, retry_delay, beat_at;
    int64_t term; /* highest that was obeyed */
    enum trainer trainer;
    int64_t said_trainer; /* pid that the newest hello named, 0 none */
    int spawned, tries;   /* tries: trainers in a row that never came up */
    struct msg_up up;
    enum msg_phase phase;
    struct msg_state state;
    struct msg_generation ring; /* newest form */
    struct message form;        /* that one, while its checkpoint is loaded */
    bool load_wanted, loading, writing, publishing;
    struct message publish, publish_next;
    bool publish_next_set;
    bool leaving, released, over;
    rm_time leaving_deadline;
    /* the newest, oldest first; those that are acknowledged stay for a successor: an acknowledgement of a
     * coordinator that died says nothing about what it could still tell */
    struct kept_step progress[PROGRESS_KEPT], evaluated[EVALUATED_KEPT];
    int progress_count, evaluated_count;
    int64_t progress_known, evaluated_known; /* acknowledged in this term, -1 none */
    /* said again after a reconnect, harmless if known */
    struct message written[WRITTEN_KEPT], published, fault, ready, finished;
    int written_count;
    bool published_set, fault_set, ready_set, finished_set;
    struct msg_heartbeat beat;
    rm_time trainer_heard; /* a trainer that runs sends a pulse every heartbeat */
    int64_t busy_beats;    /* heartbeats while the store kept the trainer waiting: that is no hang */
    bool unwelcome;        /* the newest connection ended after our hello, and without an answer */
    int64_t saved;         /* newest checkpoint that is known to be published, -1 none */
};

struct agent *agent_open(const struct agent_settings *settings)
{
    struct agent *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->settings = *settings;
    st->saved = st->progress_known = st->evaluated_known = -1;
    st->beat.step = st->beat.waiting_for = -1;
    st->beat_at = RM_NEVER;
    st->retry_at = RM_NEVER;
    return st;
}

void agent_free(struct agent *st)
{
    free(st);
}

const char *agent_why(const struct agent *st)
{
    return st->why;
}

/* ---- actions ---- */

static struct agent_action *act(struct agent_out *out, enum agent_action_kind kind)
{
    struct agent_action *a = &out->action[out->count];
    if (out->count < AGENT_ACTIONS_MAX - 1)
        out->count++;
    a->kind = kind;
    return a;
}

static void send_control(struct agent *st, struct agent_out *out, const struct message *m)
{
    if (st->connection != WELCOMED)
        return;
    struct message *copy = &act(out, AGENT_SEND_CONTROL)->message;
    message_copy(copy, m);
    copy->term = st->term;
}

static void send_link(struct agent *st, struct agent_out *out, const struct message *m)
{
    if (st->trainer == TRAINER_UP)
        message_copy(&act(out, AGENT_SEND_LINK)->message, m);
}

static void quit(struct agent *st, struct agent_out *out, int exit_code, const char *text)
{
    struct agent_action *a = act(out, AGENT_EXIT);
    a->exit_code = exit_code;
    text_copy(a->text, sizeof a->text, text);
    text_copy(st->why, sizeof st->why, text);
    st->over = true;
}

static void spawn(struct agent *st, struct agent_out *out)
{
    act(out, AGENT_SPAWN);
    struct message *m = &act(out, AGENT_SEND_LINK)->message;
    message_init(m, MSG_SETUP);
    m->setup.protocol = MSG_PROTOCOL;
    m->setup.worker = st->settings.worker;
    m->setup.attempt = st->settings.attempt;
    m->setup.incarnation = st->settings.incarnation;
    m->setup.restarts = st->spawned++;
    m->setup.snapshot_busy = st->writing || st->loading;
    text_copy(m->setup.data_sha256, sizeof m->setup.data_sha256, st->up.data_sha256);
    st->trainer = TRAINER_STARTING;
    st->phase = PHASE_IDLE;
}

/* ---- the coordinator's connection ---- */

static void say_hello(struct agent *st, struct agent_out *out)
{
    struct message *m = &act(out, AGENT_SEND_CONTROL)->message;
    message_init(m, MSG_HELLO);
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
    h->members_count = st->form.form.count;
    for (int i = 0; i < h->members_count; i++)
        h->member[i] = st->form.form.member[i].worker;
    st->said_trainer = st->trainer == TRAINER_UP ? st->up.pid : 0;
    if (st->trainer != TRAINER_UP)
        return;
    h->trainer_pid = st->up.pid;
    h->state = st->state;
    text_copy(h->address, sizeof h->address, st->up.address);
    text_copy(h->fingerprint, sizeof h->fingerprint, st->up.fingerprint);
    text_copy(h->data_sha256, sizeof h->data_sha256, st->up.data_sha256);
    h->data_files = st->up.data_files;
    h->data_bytes = st->up.data_bytes;
}

static void say_leaving(struct agent *st, struct agent_out *out)
{
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "SIGTERM");
    m.leaving.deadline = st->leaving_deadline;
    send_control(st, out, &m);
}

static void send_kept(struct agent *st, struct agent_out *out, enum msg_type type, const struct kept_step *k)
{
    struct message m;
    message_init(&m, type);
    m.generation = k->generation;
    if (type == MSG_PROGRESS)
        m.progress = k->progress;
    else
        m.evaluated = k->evaluated;
    send_control(st, out, &m);
}

/* Everything that may have been under way when the old connection ended, in the order of its happening: steps
 * come before the answers that build on them. */
static void say_again(struct agent *st, struct agent_out *out)
{
    if (st->leaving)
        say_leaving(st, out);
    for (int i = 0; i < st->progress_count; i++)
        if (st->progress[i].progress.step > st->progress_known)
            send_kept(st, out, MSG_PROGRESS, &st->progress[i]);
    for (int i = 0; i < st->evaluated_count; i++)
        if (st->evaluated[i].evaluated.step > st->evaluated_known)
            send_kept(st, out, MSG_EVALUATED, &st->evaluated[i]);
    for (int i = 0; i < st->written_count; i++)
        send_control(st, out, &st->written[i]);
    if (st->published_set)
        send_control(st, out, &st->published);
    if (st->fault_set)
        send_control(st, out, &st->fault);
    if (st->ready_set)
        send_control(st, out, &st->ready);
    if (st->finished_set)
        send_control(st, out, &st->finished);
}

static void on_welcome(struct agent *st, rm_time now, struct agent_out *out)
{
    st->connection = WELCOMED;
    st->lost_at = RM_NEVER;
    st->retry_delay = RETRY_MS * RM_MS;
    st->beat_at = now + st->settings.heartbeat;
    /* A trainer that came up or died between our hello and this welcome has not been told of yet. */
    if (st->said_trainer != (st->trainer == TRAINER_UP ? st->up.pid : 0))
        say_hello(st, out);
    say_again(st, out);
}

static void on_disconnected(struct agent *st, rm_time now)
{
    if (st->connection == WELCOMED || st->lost_at == RM_NEVER)
        st->lost_at = now;
    if (st->connection != CONNECTING)
        st->unwelcome = st->connection == GREETED;
    st->connection = DISCONNECTED;
    st->beat_at = RM_NEVER;
    st->retry_at = now + st->retry_delay;
    st->retry_delay = st->retry_delay * 2 < RETRY_MAX_MS * RM_MS ? st->retry_delay * 2 : RETRY_MAX_MS * RM_MS;
}

static void give_up_on_coordinator(struct agent *st, struct agent_out *out)
{
    char text[MSG_DETAIL_MAX];
    double seconds = (double)st->settings.lost_after / RM_S;
    if (st->unwelcome && st->term == 0) {
        snprintf(text, sizeof text,
                 "the coordinator ends the connection after each hello, for %.1f s now: its key is another "
                 "one than "
                 "this agent's",
                 seconds);
        quit(st, out, 4, text);
        return;
    }
    int n = snprintf(text, sizeof text, "the coordinator is lost: it did not answer for %.1f s; ", seconds);
    if (st->saved > 0)
        snprintf(text + n, sizeof text - (size_t)n, "the newest checkpoint is of step %" PRId64 " in %.200s",
                 st->saved, st->settings.checkpoint_uri);
    else
        snprintf(text + n, sizeof text - (size_t)n, "no checkpoint is known to be in %.200s",
                 st->settings.checkpoint_uri);
    quit(st, out, 4, text);
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
    if (term > st->term)
        st->progress_known = st->evaluated_known = -1;
    st->term = term;
}

static enum msg_role my_role(const struct agent *st, const struct msg_form *f)
{
    for (int i = 0; i < f->count; i++) {
        if (f->member[i].worker == st->settings.worker)
            return f->member[i].role;
    }
    return ROLE_KEEP;
}

/* One user of the snapshot memory at a time: a slice being written goes first. */
static void start_load(struct agent *st, struct agent_out *out)
{
    if (!st->load_wanted || st->writing || st->loading)
        return;
    st->load_wanted = false;
    st->loading = true;
    message_copy(&act(out, AGENT_LOAD)->message, &st->form);
}

static void on_form(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (generation_compare(m->generation, st->ring) <= 0 || st->trainer != TRAINER_UP)
        return;
    st->ring = m->generation;
    st->phase = PHASE_FORMING;
    st->fault_set = st->ready_set = st->finished_set = false;
    if (m->form.saved > st->saved)
        st->saved = m->form.saved;
    message_copy(&st->form, m);
    st->load_wanted = my_role(st, &m->form) == ROLE_LOAD;
    send_link(st, out, m);
    start_load(st, out);
}

static bool same_publish(const struct message *a, const struct message *b)
{
    return a->publish.step == b->publish.step && a->publish.final == b->publish.final;
}

static void on_publish(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (st->publishing) {
        st->publish_next_set = !same_publish(&st->publish, m);
        message_copy(&st->publish_next, m);
        return;
    }
    if (st->published_set && st->published.published.step == m->publish.step &&
        st->published.published.final == m->publish.final) {
        send_control(st, out, &st->published);
        return;
    }
    st->publishing = true;
    message_copy(&st->publish, m);
    message_copy(&act(out, AGENT_PUBLISH)->message, m);
}

static void on_release(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (!st->released)
        send_link(st, out, m);
    st->released = true;
}

static void on_control(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    if (m->term < st->term)
        return; /* a predecessor's word, or a zombie's */
    obey_term(st, m->term);
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
    case MSG_SAVE:
        send_link(st, out, m);
        break;
    case MSG_GO:
        if (generation_compare(m->generation, st->ring) == 0 && st->phase == PHASE_READY) {
            st->phase = PHASE_TRAINING;
            st->ready_set = false;
            send_link(st, out, m);
        }
        break;
    case MSG_LIST:
        act(out, AGENT_LIST);
        break;
    case MSG_PUBLISH:
        on_publish(st, m, out);
        break;
    case MSG_RELEASE:
        on_release(st, m, out);
        break;
    case MSG_FAULT:
        if (m->fault.kind == FAULT_HANG && st->trainer == TRAINER_UP)
            act(out, AGENT_KILL); /* its end starts another one */
        break;
    case MSG_ABANDON:
        quit(st, out, m->abandon.exit_code, m->abandon.why);
        break;
    default:
        break;
    }
}

/* ---- what the trainer says ---- */

/* The oldest goes when there are too many; the coordinator then tells that step without its loss. */
static void keep_step(struct kept_step *queue, int *count, int most, const struct message *m)
{
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

static void keep_written(struct agent *st, const struct message *m)
{
    if (st->written_count == WRITTEN_KEPT)
        message_copy(&st->written[0], &st->written[--st->written_count]);
    message_copy(&st->written[st->written_count++], m);
}

static void on_up(struct agent *st, const struct msg_up *up, struct agent_out *out)
{
    st->trainer = TRAINER_UP;
    st->tries = 0;
    st->up = *up;
    st->state = up->state;
    st->phase = PHASE_IDLE;
    if (st->connection == WELCOMED)
        say_hello(st, out);
}

static void on_stopped(struct agent *st, const struct message *m, struct agent_out *out)
{
    struct message answer;
    message_copy(&answer, m);
    answer.stopped.trainer_pid = st->up.pid;
    st->phase = PHASE_STOPPED;
    st->state = m->stopped.state;
    st->fault_set = st->ready_set = false;
    st->load_wanted = false;
    send_control(st, out, &answer);
}

static void on_snapshot(struct agent *st, const struct message *m, struct agent_out *out)
{
    st->writing = true;
    message_copy(&act(out, AGENT_WRITE)->message, m);
}

static void on_link(struct agent *st, const struct message *m, struct agent_out *out)
{
    switch (m->type) {
    case MSG_UP:
        on_up(st, &m->up, out);
        break;
    case MSG_HEARTBEAT:
        st->beat = m->heartbeat;
        break;
    case MSG_PROGRESS:
        keep_step(st->progress, &st->progress_count, PROGRESS_KEPT, m);
        st->beat.step = m->progress.step;
        st->beat.counter++;
        send_control(st, out, m);
        break;
    case MSG_EVALUATED:
        keep_step(st->evaluated, &st->evaluated_count, EVALUATED_KEPT, m);
        send_control(st, out, m);
        break;
    case MSG_FAULT:
        message_copy(&st->fault, m);
        st->fault_set = true;
        send_control(st, out, m);
        break;
    case MSG_STOPPED:
        on_stopped(st, m, out);
        break;
    case MSG_READY:
        st->phase = PHASE_READY;
        st->state = m->ready.state;
        message_copy(&st->ready, m);
        st->ready.ready.trainer_pid = st->up.pid;
        st->ready_set = true;
        send_control(st, out, &st->ready);
        break;
    case MSG_FINISHED:
        message_copy(&st->finished, m);
        st->finished_set = true;
        send_control(st, out, m);
        break;
    case MSG_SNAPSHOT:
        on_snapshot(st, m, out);
        break;
    default:
        break;
    }
}

static void on_trainer_exit(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    bool was_up = st->trainer == TRAINER_UP;
    st->trainer = TRAINER_NONE;
    st->phase = PHASE_IDLE;
    st->fault_set = st->ready_set = st->finished_set = st->load_wanted = false;
    if (st->released)
        return;
    if (!was_up && (e->code > 0 || ++st->tries >= START_TRIES)) {
        char text[MSG_DETAIL_MAX];
        snprintf(text, sizeof text, "the trainer does not start: %.300s", e->text);
        quit(st, out, e->code > 0 ? e->code : 4, text);
        return;
    }
    struct message m;
    message_init(&m, MSG_FAULT);
    m.generation = st->ring;
    m.fault.kind = FAULT_TRAINER_EXIT;
    m.fault.peer = m.fault.step = -1;
    snprintf(m.fault.detail, sizeof m.fault.detail, "the trainer was %.300s", e->text);
    send_control(st, out, &m);
    text_copy(st->why, sizeof st->why, m.fault.detail);
    spawn(st, out);
}

/* ---- what the store says ---- */

static void storage_fault(struct agent *st, struct agent_out *out, enum msg_fault_kind kind, int64_t step,
                          const char *text)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.generation = st->ring;
    m.fault.kind = kind;
    m.fault.peer = -1;
    m.fault.step = step;
    text_copy(m.fault.detail, sizeof m.fault.detail, text);
    send_control(st, out, &m);
    text_copy(st->why, sizeof st->why, text);
}

static void on_listed(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    if (e->ok)
        send_control(st, out, e->message);
    else
        storage_fault(st, out, FAULT_MACHINE, -1, e->text);
}

/* Also to a trainer that is only starting: its setup said that the memory is in use. A load that waits for it
 * keeps it in use. */
static void free_snapshot(struct agent *st, struct agent_out *out)
{
    if (st->trainer != TRAINER_NONE && !st->load_wanted)
        message_init(&act(out, AGENT_SEND_LINK)->message, MSG_SNAPSHOT_FREE);
}

static void on_loaded(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    st->loading = false;
    bool wanted = e->ok && st->phase == PHASE_FORMING && !st->load_wanted;
    if (!e->ok)
        storage_fault(st, out, FAULT_STORAGE, e->step, e->text);
    if (wanted)
        send_link(st, out, e->message);
    else
        free_snapshot(st, out);
    start_load(st, out);
}

static void on_written(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    st->writing = false;
    if (e->ok) {
        keep_written(st, e->message);
        send_control(st, out, e->message);
    } else {
        storage_fault(st, out, FAULT_STORAGE, e->step, e->text);
    }
    free_snapshot(st, out);
    start_load(st, out);
}

static void on_published(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    st->publishing = false;
    if (e->ok) {
        message_copy(&st->published, e->message);
        st->published_set = true;
        if (e->message->published.step > st->saved)
            st->saved = e->message->published.step;
        send_control(st, out, e->message);
    } else {
        storage_fault(st, out, FAULT_STORAGE, e->step, e->text);
    }
    if (st->publish_next_set) {
        st->publish_next_set = false;
        on_publish(st, &st->publish_next, out);
    }
}

/* ---- time ---- */

static void on_term(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    st->leaving = true;
    st->leaving_deadline = e->deadline;
    if (st->term == 0)
        quit(st, out, 0, ""); /* nobody knows of it yet */
    else
        say_leaving(st, out);
}

static void heartbeat(struct agent *st, rm_time now, struct agent_out *out)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.generation = st->ring;
    m.heartbeat = st->beat;
    m.heartbeat.phase = st->phase;
    st->busy_beats += st->writing || st->loading;
    m.heartbeat.counter += st->busy_beats;
    if (now - st->trainer_heard > SILENT_BEATS * st->settings.heartbeat)
        m.heartbeat.waiting_for = -1; /* what it said last is no longer so */
    send_control(st, out, &m);
    st->beat_at = now + st->settings.heartbeat;
}

static void on_time(struct agent *st, rm_time now, struct agent_out *out)
{
    bool at_work = st->writing || st->publishing;
    if (st->released && !at_work) {
        quit(st, out, 0, "");
        return;
    }
    bool away = st->connection != WELCOMED && !st->released;
    if (away && st->lost_at != RM_NEVER && now >= st->lost_at + st->settings.lost_after) {
        give_up_on_coordinator(st, out);
        return;
    }
    if (st->connection == DISCONNECTED && !st->released && now >= st->retry_at) {
        act(out, AGENT_CONNECT);
        st->connection = CONNECTING;
        st->retry_at = RM_NEVER;
    }
    if (st->connection == WELCOMED && now >= st->beat_at)
        heartbeat(st, now, out);
}

static void start(struct agent *st, rm_time now, struct agent_out *out)
{
    st->lost_at = now;
    st->retry_at = now;
    st->retry_delay = RETRY_MS * RM_MS;
    spawn(st, out);
}

static void handle(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    switch (e->kind) {
    case AGENT_START:
        start(st, now, out);
        break;
    case AGENT_CONNECTED:
        st->connection = GREETED;
        say_hello(st, out);
        break;
    case AGENT_DISCONNECTED:
        on_disconnected(st, now);
        break;
    case AGENT_REFUSED:
        quit(st, out, 4, e->text);
        break;
    case AGENT_CONTROL:
        on_control(st, e->message, now, out);
        break;
    case AGENT_LINK:
        st->trainer_heard = now;
        on_link(st, e->message, out);
        break;
    case AGENT_TRAINER_EXIT:
        on_trainer_exit(st, e, out);
        break;
    case AGENT_TERM:
        on_term(st, e, out);
        break;
    case AGENT_LISTED:
        on_listed(st, e, out);
        break;
    case AGENT_LOADED:
        on_loaded(st, e, out);
        break;
    case AGENT_WRITTEN:
        on_written(st, e, out);
        break;
    case AGENT_PUBLISHED:
        on_published(st, e, out);
        break;
    case AGENT_TICK:
        break;
    }
}

void agent_step(struct agent *st, const struct agent_event *event, rm_time now, struct agent_out *out)
{
    out->count = 0;
    if (st->over)
        return;
    handle(st, event, now, out);
    if (!st->over)
        on_time(st, now, out);
}

static rm_time earlier(rm_time a, rm_time b)
{
    return a < b ? a : b;
}

rm_time agent_deadline(const struct agent *st)
{
    if (st->over || st->released)
        return RM_NEVER;
    rm_time at = earlier(st->beat_at, st->retry_at);
    if (st->connection != WELCOMED && st->lost_at != RM_NEVER)
        at = earlier(at, st->lost_at + st->settings.lost_after);
    return at;
}
