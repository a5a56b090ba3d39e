/* Finds, removes and reads frozen processes by their names. */
#include "common/storage/checkpoint/frozen_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/piece_hash.h"

static const char folder_start[] = "process-", object_start[] = "image-";

void frozen_name(char out[CHECKPOINT_NAME_MAX], int64_t number)
{
    snprintf(out, CHECKPOINT_NAME_MAX, "%s%08lld", folder_start, (long long)number);
}

int64_t frozen_number(const char *name)
{
    char again[CHECKPOINT_NAME_MAX];
    if (strncmp(name, folder_start, sizeof folder_start - 1) != 0 || strlen(name) >= sizeof again)
        return -1;
    long long number = strtoll(name + sizeof folder_start - 1, NULL, 10);
    if (number < 0)
        return -1;
    frozen_name(again, number);
    return strcmp(again, name) ? -1 : (int64_t)number;
}

/* --- finding --- */

struct frozen_numbers {
    int64_t *number;
    int count, room;
};

static int add_number(void *ctx, const char *part, struct error *err)
{
    struct frozen_numbers *n = ctx;
    char name[CHECKPOINT_NAME_MAX];
    size_t length = strcspn(part, "/");
    if (!part[length] || length >= sizeof name)
        return 0;
    text_copy(name, length + 1, part);
    int64_t number = frozen_number(name);
    if (number < 0)
        return 0;
    if (n->count == n->room) {
        int room = n->room ? 2 * n->room : 64;
        int64_t *grown = realloc(n->number, (size_t)room * sizeof *grown);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        n->number = grown;
        n->room = room;
    }
    n->number[n->count++] = number;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x < y) - (x > y);
}

int frozen_files_numbers(struct object_store *store, int64_t **ret, int *ret_count, struct error *err)
{
    struct frozen_numbers found = {0};
    if (object_list_folders(store, "", add_number, &found, err) < 0) {
        free(found.number);
        return err_wrap(err, "snapshots");
    }
    if (found.count)
        qsort(found.number, (size_t)found.count, sizeof *found.number, newest_first);
    *ret = found.number;
    *ret_count = found.count;
    return 0;
}

/* --- removing --- */

struct frozen_objects {
    size_t folder; /* characters of "process-00000012/" */
    bool finished;
    char (*name)[FILES_NAME_MAX];
    int count, room;
};

static int note_object(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct frozen_objects *o = ctx;
    const char *file = entry->name + o->folder;
    bool manifest = !strcmp(file, MANIFEST_NAME);
    if (strchr(file, '/') || strlen(entry->name) >= FILES_NAME_MAX ||
        (!manifest && strncmp(file, object_start, sizeof object_start - 1) != 0))
        return 0;
    o->finished = o->finished || manifest;
    if (o->count == o->room) {
        int room = o->room ? 2 * o->room : 4;
        void *grown = realloc(o->name, (size_t)room * sizeof *o->name);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        o->name = grown;
        o->room = room;
    }
    text_copy(o->name[o->count++], FILES_NAME_MAX, entry->name);
    return 0;
}

static int note_objects(struct object_store *store, const char *name, struct frozen_objects *o,
                        struct error *err)
{
    char prefix[CHECKPOINT_NAME_MAX + 1];
    snprintf(prefix, sizeof prefix, "%s/", name);
    o->folder = strlen(prefix);
    return object_list(store, prefix, note_object, o, err);
}

/* The manifest before all others: without it nobody takes what is left. */
static int remove_objects(struct object_store *store, const char *name, const struct frozen_objects *o,
                          struct error *err)
{
    char prefix[CHECKPOINT_NAME_MAX + 1];
    int aborted;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < o->count; i++) {
            const char *object = o->name[i];
            bool manifest = !strcmp(object + o->folder, MANIFEST_NAME);
            if (manifest == (pass == 0) && object_delete(store, &object, 1, err) < 0)
                return -1;
        }
    snprintf(prefix, sizeof prefix, "%s/", name);
    return object_uploads_collect(store, prefix, NULL, NULL, &aborted, err);
}

int frozen_files_remove(struct object_store *store, const char *name, struct error *err)
{
    struct frozen_objects o = {0};
    int result = note_objects(store, name, &o, err);
    if (result == 0)
        result = remove_objects(store, name, &o, err);
    free(o.name);
    return result < 0 ? err_wrap(err, "snapshot %s", name) : 0;
}

