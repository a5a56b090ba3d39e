/* One trainer's core, driven as its shell does: messages in, commands done. */
#ifndef RM_TEST_PLAY_H
#define RM_TEST_PLAY_H

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "trainer/core/elastic.h"

#define PLAYED __attribute__((unused)) static

struct play {
    struct elastic *st;
    struct elastic_out *out;
    struct msg_state state;
    enum elastic_command running;
};

PLAYED struct msg_state state_of(int64_t step)
{
    struct msg_state s = {.held = step >= 0, .step = step < 0 ? 0 : step};
    s.lineage[0] = step < 0 ? 0 : (uint8_t)(step + 1);
    return s;
}

PLAYED const struct elastic_action *did(const struct play *p, enum elastic_action_kind kind)
{
    for (int i = 0; i < p->out->count; i++) {
        if (p->out->action[i].kind == kind)
            return &p->out->action[i];
    }
    return NULL;
}

PLAYED const struct message *sent(const struct play *p, enum msg_type type)
{
    for (int i = 0; i < p->out->count; i++) {
        const struct elastic_action *a = &p->out->action[i];
        if (a->kind == ELASTIC_SEND && a->message->type == type)
            return a->message;
    }
    return NULL;
}

PLAYED void step(struct play *p, struct elastic_event e)
{
    elastic_step(p->st, &e, p->out);
    const struct elastic_action *a = did(p, ELASTIC_RUN);
    if (a)
        p->running = a->command;
}

PLAYED void link_message(struct play *p, struct message *m)
{
    step(p, (struct elastic_event){.kind = ELASTIC_LINK, .message = m});
}

PLAYED void begin(struct play *p, int64_t held)
{
    struct elastic_settings s = {.worker = 1, .steps = 10, .evaluation_every = 4, .checkpoint_every = 3};
    struct message up;
    p->st = elastic_open(&s);
    p->out = calloc(1, sizeof *p->out);
    p->running = CMD_NONE;
    p->state = state_of(held);
    message_init(&up, MSG_UP);
    up.up.state = p->state;
    step(p, (struct elastic_event){.kind = ELASTIC_OPENED, .message = &up, .update_step = -1});
    cr_assert(sent(p, MSG_UP));
}

PLAYED void end(struct play *p)
{
    elastic_free(p->st);
    free(p->out);
}

PLAYED void done_with(struct play *p, struct elastic_result *r)
{
    r->command = p->running;
    r->peer = -1;
    if (r->outcome == OUTCOME_OK && p->running == CMD_COMMIT)
        p->state = state_of(p->state.step + 1);
    r->state = p->state;
    r->update_step = p->state.held ? p->state.step : -1;
    p->running = CMD_NONE;
    step(p, (struct elastic_event){.kind = ELASTIC_DONE, .result = r});
}

PLAYED void one_done(struct play *p, enum elastic_outcome outcome, bool stop)
{
    struct elastic_result r = {.outcome = outcome, .stop = stop};
    done_with(p, &r);
}

/* Of a step all three commands, or up to the one that may fail so. */
PLAYED void done(struct play *p, enum elastic_outcome outcome, bool stop)
{
    bool in_exchange = outcome == OUTCOME_OK || outcome == OUTCOME_NOT_FINITE || outcome == OUTCOME_LINEAGE;
    if (p->running == CMD_LANES && in_exchange) {
        one_done(p, OUTCOME_OK, false);
        cr_assert_eq(p->running, CMD_EXCHANGE);
    }
    bool commits = p->running == CMD_EXCHANGE && outcome == OUTCOME_OK;
    one_done(p, outcome, stop);
    if (commits) {
        cr_assert_eq(p->running, CMD_COMMIT);
        one_done(p, OUTCOME_OK, false);
    }
}

PLAYED void stop(struct play *p, int64_t round, enum msg_stop_at at)
{
    struct message m;
    message_init(&m, MSG_STOP);
    m.stop.round = round;
    m.stop.at = at;
    link_message(p, &m);
}

PLAYED void form(struct play *p, int64_t n, enum msg_role role, int64_t resume)
{
    static struct message m;
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){1, n};
    m.form.count = 2;
    m.form.member[0].worker = 0;
    m.form.member[1].worker = 1;
    m.form.member[1].role = role;
    m.form.sources_count = 1;
    m.form.resume = state_of(resume);
    m.form.evaluated = m.form.saved = -1;
    link_message(p, &m);
}

PLAYED void go(struct play *p, int64_t n)
{
    struct message m;
    message_init(&m, MSG_GO);
    m.generation = (struct msg_generation){1, n};
    link_message(p, &m);
}

PLAYED void train_from(struct play *p, int64_t held)
{
    begin(p, held);
    form(p, 1, ROLE_KEEP, held);
    cr_assert_eq(p->running, CMD_CONNECT);
    done(p, OUTCOME_OK, false);
    cr_assert(sent(p, MSG_READY));
    cr_assert_eq(p->running, CMD_NONE, "it waits for go");
    go(p, 1);
}

#endif
