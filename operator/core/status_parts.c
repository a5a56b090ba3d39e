#include "operator/core/status_parts.h"

#include "operator/core/read.h"

void read_progress(const struct js *from, struct op_progress *ret)
{
    ret->known = true;
    ret->eta_seconds = -1;
    read_int(from, "step", 0, INT64_MAX, &ret->step);
    read_int(from, "steps", 0, INT64_MAX, &ret->steps);
    read_int(from, "tokensPerSecond", 0, INT64_MAX, &ret->tokens_per_second);
    read_int(from, "etaSeconds", 0, INT64_MAX, &ret->eta_seconds);
    read_number(from, "loss", ret->loss, sizeof ret->loss);
}

void read_recovery(const struct js *from, struct op_recovery *ret)
{
    ret->known = true;
    read_text(from, "cause", ret->cause, sizeof ret->cause);
    for (int part = 0; part < RECOVERY_PARTS; part++)
        read_int(from, recovery_key(part), 0, INT64_MAX, &ret->ms[part]);
    read_int(from, "stepsRedone", 0, INT64_MAX, &ret->steps_redone);
}

void read_result(const struct js *from, struct op_result *ret)
{
    ret->known = true;
    read_int(from, "step", 0, INT64_MAX, &ret->step);
    read_number(from, "loss", ret->loss, sizeof ret->loss);
    read_text(from, "weightsSha256", ret->weights_sha256, sizeof ret->weights_sha256);
    read_text(from, "uri", ret->uri, sizeof ret->uri);
    read_flag(from, "exact", &ret->exact);
}

void read_checkpoint(const struct js *from, struct op_checkpoint *ret)
{
    ret->known = true;
    read_int(from, "step", 0, INT64_MAX, &ret->step);
    read_int(from, "bytes", 0, INT64_MAX, &ret->bytes);
    read_text(from, "uri", ret->uri, sizeof ret->uri);
}

void read_goodput(const struct js *from, struct op_goodput *ret)
{
    ret->known = true;
    for (int which = 0; which < GOODPUT_CLASSES; which++)
        read_int(from, goodput_key(which), 0, INT64_MAX, &ret->seconds[which]);
}