void frozen_files_collect(struct object_store *store, int64_t number)
{
    int64_t *numbers;
    int count;
    if (frozen_files_numbers(store, &numbers, &count, NULL) < 0)
        return;
    for (int i = 0; i < count; i++) {
        struct frozen_objects o = {0};
        char name[CHECKPOINT_NAME_MAX];
        frozen_name(name, numbers[i]);
        if (numbers[i] < number && note_objects(store, name, &o, NULL) == 0 && !o.finished)
            remove_objects(store, name, &o, NULL);
        free(o.name);
    }
    free(numbers);
}

/* --- the manifest --- */

struct frozen_look {
    struct object_store *store;
    const char *name;
    struct frozen_manifest *ret;
};

static int look_at_manifest(void *ctx, struct error *err)
{
    const struct frozen_look *l = ctx;
    char object[FILES_NAME_MAX];
    struct str text = str_init(FROZEN_TEXT_MAX);
    files_object(object, l->name, MANIFEST_NAME);
    int result = object_get(l->store, object, FROZEN_TEXT_MAX, &text, err);
    if (result == 0)
        result = frozen_manifest_read(l->ret, str_text(&text), text.length, MANIFEST_NAME, err);
    str_clear(&text);
    if (result == 0 && l->ret->number != frozen_number(l->name))
        return err_set(err, ERR_DATA, "%s: it is of number %lld", MANIFEST_NAME, (long long)l->ret->number);
    return result;
}

int frozen_manifest(struct object_store *store, const char *name, struct frozen_manifest *ret,
                    struct error *err)
{
    struct frozen_look look = {store, name, ret};
    return files_look(store, look_at_manifest, &look, err);
}

/* --- the pieces --- */

void *frozen_files_memory(const struct frozen_manifest *m, struct error *err)
{
    size_t bytes =
        (size_t)(m->bytes < FROZEN_AT_ONCE * m->piece_bytes ? m->bytes : FROZEN_AT_ONCE * m->piece_bytes);
    void *memory = malloc(bytes);
    if (!memory)
        err_set(err, ERR_MACHINE, "no memory for %zu bytes of a snapshot", bytes);
    return memory;
}

struct piece_look {
    struct object_store *store;
    const char *name;
    const struct frozen_manifest *m;
    int first, count;
    char *into;
};

static int read_pieces(const struct piece_look *l, struct error *err)
{
    char object[FILES_NAME_MAX];
    struct object_range range[FROZEN_AT_ONCE];
    files_object(object, l->name, l->m->object);
    for (int i = 0; i < l->count; i++)
        range[i] = (struct object_range){.name = object,
                                         .offset = (l->first + i) * l->m->piece_bytes,
                                         .bytes = frozen_piece_length(l->m, l->first + i),
                                         .into = l->into + i * l->m->piece_bytes};
    if (object_read(l->store, range, l->count, err) == 0)
        return 0;
    if (err->code == ERR_NOT_FOUND)
        return err_set(err, ERR_DATA, "%s is missing", l->m->object);
    return -1;
}

static int check_piece(const struct piece_look *l, int i, struct error *err)
{
    int64_t bytes = frozen_piece_length(l->m, l->first + i), chunk = piece_chunk(MANIFEST_SHA256);
    uint8_t(*sums)[RM_HASH_BYTES] = calloc((size_t)piece_chunks(bytes, chunk), sizeof *sums);
    uint8_t found[RM_HASH_BYTES];
    struct object_body body = {.runs = 1, .run = {{l->into + i * l->m->piece_bytes, (size_t)bytes}}};
    if (!sums)
        return err_set(err, ERR_MACHINE, "out of memory");
    piece_hash_body(MANIFEST_SHA256, &body, bytes, sums, found);
    free(sums);
    if (!memcmp(found, l->m->piece_sha256[l->first + i], RM_HASH_BYTES))
        return 0;
    char hex[RM_HASH_HEX];
    hex_encode(found, RM_HASH_BYTES, hex);
    return err_set(err, ERR_DATA, "piece %d of %d of %s is damaged (found: SHA-256 %.16s)", l->first + i + 1,
                   l->m->pieces, l->m->object, hex);
}

static int look_at_pieces(void *ctx, struct error *err)
{
    const struct piece_look *l = ctx;
    if (read_pieces(l, err) < 0)
        return -1;
    for (int i = 0; i < l->count; i++)
        if (check_piece(l, i, err) < 0)
            return -1;
    return 0;
}

int frozen_files_read(struct object_store *store, const char *name, const struct frozen_manifest *m,
                      int first, int count, void *into, struct error *err)
{
    struct piece_look look = {store, name, m, first, count, into};
    struct error why = {0};
    if (files_look(store, look_at_pieces, &look, &why) == 0)
        return 0;
    return err_from(err, &why, "snapshot %s: %s", name, why.text);
}
