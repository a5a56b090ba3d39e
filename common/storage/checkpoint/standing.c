#include "common/storage/checkpoint/standing.h"

#include <stdlib.h>

#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/keep_rule.h"

static bool readable(struct object_store *store, int64_t step)
{
    char name[CHECKPOINT_NAME_MAX];
    struct manifest *m = malloc(sizeof *m);
    checkpoint_name(name, step, false);
    bool is = m && checkpoint_manifest(store, name, m, NULL) == 0;
    free(m);
    return is;
}

/* All steps with the answer of the rule, newest first; the caller frees. NULL: nobody knows. */
static struct keep_entry *find_all(struct object_store *store, int64_t published, int keep, int *ret_count)
{
    int64_t *steps;
    if (files_steps(store, &steps, ret_count, NULL) < 0)
        return NULL;
    struct keep_entry *entry = calloc((size_t)*ret_count + 1, sizeof *entry);
    for (int i = 0; entry && i < *ret_count; i++)
        entry[i] = (struct keep_entry){.step = steps[i],
                                       .readable = steps[i] <= published && readable(store, steps[i])};
    if (entry)
        keep_rule(entry, *ret_count, published, keep);
    free(steps);
    return entry;
}

int standing_beyond(struct object_store *store, int64_t published, int keep)
{
    int count, beyond = 0;
    struct keep_entry *entry = find_all(store, published, keep, &count);
    for (int i = 0; entry && i < count; i++)
        beyond += entry[i].goes;
    free(entry);
    return beyond;
}

void standing_remove(struct object_store *store, int64_t published, int keep)
{
    char name[CHECKPOINT_NAME_MAX];
    int count;
    struct keep_entry *entry = find_all(store, published, keep, &count);
    for (int i = 0; entry && i < count; i++) {
        if (!entry[i].goes)
            continue;
        checkpoint_name(name, entry[i].step, false);
        FAULT("before-delete");
        files_remove(store, name, NULL, NULL, NULL);
    }
    free(entry);
}

int64_t standing_before(struct object_store *store, int64_t step)
{
    int64_t *steps, before = 0;
    int count;
    if (files_steps(store, &steps, &count, NULL) < 0)
        return 0;
    for (int i = 0; i < count && !before; i++)
        if (steps[i] < step && readable(store, steps[i]))
            before = steps[i];
    free(steps);
    return before;
}
