/* A coordinator and agents that a test plays by hand. Every action is added to `log` as a line of text:
 * "send 0,2 stop round=2 at=now", "tell workerLost 1", "close 3", "end 6 sentence". */
#ifndef RM_TESTS_PROTOCOL_STORY_H
#define RM_TESTS_PROTOCOL_STORY_H

#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/rdzv.h"
#include "coordinator/status/rdzv_text.h"

#define PLAYED __attribute__((unused)) static

struct story {
    struct rdzv *st;
    struct rdzv_out *out;
    int most_actions; /* of one step, and what their bodies took */
    size_t most_bodies;
    rm_time now;
    int conn[RM_WORKERS_MAX], conns; /* -1: none */
    int attempt[RM_WORKERS_MAX];
    int64_t trainer[RM_WORKERS_MAX];
    const char *machine[RM_WORKERS_MAX]; /* the fingerprint of its arithmetic */
    const char *probe[RM_WORKERS_MAX];   /* what its machine computes; NULL: not measured */
    const char *made_by;                 /* that of checkpoints; NULL: cpu-a */
    const char *trained_on;              /* checkpoints, identity of the data; NULL: "" */
    const char *data[RM_WORKERS_MAX];    /* that a worker sees; NULL: what all see */
    int64_t round, generation;
    struct message form, publish;
    struct rdzv_recovery recovery;
    bool listening; /* who is told to listen does; else it says at once that it can't */
    int deaf;       /* worker that has to say so; -1: none */
    struct str log;
    int ended; /* -1: not yet */
};

PLAYED struct msg_state state_of(int64_t step)
{
    struct msg_state s = {.held = step >= 0, .step = step < 0 ? 0 : step};
    if (s.held)
        s.lineage[0] = (uint8_t)(step + 1);
    return s;
}

PLAYED struct rdzv_settings story_settings(int min)
{
    return (struct rdzv_settings){.job = "story",
                                  .term = 1,
                                  .workers_min = min,
                                  .workers_max = 8,
                                  .workers_target = 3,
                                  .lanes = 8,
                                  .steps = 100,
                                  .exact = true,
                                  .resume = true,
                                  .join_window = 100 * RM_MS,
                                  .heartbeat = RM_S,
                                  .lost_after = 5 * RM_S,
                                  .form_timeout = 10 * RM_S,
                                  .start_timeout = 60 * RM_S,
                                  .max_restarts = 2,
                                  .within = 3600 * RM_S};
}

PLAYED int worker_at(const struct story *s, int conn)
{
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        if (s->conn[w] == conn)
            return w;
    }
    return -1;
}

PLAYED void note_send(struct story *s, const struct rdzv_action *a)
{
    char text[600];
    const struct message *m = a->send.message;
    str_adds(&s->log, "send ");
    for (int i = 0; i < a->send.count; i++)
        str_addf(&s->log, "%s%d", i ? "," : "", worker_at(s, a->send.conn[i]));
    message_describe(m, text, sizeof text);
    str_addf(&s->log, " %s\n", text);
    if (m->type == MSG_STOP)
        s->round = m->stop.round;
    if (m->type == MSG_FORM) {
        message_copy(&s->form, m);
        s->generation = m->generation.n;
    }
    if (m->type == MSG_PUBLISH)
        message_copy(&s->publish, m);
    if (m->type == MSG_LISTEN && !s->listening)
        s->deaf = worker_at(s, a->send.conn[0]);
}

PLAYED void note(struct story *s, const struct rdzv_action *a)
{
    if (a->kind == RDZV_SEND) {
        note_send(s, a);
    } else if (a->kind == RDZV_CLOSE) {
        str_addf(&s->log, "close %d\n", worker_at(s, a->close));
    } else if (a->kind == RDZV_TELL) {
        struct str line = str_init(8192);
        rdzv_tell_print(a->tell, 0, "file:///c", &line);
        str_addf(&s->log, "tell %s\n", str_text(&line));
        str_clear(&line);
        if (a->tell->kind == TELL_RECOVERED)
            s->recovery = a->tell->recovery;
    } else {
        str_addf(&s->log, "end %d %s\n", a->end.exit_code, a->end.why);
        s->ended = a->end.exit_code;
    }
}

