/* Workers that run a user's program, as a test plays them (story.h). */
#ifndef RM_TESTS_PROGRAM_STORY_H
#define RM_TESTS_PROGRAM_STORY_H

#include "story.h"

PLAYED struct rdzv_settings program(int max_restarts)
{
    struct rdzv_settings s = story_settings(1);
    s.program = true;
    s.steps = 1;
    s.max_restarts = max_restarts;
    return s;
}

/* A launcher has its processes' end behind it, and answers. All hold the same: the beginning. */
PLAYED void answers(struct story *s, int w)
{
    stopped(s, w, 0, -1);
}

PLAYED void all_run(struct story *s, int n)
{
    for (int w = 0; w < n; w++)
        ready(s, w, 0);
    cr_assert_eq(rdzv_state(s->st), RDZV_TRAINING, "%s", str_text(&s->log));
}

PLAYED void begin(struct story *s, struct rdzv_settings settings, int n)
{
    story_begin(s, settings);
    expect_workers(s, (1u << n) - 1);
    for (int w = 0; w < n; w++) {
        hello(s, w, 0);
        answers(s, w);
    }
    cr_assert_not(said(s, "list"), "there is nothing to look for: %s", str_text(&s->log));
    all_run(s, n);
    forget(s);
}

/* Three run, worker 2 is told to leave, and all are told to stop. */
PLAYED void stops_for_a_leave(struct story *s, struct rdzv_settings settings)
{
    begin(s, settings, 3);
    leaving(s, 2);
    after(s, RM_S);
    cr_assert_eq(rdzv_state(s->st), RDZV_QUIESCING, "%s", str_text(&s->log));
}

PLAYED void beats_of(struct story *s, int w, int64_t counter, enum msg_phase phase)
{
    struct message m;
    message_init(&m, MSG_HEARTBEAT);
    m.heartbeat.counter = counter;
    m.heartbeat.phase = phase;
    m.heartbeat.waiting_for = -1;
    hear(s, w, &m);
}

PLAYED void beats(struct story *s, int workers, int64_t counter, enum msg_phase phase)
{
    for (int w = 0; w < workers; w++)
        beats_of(s, w, counter, phase);
}

PLAYED void fails(struct story *s, int w)
{
    fault_says(s, w, &(struct msg_fault){.kind = FAULT_PROGRAM, .exit_code = 3, .detail = "exit code 3"});
}

#endif
