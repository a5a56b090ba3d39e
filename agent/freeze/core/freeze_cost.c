#include "agent/freeze/core/freeze_cost.h"

enum { STANDS_OF = 1000, WORKS_OF = 10, MIB = 1 << 20 };

static const rm_time every_least = 60 * RM_S;

/* It takes as long as the last one for each byte, and a quarter more: the machine has other work when it
 * goes. */
static rm_time expected(const struct freeze_cost *last, int64_t memory)
{
    double took = (double)(last->dump + last->send) * 1.25;
    if (last->memory > 0 && memory > last->memory)
        took *= (double)memory / (double)last->memory;
    return took < (double)(RM_NEVER / 2) ? (rm_time)took : RM_NEVER / 2;
}

int freeze_refuse(const struct freeze_cost *last, const struct freeze_want *want, struct error *err)
{
    if (want->memory >= 0 && want->room >= 0 && want->memory > want->room)
        return err_set(
            err, ERR_MACHINE,
            "there is no room for a snapshot: %lld MiB are in memory, and %lld MiB free on disk; make "
            "its volume larger",
            (long long)(want->memory / MIB), (long long)(want->room / MIB));
    rm_time takes = expected(last, want->memory);
    if (want->within != RM_NEVER && takes > want->within)
        return err_set(
            err, ERR_MACHINE,
            "there is no time for a snapshot: it takes %.1f s by the one before, and %.1f s are left",
            (double)takes / RM_S, (double)want->within / RM_S);
    return 0;
}

rm_time freeze_every(const struct freeze_cost *last, rm_time most)
{
    rm_time by_stand = last->frozen < RM_NEVER / STANDS_OF ? last->frozen * STANDS_OF : RM_NEVER;
    rm_time work = rm_sum(last->dump, last->send);
    rm_time by_work = work < RM_NEVER / WORKS_OF ? work * WORKS_OF : RM_NEVER;
    return rm_earlier(rm_later(every_least, rm_later(by_stand, by_work)), most);
}