PLAYED void play(struct story *s, const struct rdzv_event *e);

PLAYED void cant_listen(struct story *s)
{
    struct message m;
    message_init(&m, MSG_HEARD);
    m.term = 1;
    text_copy(m.heard.why, sizeof m.heard.why, "as the story goes");
    struct rdzv_event e = {.kind = RDZV_MESSAGE, .conn = s->conn[s->deaf], .message = &m};
    s->deaf = -1;
    play(s, &e);
}

PLAYED void play(struct story *s, const struct rdzv_event *e)
{
    rdzv_step(s->st, e, s->now, s->out);
    s->most_actions = s->out->count > s->most_actions ? s->out->count : s->most_actions;
    s->most_bodies = s->out->arena.used > s->most_bodies ? s->out->arena.used : s->most_bodies;
    for (int i = 0; i < s->out->count; i++)
        note(s, &s->out->action[i]);
    if (s->deaf >= 0)
        cant_listen(s);
}

PLAYED void story_begin(struct story *s, struct rdzv_settings settings)
{
    memset(s, 0, sizeof *s);
    s->log = str_init(1 << 20);
    s->out = calloc(1, sizeof *s->out);
    s->now = RM_S;
    s->st = rdzv_open(&settings, s->now);
    s->ended = s->deaf = -1;
    s->round = 1;
    for (int w = 0; w < RM_WORKERS_MAX; w++) {
        s->conn[w] = -1;
        s->trainer[w] = 100 + w;
        s->machine[w] = "cpu-a";
    }
}

PLAYED void story_end(struct story *s)
{
    rdzv_free(s->st);
    free(s->out);
    str_clear(&s->log);
}

PLAYED bool said(const struct story *s, const char *text)
{
    return strstr(str_text(&s->log), text) != NULL;
}

PLAYED int times_said(const struct story *s, const char *text)
{
    int times = 0;
    for (const char *at = str_text(&s->log); (at = strstr(at, text)); at++)
        times++;
    return times;
}

PLAYED void forget(struct story *s)
{
    str_reset(&s->log);
}

/* As the program around it does: it is called at each deadline on the way. */
PLAYED void after(struct story *s, rm_time t)
{
    struct rdzv_event e = {.kind = RDZV_TICK};
    rm_time end = s->now + t;
    while (s->now < end) {
        rm_time due = rdzv_deadline(s->st);
        s->now = due > s->now && due < end ? due : end;
        play(s, &e);
    }
}

/* As if this program, or its machine, had stood still. */
PLAYED void sleep_through(struct story *s, rm_time t)
{
    struct rdzv_event e = {.kind = RDZV_TICK};
    s->now += t;
    play(s, &e);
}

/* workers: a mask; all with attempt[w] */
PLAYED void expect_workers(struct story *s, unsigned workers)
{
    struct rdzv_event e = {.kind = RDZV_EXPECT};
    for (int w = 0; w < 32; w++) {
        if (!(workers & 1u << w))
            continue;
        e.expect.worker[e.expect.count].worker = w;
        e.expect.worker[e.expect.count++].attempt = s->attempt[w];
    }
    play(s, &e);
}

PLAYED void act_on(struct story *s, enum cause cause, int w)
{
    struct rdzv_event e = {.kind = RDZV_ACT};
    e.act.cause = cause;
    e.act.worker = w;
    e.act.at = s->now;
    play(s, &e);
}

PLAYED void hear(struct story *s, int w, struct message *m)
{
    struct rdzv_event e = {.kind = RDZV_MESSAGE, .conn = s->conn[w], .message = m};
    m->term = 1;
    if (!m->generation.n)
        m->generation = (struct msg_generation){1, s->generation};
    play(s, &e);
}

