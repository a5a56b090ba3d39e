#include "operator/core/status_parts.h"

#include <math.h>
#include <stdio.h>

#include "common/base/assert.h"
#include "operator/core/read.h"

/* 0 or more, without what is behind the point. */
static int64_t whole(double number, int64_t unknown)
{
    RM_ASSERT(unknown <= 0, "%lld stands for what is not known", (long long)unknown);
    if (!(fabs(number) <= 9e15))
        return unknown;
    return number > 0 ? (int64_t)number : 0;
}

static void number_text(double number, char out[OP_NUMBER_MAX])
{
    if (isfinite(number))
        snprintf(out, OP_NUMBER_MAX, "%.5g", number);
}

void take_progress(const struct status_progress *from, struct op_progress *ret)
{
    if (!from->known)
        return;
    ret->known = true;
    ret->step = from->step;
    ret->steps = from->steps;
    ret->tokens_per_second = whole(from->tokens_per_second, -1);
    ret->samples_per_second = whole(from->samples_per_second, -1);
    ret->eta_seconds = whole(from->eta_seconds, -1);
    number_text(from->steps_per_second, ret->steps_per_second);
    number_text(from->loss, ret->loss);
    number_text(from->held_out, ret->held_out);
    number_text(from->norm, ret->norm);
    number_text(from->clip, ret->clip);
    number_text(from->rate, ret->rate);
}

void take_checkpoint(const struct status_checkpoint *from, struct op_checkpoint *ret)
{
    if (!from->known)
        return;
    ret->known = true;
    ret->step = from->step;
    ret->bytes = from->bytes;
    ret->saved_ms = from->saved;
    text_tame(from->uri, ret->uri, sizeof ret->uri);
}

void take_interval(const struct status_interval *from, struct op_interval *ret)
{
    if (!from->known)
        return;
    ret->known = true;
    ret->every_seconds = whole(from->every_seconds, 0);
    ret->losses = from->losses < OP_COUNT_MAX ? from->losses : OP_COUNT_MAX;
    ret->observed_seconds = whole(from->observed_seconds, 0);
    ret->stall_ms = whole(from->stall_ms, 0);
    ret->safe_ms = whole(from->safe_ms, 0);
    text_tame(from->reason, ret->reason, sizeof ret->reason);
}

void take_recovery(const struct status_recovery *from, struct op_recovery *ret)
{
    if (!from->known)
        return;
    ret->known = true;
    ret->steps_redone = from->steps_redone;
    text_tame(from->cause, ret->cause, sizeof ret->cause);
    for (int part = 0; part < RECOVERY_PARTS; part++)
        ret->ms[part] = whole(from->ms[part], 0);
}

void take_goodput(const struct status_goodput *from, struct op_goodput *ret)
{
    if (!from->known)
        return;
    ret->known = true;
    if (isfinite(from->ratio))
        snprintf(ret->ratio, sizeof ret->ratio, "%.3f",
                 from->ratio >= 0 && from->ratio <= 1 ? from->ratio : 0);
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        ret->seconds[which] = whole(from->seconds[which], 0);
}

void take_result(const struct status_result *from, struct op_result *ret)
{
    if (!from->known)
        return;
    ret->known = true;
    ret->exact = from->exact;
    ret->step = from->step;
    number_text(from->loss, ret->loss);
    text_tame(from->weights_sha256, ret->weights_sha256, sizeof ret->weights_sha256);
    text_tame(from->uri, ret->uri, sizeof ret->uri);
}

int take_members(const struct status_workers *from, struct op_member *ret)
{
    RM_ASSERT(from->count <= RM_WORKERS_MAX, "%d members", from->count);
    for (int i = 0; i < from->count; i++)
        ret[i] = (struct op_member){.worker = from->worker[i].worker, .attempt = from->worker[i].attempt};
    return from->count;
}
