#include "common/storage/checkpoint/keep_rule.h"

#include "common/base/assert.h"

void keep_rule(struct keep_entry *entry, int count, int64_t published, int keep)
{
    int stay = keep > 1 ? keep : 1;
    for (int i = 0; i < count; i++) {
        struct keep_entry *e = &entry[i];
        RM_ASSERT(i == 0 || e->step <= entry[i - 1].step, "step %lld behind step %lld", (long long)e->step,
                  (long long)entry[i - 1].step);
        bool counts = e->step <= published && e->readable;
        e->goes = counts && stay <= 0;
        stay -= counts;
    }
}
