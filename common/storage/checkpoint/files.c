/* Names the files of a checkpoint, finds and removes checkpoints by their names. */
#include "common/storage/checkpoint/files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/folder_texts.h"
#include "common/storage/checkpoint/model_card.h"

void files_object(char out[FILES_NAME_MAX], const char *checkpoint, const char *file)
{
    snprintf(out, FILES_NAME_MAX, "%s/%s", checkpoint, file);
}

void files_upload_name(char out[FILES_NAME_MAX], const struct files_upload *upload)
{
    char hex[17];
    hex_encode(upload->lineage, 8, hex);
    snprintf(out, FILES_NAME_MAX, "%s/%s.%s-of-%d.%d.upload", upload->checkpoint, upload->file, hex,
             upload->parts, upload->attempt);
}

void checkpoint_name(char out[CHECKPOINT_NAME_MAX], int64_t step, bool final)
{
    if (final)
        text_copy(out, CHECKPOINT_NAME_MAX, "final");
    else
        snprintf(out, CHECKPOINT_NAME_MAX, "step-%08lld", (long long)step);
}

int64_t files_step(const char *name)
{
    char again[CHECKPOINT_NAME_MAX];
    if (strncmp(name, "step-", 5) != 0 || strlen(name) >= sizeof again)
        return -1;
    long long step = strtoll(name + 5, NULL, 10);
    if (step < 0)
        return -1;
    checkpoint_name(again, step, false);
    return strcmp(again, name) ? -1 : (int64_t)step;
}

/* --- listing --- */

struct steps {
    int64_t *step;
    int count, room;
};

/* The step of the checkpoint that this object or folder lies in, or -1. */
static int64_t step_around(const char *name)
{
    char checkpoint[CHECKPOINT_NAME_MAX];
    size_t length = strcspn(name, "/");
    if (!name[length] || length >= sizeof checkpoint)
        return -1;
    text_copy(checkpoint, length + 1, name);
    return files_step(checkpoint);
}