PLAYED void hello_message(const struct story *s, int w, int64_t step, struct message *m)
{
    message_init(m, MSG_HELLO);
    m->hello.protocol = MSG_PROTOCOL;
    text_copy(m->hello.job, sizeof m->hello.job, "story");
    m->hello.worker = w;
    m->hello.attempt = s->attempt[w];
    m->hello.incarnation = (uint64_t)(100 * w + s->attempt[w] + 1);
    m->hello.agent_pid = 50 + w;
    m->hello.trainer_pid = s->trainer[w];
    m->hello.state = state_of(step);
    text_copy(m->hello.address, sizeof m->hello.address, "127.0.0.1:9");
    text_copy(m->hello.fingerprint, sizeof m->hello.fingerprint, s->machine[w]);
    text_copy(m->hello.probe, sizeof m->hello.probe, s->probe[w] ? s->probe[w] : "");
    text_copy(m->hello.data_sha256, sizeof m->hello.data_sha256, s->data[w] ? s->data[w] : "d");
    m->hello.data_files = 2;
    m->hello.data_bytes = 999;
}

/* On a new connection. */
PLAYED void hello(struct story *s, int w, int64_t step)
{
    struct message m;
    hello_message(s, w, step, &m);
    s->conn[w] = s->conns++;
    hear(s, w, &m);
}

PLAYED void closed(struct story *s, int w)
{
    struct rdzv_event e = {.kind = RDZV_CLOSED, .conn = s->conn[w]};
    s->conn[w] = -1;
    play(s, &e);
}

PLAYED void stopped(struct story *s, int w, int64_t step, int64_t update)
{
    struct message m;
    message_init(&m, MSG_STOPPED);
    m.stopped.round = s->round;
    m.stopped.state = state_of(step);
    m.stopped.update_step = update;
    m.stopped.trainer_pid = s->trainer[w];
    hear(s, w, &m);
}

/* The first n, who hold nothing. */
PLAYED void first_come(struct story *s, int n)
{
    for (int w = 0; w < n; w++) {
        hello(s, w, -1);
        stopped(s, w, -1, -1);
    }
}

PLAYED void heard(struct story *s, int w, int64_t step)
{
    struct message m;
    message_init(&m, MSG_HEARD);
    m.heard.state = state_of(step);
    hear(s, w, &m);
}

PLAYED void ready(struct story *s, int w, int64_t step)
{
    struct message m;
    message_init(&m, MSG_READY);
    m.ready.state = state_of(step);
    m.ready.trainer_pid = s->trainer[w];
    hear(s, w, &m);
}

PLAYED void progress_in(struct story *s, int w, int64_t step, rm_time took)
{
    struct message m;
    message_init(&m, MSG_PROGRESS);
    m.progress.step = step;
    m.progress.loss = 2.5;
    m.progress.loss_known = true;
    m.progress.numbers = msg_numbers_unknown();
    m.progress.tokens = 10;
    m.progress.step_time = took;
    hear(s, w, &m);
}

PLAYED void progress(struct story *s, int w, int64_t step)
{
    progress_in(s, w, step, 10 * RM_MS);
}

PLAYED void fault_of(struct story *s, int w, enum msg_fault_kind kind, int peer, int64_t step)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.fault.kind = kind;
    m.fault.peer = peer;
    m.fault.step = step;
    text_copy(m.fault.detail, sizeof m.fault.detail, "as the story goes");
    hear(s, w, &m);
}

/* What an agent's store work, or a trainer, says of a fault whose class is known. */
PLAYED void fault_says(struct story *s, int w, const struct msg_fault *f)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.fault = *f;
    m.fault.peer = -1;
    if (!f->detail[0])
        text_copy(m.fault.detail, sizeof m.fault.detail, "as the story goes");
    hear(s, w, &m);
}

PLAYED void load_fails(struct story *s, int w, int64_t step, enum fault_class class)
{
    fault_says(s, w,
               &(struct msg_fault){.kind = FAULT_STORAGE, .class = class, .step = step, .reading = true});
}

PLAYED void write_fails(struct story *s, int w, int64_t step, enum fault_class class)
{
    fault_says(s, w, &(struct msg_fault){.kind = FAULT_STORAGE, .class = class, .step = step});
}

PLAYED void leaving(struct story *s, int w)
{
    struct message m;
    message_init(&m, MSG_LEAVING);
    text_copy(m.leaving.reason, sizeof m.leaving.reason, "SIGTERM");
    hear(s, w, &m);
}

