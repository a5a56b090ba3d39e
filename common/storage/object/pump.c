#include "common/storage/object/pump.h"

/* How long *cancel may go unseen. */
static const rm_time look_every = 50 * RM_MS;

static void alarm_rang(void *ctx)
{
    (void)ctx; /* the turn has ended, which is all */
}

int pump_init(struct pump *pump, const atomic_int *cancel, struct error *err)
{
    *pump = (struct pump){.cancel = cancel};
    if (loop_open(&pump->loop, err) < 0 || http_open(&pump->http, pump->loop, err) < 0 ||
        loop_timer_open(&pump->alarm, pump->loop, alarm_rang, pump, err) < 0) {
        pump_clear(pump);
        return -1;
    }
    return 0;
}

void pump_clear(struct pump *pump)
{
    http_free(pump->http);
    loop_timer_free(pump->alarm);
    loop_free(pump->loop);
    *pump = (struct pump){0};
}

int pump_turn(struct pump *pump, rm_time until, struct error *err)
{
    if (pump->cancel && atomic_load(pump->cancel))
        return err_set(err, ERR_ABORTED, "given up");
    rm_time look = loop_now(pump->loop) + look_every;
    loop_timer_set(pump->alarm, until < look ? until : look);
    loop_turn(pump->loop, true);
    if (pump->tick)
        pump->tick(pump->ctx);
    return 0;
}

int pump_sleep(struct pump *pump, rm_time duration, struct error *err)
{
    rm_time until = loop_now(pump->loop) + duration;
    while (loop_now(pump->loop) < until)
        if (pump_turn(pump, until, err) < 0)
            return -1;
    return 0;
}
