#include "trainer/prober.h"

#include <stdlib.h>

#include "common/base/str.h"

struct prober {
    struct loop *loop;
    struct prober_options options;
    struct abort_flag abort;
    bool busy, stopped, next_set;
    struct msg_probe probe, next;
    struct msg_probed answer; /* the background's while busy */
};

/* Stops at the first that does not answer: whoever asks wants all of them. */
static void call_all(void *ctx)
{
    struct prober *p = ctx;
    struct reach_options o = {p->options.secret, p->options.self, &p->abort};
    struct error err = {0};
    p->answer = (struct msg_probed){.id = p->probe.id, .peer = -1};
    for (int i = 0; i < p->probe.count; i++) {
        const struct msg_member *m = &p->probe.member[i];
        struct ring_neighbour peer = {.end = {m->worker, m->incarnation}};
        text_copy(peer.address, sizeof peer.address, m->address);
        if (reach(&o, &peer, &err) == 0)
            continue;
        p->answer.peer = m->worker;
        text_copy(p->answer.why, sizeof p->answer.why, err.text);
        return;
    }
}

static void called(void *ctx);

static void start_calls(struct prober *p)
{
    struct error err;
    p->busy = loop_work(p->loop, call_all, called, p, &err) == 0; /* else nobody answers, which is one, too */
}

static void called(void *ctx)
{
    struct prober *p = ctx;
    p->busy = false;
    if (p->stopped)
        return;
    p->options.probed(p->options.ctx, &p->answer);
    if (!p->next_set)
        return;
    p->next_set = false;
    p->probe = p->next;
    start_calls(p);
}

int prober_open(struct prober **ret, struct loop *loop, const struct prober_options *options,
                struct error *err)
{
    struct prober *p = calloc(1, sizeof *p);
    if (!p)
        return err_set(err, ERR_MACHINE, "no memory for calling other trainers");
    p->loop = loop;
    p->options = *options;
    if (abort_flag_init(&p->abort, err) < 0) {
        free(p);
        return -1;
    }
    *ret = p;
    return 0;
}

void prober_start(struct prober *p, const struct msg_probe *probe)
{
    if (p->busy) {
        p->next = *probe;
        p->next_set = true;
        return;
    }
    p->probe = *probe;
    start_calls(p);
}

void prober_stop(struct prober *p)
{
    if (!p)
        return;
    p->stopped = true;
    abort_flag_set(&p->abort);
}

void prober_free(struct prober *p)
{
    if (!p)
        return;
    abort_flag_clear(&p->abort);
    free(p);
}