PLAYED void listed(struct story *s, int w, int64_t newest, int64_t older)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTS);
    int64_t steps[2] = {newest, older};
    for (int i = 0; i < 2; i++) {
        if (steps[i] < 0)
            continue;
        struct msg_checkpoint *c = &m.checkpoints.checkpoint[m.checkpoints.count++];
        c->step = steps[i];
        memcpy(c->lineage, state_of(steps[i]).lineage, RM_HASH_BYTES);
        text_copy(c->fingerprint, sizeof c->fingerprint, s->made_by ? s->made_by : "cpu-a");
        text_copy(c->data_sha256, sizeof c->data_sha256, s->trained_on ? s->trained_on : "");
    }
    hear(s, w, &m);
}

PLAYED void checkpointed(struct story *s, int w, int64_t step, int part, int parts, bool final)
{
    struct message m;
    message_init(&m, MSG_CHECKPOINTED);
    m.checkpointed.step = step;
    m.checkpointed.final = final;
    m.checkpointed.exact = true;
    memcpy(m.checkpointed.lineage, state_of(step).lineage, RM_HASH_BYTES);
    m.checkpointed.part = part;
    m.checkpointed.parts = parts;
    m.checkpointed.count = 1;
    hear(s, w, &m);
}

PLAYED void published(struct story *s, int w, int64_t step, bool final)
{
    struct message m;
    message_init(&m, MSG_PUBLISHED);
    m.published.step = step;
    m.published.final = final;
    m.published.bytes = 10 * step;
    hear(s, w, &m);
}

PLAYED void finished(struct story *s, int w)
{
    struct message m;
    message_init(&m, MSG_FINISHED);
    m.finished.step = 100;
    m.finished.digest[0] = 7;
    m.finished.exact = true;
    hear(s, w, &m);
}

/* Workers 0..n-1 arrive with nothing, form from the seed and train. */
PLAYED void train_with(struct story *s, int n)
{
    expect_workers(s, (1u << n) - 1);
    first_come(s, n);
    for (int w = 0; w < n; w++)
        listed(s, w, -1, -1);
    for (int w = 0; w < n; w++)
        ready(s, w, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
    forget(s);
}

/* Workers 0 and 1 train up to `step` and worker 2 comes, which has to receive the state. */
PLAYED void let_one_join(struct story *s, struct rdzv_settings settings, int64_t step)
{
    story_begin(s, settings);
    train_with(s, 2);
    progress(s, 0, step);
    progress(s, 1, step);
    act_on(s, CAUSE_WORKER_JOINED, 2);
    expect_workers(s, 7);
    hello(s, 2, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", rdzv_why(s->st));
    stopped(s, 0, step, step);
    stopped(s, 1, step, step);
    stopped(s, 2, -1, -1);
    cr_assert_eq(rdzv_state(s->st), RDZV_FORMING, "%s", rdzv_why(s->st));
    forget(s);
}

/* Every worker tells that it lives, so that only what the story is about is waited for. */
PLAYED void they_live_on(struct story *s, int n, int seconds)
{
    for (int i = 0; i < seconds * 2; i++) {
        for (int w = 0; w < n; w++) {
            struct message m;
            message_init(&m, MSG_HEARTBEAT);
            m.heartbeat.waiting_for = -1;
            m.heartbeat.counter = s->now;
            if (s->conn[w] >= 0)
                hear(s, w, &m);
        }
        after(s, 500 * RM_MS);
    }
}

PLAYED void list_fails(struct story *s, int w, struct msg_fault f)
{
    f.kind = FAULT_STORAGE;
    f.step = -1;
    fault_says(s, w, &f);
}

PLAYED void all_stop(struct story *s, int n)
{
    for (int w = 0; w < n; w++)
        stopped(s, w, -1, -1);
}

PLAYED void sees_damage(struct story *s, int w, const char *what)
{
    struct msg_fault f = {.kind = FAULT_STORAGE, .class = CLASS_OBJECT, .step = 231, .reading = true};
    text_copy(f.detail, sizeof f.detail, what);
    fault_says(s, w, &f);
}

PLAYED void gives_something_else(struct story *s, int by, int source)
{
    struct message m;
    message_init(&m, MSG_FAULT);
    m.fault.kind = FAULT_LINEAGE;
    m.fault.class = CLASS_SOURCE;
    m.fault.peer = source;
    m.fault.step = -1;
    snprintf(m.fault.detail, sizeof m.fault.detail, "worker %d holds something else", source);
    hear(s, by, &m);
}

#endif
