/* Which checkpoints a place has, from which of them a run starts, and taking away those that are not wanted.
 */
#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"

static void skip(struct checkpoint_skipped *list, int *count, const char *name, const char *why)
{
    if (*count == CHECKPOINT_SKIPPED_MAX)
        return;
    struct checkpoint_skipped *entry = &list[(*count)++];
    text_copy(entry->name, sizeof entry->name, name);
    text_copy_ends(entry->why, sizeof entry->why, why);
}

static void fill_entry(struct checkpoint_entry *entry, const char *name, const struct manifest *m)
{
    *entry = (struct checkpoint_entry){
        .step = m->step, .final = !strcmp(name, "final"), .exact = m->exact, .bytes = manifest_bytes(m)};
    text_copy(entry->name, sizeof entry->name, name);
    text_copy(entry->fingerprint, sizeof entry->fingerprint, m->fingerprint);
    memcpy(entry->lineage, m->lineage, RM_HASH_BYTES);
    entry->has_weights = m->has_weights;
    memcpy(entry->weights_sha256, m->weights_sha256, RM_HASH_BYTES);
    memcpy(entry->data_sha256, m->data.sha256, RM_HASH_BYTES);
}

/* Puts the entry where its step belongs; those past the end fall off. */
static void insert(struct checkpoint_list *list, const struct checkpoint_entry *entry)
{
    int at = list->count;
    while (at > 0 && list->entry[at - 1].step <= entry->step)
        at--;
    if (at == RM_CHECKPOINTS_LISTED)
        return;
    int end = list->count < RM_CHECKPOINTS_LISTED ? list->count++ : RM_CHECKPOINTS_LISTED - 1;
    memmove(&list->entry[at + 1], &list->entry[at], (size_t)(end - at) * sizeof *entry);
    list->entry[at] = *entry;
}

static int list_one(struct checkpoint_list *list, struct object_store *store, const char *name,
                    struct manifest *m, struct error *err)
{
    struct error why = {0};
    struct checkpoint_entry entry;
    if (checkpoint_manifest(store, name, m, &why) == 0) {
        fill_entry(&entry, name, m);
        insert(list, &entry);
        return 0;
    }
    if (why.code == ERR_NOT_FOUND)
        return 0; /* leftovers of one that was never finished */
    if (why.code == ERR_USAGE && why.class == CLASS_SOFTWARE)
        why.code = ERR_DATA; /* of a newer version: a checkpoint that can't be gone on from */
    else if (why.code == ERR_DATA) {
        skip(list->skip, &list->skipped, name, why.text);
        return 0;
    }
    return err_from(err, &why, "%s", why.text);
}

static int list_steps(struct checkpoint_list *list, struct object_store *store, struct manifest *m,
                      struct error *err)
{
    int64_t *steps;
    int count, result = 0;
    if (files_steps(store, &steps, &count, err) < 0)
        return -1;
    for (int i = 0; i < count && result == 0 && list->count < RM_CHECKPOINTS_LISTED; i++) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(name, steps[i], false);
        result = list_one(list, store, name, m, err);
    }
    free(steps);
    return result < 0 ? -1 : list_one(list, store, "final", m, err);
}

int checkpoint_list(struct object_store *store, struct checkpoint_list *ret, struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    memset(ret, 0, sizeof *ret);
    int result = list_steps(ret, store, m, err);
    free(m);
    return result;
}

/* What this run did not go on from because of its manifest: what is older than `found` (NULL: nothing) would
 * not have been taken anyway. Of a final/ nobody knows the step. */
static void name_skipped(const struct checkpoint_list *list, const struct checkpoint_entry *found,
                         struct checkpoint_resume *ret)
{
    for (int i = 0; i < list->skipped; i++) {
        int64_t step = files_step(list->skip[i].name);
        if (!found || step < 0 || step > found->step)
            skip(ret->skip, &ret->skipped, list->skip[i].name, list->skip[i].why);
    }
}

/* 1: this one is good; 0: it is damaged, which is proven, or has gone; -1: trouble of another kind, which may
 * not cost a checkpoint. */
static int try_entry(struct object_store *store, const struct checkpoint_entry *entry, bool verify,
                     struct checkpoint_resume *ret, struct error *err)
{
    struct error why = {0};
    int result = verify ? checkpoint_verify(store, entry->name, &ret->manifest, &why)
                        : checkpoint_manifest(store, entry->name, &ret->manifest, &why);
    if (result == 0) {
        ret->entry = *entry;
        return 1;
    }
    if (why.code != ERR_DATA && why.code != ERR_NOT_FOUND)
        return err_from(err, &why, "%s", why.text);
    if (why.code == ERR_DATA)
        skip(ret->skip, &ret->skipped, entry->name, why.text);
    return 0;
}

int checkpoint_all_damaged(struct object_store *store, const struct checkpoint_skipped *list, int count,
                           struct error *err)
{
    struct str names = str_init(160);
    for (int i = 0; i < count; i++)
        str_addf(&names, "%s%s", i ? ", " : "", list[i].name);
    err_set(err, ERR_DATA,
            "no checkpoint in %.120s can be used: %s %s damaged (%.100s); nothing was deleted; bring a sound "
            "one back, or start anew with --overwrite, which deletes them",
            object_uri(store), str_text(&names), count > 1 ? "are all" : "is", list[0].why);
    str_clear(&names);
    err_person(err);
    return err_class(err, CLASS_OBJECT);
}

static int resume(struct object_store *store, struct checkpoint_list *list, int64_t last,
                  struct checkpoint_resume *ret, struct error *err)
{
    int good = 0;
    if (checkpoint_list(store, list, err) < 0)
        return -1;
    for (int i = 0; i < list->count && !good; i++) {
        const struct checkpoint_entry *entry = &list->entry[i];
        bool verify = last < 0 || (entry->final && entry->step == last);
        good = try_entry(store, entry, verify, ret, err);
    }
    if (good < 0)
        return -1;
    ret->found = good > 0;
    name_skipped(list, good ? &ret->entry : NULL, ret);
    if (!good && ret->skipped)
        return checkpoint_all_damaged(store, ret->skip, ret->skipped, err);
    return 0;
}

int checkpoint_newest(struct object_store *store, int64_t last, struct checkpoint_resume *ret,
                      struct error *err)
{
    struct checkpoint_list *list = malloc(sizeof *list);
    if (!list)
        return err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    memset(ret, 0, sizeof *ret);
    int result = resume(store, list, last, ret, err);
    free(list);
    return result;
}

int checkpoint_resume(struct object_store *store, struct checkpoint_resume *ret, struct error *err)
{
    return checkpoint_newest(store, -1, ret, err);
}

int checkpoint_delete(struct object_store *store, const char *name, struct error *err)
{
    if (strcmp(name, "final") != 0 && files_step(name) < 0)
        return err_set(err, ERR_USAGE, "checkpoint %s: this is no checkpoint's name (step-00000200, final)",
                       name);
    return files_remove(store, name, NULL, NULL, err);
}

int checkpoint_delete_all(struct object_store *store, struct error *err)
{
    int64_t *steps;
    int count, result = 0;
    if (files_steps(store, &steps, &count, err) < 0)
        return -1;
    /* Oldest first, final last: what a crash leaves is still the newest. */
    for (int i = count - 1; i >= 0 && result == 0; i--) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(name, steps[i], false);
        result = files_remove(store, name, NULL, NULL, err);
    }
    free(steps);
    return result < 0 ? -1 : files_remove(store, "final", NULL, NULL, err);
}
