#include "common/storage/data/arrival.h"

bool arrival_is_over(struct arrival *arrival, struct arrival_amount there, rm_time now)
{
    bool same = there.files == arrival->there.files && there.bytes == arrival->there.bytes;
    arrival->awaited = arrival->awaited || !there.files;
    if (!same)
        arrival->since = now;
    arrival->there = there;
    return !arrival->awaited || (there.files && now - arrival->since >= ARRIVAL_SETTLES);
}