static int add_step(void *ctx, const char *part, struct error *err)
{
    struct steps *s = ctx;
    int64_t step = step_around(part);
    if (step < 0)
        return 0;
    if (s->count == s->room) {
        int room = s->room ? 2 * s->room : 64;
        int64_t *grown = realloc(s->step, (size_t)room * sizeof *grown);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        s->step = grown;
        s->room = room;
    }
    s->step[s->count++] = step;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

int files_steps(struct object_store *store, int64_t **ret, int *ret_count, struct error *err)
{
    struct steps found = {0};
    if (object_list_folders(store, "", add_step, &found, err) < 0) {
        free(found.step);
        return err_wrap(err, "checkpoints");
    }
    if (found.count)
        qsort(found.step, (size_t)found.count, sizeof *found.step, newest_first);
    *ret = found.step;
    *ret_count = found.count;
    return 0;
}

/* --- small files --- */

int files_put(struct object_store *store, const char *name, const struct str *text, enum object_mode mode,
              struct error *err)
{
    struct object_body body = {.runs = 1, .run = {{str_text(text), text->length}}};
    return object_put(store, name, &body, mode, err);
}

/* --- looking twice --- */

static int not_to_be_trusted(struct error *err, const struct error *why)
{
    err_set(err, ERR_MACHINE,
            "%.300s; read again, it said something else each time: this machine's memory or disk, or its way "
            "to the store, changes bytes",
            why->text);
    return err_class(err, CLASS_MACHINE);
}

int files_look(struct object_store *store, int (*look)(void *ctx, struct error *err), void *ctx,
               struct error *err)
{
    struct error why = {0};
    int result = -1;
    bool proven = false, past = object_passes_caches(store);
    for (int i = 0; i < FILES_LOOKS && result < 0 && !proven; i++) {
        struct error before = why;
        why = (struct error){0};
        object_pass_caches(store, past || i > 0);
        result = look(ctx, &why);
        if (result < 0 && why.code != ERR_DATA)
            break;
        proven = result < 0 && i > 1 && !strcmp(why.text, before.text);
    }
    object_pass_caches(store, past);
    if (result == 0)
        return 0;
    if (why.code == ERR_DATA && !proven)
        return not_to_be_trusted(err, &why);
    if (proven)
        err_class(&why, CLASS_OBJECT);
    return err_from(err, &why, "%s", why.text);
}

struct search {
    const char *name;
    bool found;
};

static int compare_name(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct search *s = ctx;
    (void)err;
    s->found = s->found || !strcmp(entry->name, s->name);
    return 0;
}

/* 1: the listing of its folder shows it; 0; -1. */
static int is_listed(struct object_store *store, const char *checkpoint, const char *name, struct error *err)
{
    char prefix[CHECKPOINT_NAME_MAX + 1];
    struct search search = {.name = name};
    snprintf(prefix, sizeof prefix, "%s/", checkpoint);
    if (object_list(store, prefix, compare_name, &search, err) < 0)
        return -1;
    return search.found;
}

static int listed_only(struct object_store *store, const char *name, struct error *err)
{
    err_set(err, ERR_MACHINE, "%s/%s: its folder lists it, but it can't be opened", object_uri(store), name);
    return err_class(err, CLASS_PASSING);
}

int files_head(struct object_store *store, const char *checkpoint, const char *file, struct object_info *ret,
               struct error *err)
{
    char name[FILES_NAME_MAX];
    struct error why = {0};
    files_object(name, checkpoint, file);
    if (object_head(store, name, ret, &why) == 0)
        return 0;
    if (why.code != ERR_NOT_FOUND)
        return err_from(err, &why, "%s", why.text);
    int listed = is_listed(store, checkpoint, name, err);
    if (listed)
        return listed < 0 ? -1 : listed_only(store, name, err);
    return err_set(err, ERR_DATA, "it is missing: its folder does not list it");
}

/* --- the manifest --- */

struct manifest_look {
    struct object_store *store;
    const char *checkpoint;
    struct manifest *ret;
};

/* One that does not fit says of what content it was: two looks that found other bytes do not say the same. */
static int name_content(const struct str *text, struct error *err)
{
    uint8_t hash[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    struct error why = *err;
    if (why.code != ERR_DATA)
        return -1;
    sha256_once(str_text(text), text->length, hash);
    hex_encode(hash, RM_HASH_BYTES, hex);
    return err_from(err, &why, "%s (found: %zu bytes with SHA-256 %.16s)", why.text, text->length, hex);
}

static int look_at_manifest(void *ctx, struct error *err)
{
    const struct manifest_look *l = ctx;
    char name[FILES_NAME_MAX];
    struct str text = str_init(MANIFEST_TEXT_MAX);
    struct error why = {0};
    files_object(name, l->checkpoint, MANIFEST_NAME);
    int result = object_get(l->store, name, MANIFEST_TEXT_MAX, &text, &why);
    bool came = result == 0;
    if (came)
        result = manifest_read(l->ret, str_text(&text), text.length, MANIFEST_NAME, &why);
    int64_t step = files_step(l->checkpoint);
    if (result == 0 && step >= 0 && step != l->ret->step)
        result = err_set(&why, ERR_DATA, "%s: it is of step %lld", MANIFEST_NAME, (long long)l->ret->step);
    if (result < 0 && came)
        name_content(&text, &why);
    if (result < 0 && why.code == ERR_USAGE)
        err_class(&why, came ? CLASS_SOFTWARE : why.class);
    str_clear(&text);
    return result < 0 ? err_from(err, &why, "%s", why.text) : 0;
}

int files_manifest(struct object_store *store, const char *checkpoint, struct manifest *ret,
                   struct error *err)
{
    struct manifest_look look = {store, checkpoint, ret};
    struct error why = {0};
    char name[FILES_NAME_MAX];
    files_object(name, checkpoint, MANIFEST_NAME);
    if (files_look(store, look_at_manifest, &look, &why) == 0)
        return 0;
    /* a folder on a network may remember for a while that there was no such file; a bucket does not */
    int listed =
        why.code == ERR_NOT_FOUND && object_is_local(store) ? is_listed(store, checkpoint, name, err) : 0;
    if (listed < 0)
        return -1;
    if (listed && files_look(store, look_at_manifest, &look, &why) == 0)
        return 0;
    if (listed && why.code == ERR_NOT_FOUND)
        return listed_only(store, name, err);
    return err_from(err, &why, "%s", why.text);
}

/* --- removing --- */

static bool starts(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

static bool ends(const char *text, const char *with)
{
    size_t length = strlen(text), tail = strlen(with);
    return length >= tail && !strcmp(text + length - tail, with);
}

/* The names that the store itself gives in a checkpoint folder (".part" and ".tmp": once gave). */
static bool is_ours(const char *name)
{
    if (!strcmp(name, MANIFEST_NAME) || !strcmp(name, DAMAGED_NAME) || !strcmp(name, "config.json") ||
        !strcmp(name, "model.safetensors") || !strcmp(name, MODEL_CARD_NAME) || folder_text_is_optional(name))
        return true;
    if (starts(name, "optimizer-"))
        return ends(name, ".safetensors") || ends(name, ".sums") || ends(name, ".upload") ||
               ends(name, ".part");
    if (starts(name, "model.safetensors."))
        return ends(name, ".upload") || ends(name, ".part");
    return (starts(name, "manifest.json.") || starts(name, "config.json.")) && ends(name, ".tmp");
}

static bool is_named(const struct manifest *manifest, const char *name)
{
    for (int i = 0; i < manifest->pieces; i++)
        if (!strcmp(manifest->piece[i].file, name))
            return true;
    return !strcmp(name, MANIFEST_NAME) || !strcmp(name, MODEL_CARD_NAME);
}

struct removal {
    size_t folder; /* characters of "step-00000200/" */
    const struct manifest *stays;
    bool finished; /* a manifest is there */
    char (*name)[FILES_NAME_MAX];
    int count, room;
};

static int note_one(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct removal *r = ctx;
    const char *file = entry->name + r->folder;
    if (strchr(file, '/') || strlen(entry->name) >= FILES_NAME_MAX || !is_ours(file))
        return 0;
    r->finished = r->finished || !strcmp(file, MANIFEST_NAME) || !strcmp(file, DAMAGED_NAME);
    if (r->stays && is_named(r->stays, file))
        return 0;
    if (r->count == r->room) {
        int room = r->room ? 2 * r->room : 16;
        void *grown = realloc(r->name, (size_t)room * sizeof *r->name);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        r->name = grown;
        r->room = room;
    }
    text_copy(r->name[r->count++], FILES_NAME_MAX, entry->name);
    return 0;
}

static int note_all(struct object_store *store, const char *checkpoint, struct removal *r, struct error *err)
{
    char prefix[CHECKPOINT_NAME_MAX + 1];
    snprintf(prefix, sizeof prefix, "%s/", checkpoint);
    r->folder = strlen(prefix);
    return object_list(store, prefix, note_one, r, err);
}

/* Without its manifest it is no checkpoint, whatever happens to the rest. */
static int remove_manifest(struct object_store *store, const struct removal *r, struct error *err)
{
    for (int i = 0; i < r->count; i++) {
        const char *name = r->name[i];
        if (!strcmp(name + r->folder, MANIFEST_NAME))
            return object_delete(store, &name, 1, err);
    }
    return 0;
}

static int remove_noted(struct object_store *store, const char *checkpoint, const struct removal *r,
                        struct error *err)
{
    char prefix[CHECKPOINT_NAME_MAX + 1];
    const char **name = calloc((size_t)r->count + 1, sizeof *name);
    int aborted;
    if (!name)
        return err_set(err, ERR_MACHINE, "out of memory");
    for (int i = 0; i < r->count; i++)
        name[i] = r->name[i];
    int result = remove_manifest(store, r, err);
    if (result == 0 && r->count)
        result = object_delete(store, name, r->count, err);
    free(name);
    snprintf(prefix, sizeof prefix, "%s/", checkpoint);
    return result < 0 ? -1 : object_uploads_collect(store, prefix, NULL, NULL, &aborted, err);
}

int files_remove(struct object_store *store, const char *checkpoint, const struct manifest *stays,
                 int *ret_removed, struct error *err)
{
    struct removal r = {.stays = stays};
    int result = note_all(store, checkpoint, &r, err);
    if (result == 0)
        result = remove_noted(store, checkpoint, &r, err);
    if (ret_removed)
        *ret_removed = r.count;
    free(r.name);
    return result < 0 ? err_wrap(err, "checkpoint %s", checkpoint) : 0;
}

static int collect_one(struct object_store *store, const char *checkpoint)
{
    struct removal r = {0};
    bool removed = note_all(store, checkpoint, &r, NULL) == 0 && !r.finished &&
                   remove_noted(store, checkpoint, &r, NULL) == 0;
    free(r.name);
    return removed ? r.count : 0;
}

static bool is_older(void *ctx, const char *name)
{
    const int64_t *step = ctx;
    int64_t its = step_around(name);
    return its >= 0 && its < *step;
}

/* Whoever died as soon as it had begun an upload left no object by which its checkpoint would be found. */
static void collect_uploads(struct object_store *store, int64_t step)
{
    int aborted;
    object_uploads_collect(store, "step-", is_older, &step, &aborted, NULL);
}

int files_collect(struct object_store *store, int64_t step)
{
    int64_t *steps;
    int count, removed = 0;
    collect_uploads(store, step);
    if (files_steps(store, &steps, &count, NULL) < 0)
        return 0;
    for (int i = 0; i < count; i++) {
        char name[CHECKPOINT_NAME_MAX];
        checkpoint_name(name, steps[i], false);
        if (steps[i] < step)
            removed += collect_one(store, name);
    }
    free(steps);
    return removed;
}
