#include "common/storage/object/waiter.h"

/* How long *cancel may go unseen. */
static const rm_time look_every = 50 * RM_MS;

static void alarm_rang(void *ctx)
{
    (void)ctx; /* the turn has ended, which is all */
}

int waiter_init(struct waiter *waiter, const atomic_int *cancel, struct error *err)
{
    *waiter = (struct waiter){.cancel = cancel};
    if (loop_open(&waiter->loop, err) < 0 || http_open(&waiter->http, waiter->loop, err) < 0 ||
        loop_timer_open(&waiter->alarm, waiter->loop, alarm_rang, waiter, err) < 0) {
        waiter_clear(waiter);
        return -1;
    }
    return 0;
}

void waiter_clear(struct waiter *waiter)
{
    http_free(waiter->http);
    loop_timer_free(waiter->alarm);
    loop_free(waiter->loop);
    *waiter = (struct waiter){0};
}

int waiter_turn(struct waiter *waiter, rm_time until, struct error *err)
{
    if (waiter->cancel && atomic_load(waiter->cancel))
        return err_set(err, ERR_ABORTED, "given up");
    rm_time look = loop_now(waiter->loop) + look_every;
    loop_timer_set(waiter->alarm, until < look ? until : look);
    loop_turn(waiter->loop, true);
    if (waiter->tick)
        waiter->tick(waiter->ctx);
    return 0;
}

int waiter_sleep(struct waiter *waiter, rm_time duration, struct error *err)
{
    rm_time until = loop_now(waiter->loop) + duration;
    while (loop_now(waiter->loop) < until)
        if (waiter_turn(waiter, until, err) < 0)
            return -1;
    return 0;
}
