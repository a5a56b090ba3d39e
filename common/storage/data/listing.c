#include "common/storage/data/listing.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"

enum { FORMAT_VERSION = 1, FILES_MAX = 1 << 22, NAME_BYTES_MAX = 1024 };

#define SIZE_MAX_BYTES ((int64_t)1 << 50)

static bool is_hidden(const char *name)
{
    return name[0] == '.' || strstr(name, "/.");
}

static int grow(struct listing *l, struct error *err)
{
    int64_t room = l->room ? 2 * l->room : 64;
    if (l->count == FILES_MAX)
        return err_set(err, ERR_DATA, "more than %d files", FILES_MAX);
    struct listing_file *grown = realloc(l->file, (size_t)room * sizeof *grown);
    if (!grown)
        return err_set(err, ERR_MACHINE, "out of memory after %lld files", (long long)l->count);
    l->file = grown;
    l->room = room;
    return 0;
}

int listing_add(struct listing *l, const char *name, int64_t bytes, const char *tag, struct error *err)
{
    if (is_hidden(name))
        return 0;
    if (l->count && strcmp(l->file[l->count - 1].name, name) >= 0)
        return err_set(err, ERR_DATA, "%.200s: names are out of order", name);
    if (bytes < 0 || bytes > SIZE_MAX_BYTES - l->bytes)
        return err_set(err, ERR_DATA, "%.200s: with it the files have more bytes than can be", name);
    if (l->count == l->room && grow(l, err) < 0)
        return -1;
    struct listing_file *file = &l->file[l->count];
    *file = (struct listing_file){.name = strdup(name), .bytes = bytes};
    if (!file->name)
        return err_set(err, ERR_MACHINE, "out of memory after %lld files", (long long)l->count);
    l->count++;
    l->bytes += bytes;
    if (!text_copy(file->tag, sizeof file->tag, tag))
        return err_set(err, ERR_DATA, "%.200s: the store's tag for it is too long", name);
    return 0;
}

void listing_clear(struct listing *l)
{
    for (int64_t i = 0; i < l->count; i++)
        free(l->file[i].name);
    free(l->file);
    *l = (struct listing){0};
}

int64_t listing_bytes(const struct listing *l)
{
    return l->bytes;
}

static struct js *file_value(const struct listing_file *file)
{
    struct js *value = js_object(), *name = js_new_string(file->name);
    js_set(value, "name", name);
    if (strcmp(js_as_string(name), file->name) != 0) { /* no UTF-8: it would come back as another name */
        js_free(value);
        return NULL;
    }
    js_set_int(value, "bytes", file->bytes);
    js_set_int(value, "skip", file->skip);
    js_set_string(value, "tag", file->tag);
    return value;
}

int listing_write(const struct listing *l, struct str *out, struct error *err)
{
    struct js *root = js_object(), *files = js_array();
    int status = 0;
    for (int64_t i = 0; i < l->count && status == 0; i++) {
        struct js *value = file_value(&l->file[i]);
        if (value)
            js_push(files, value);
        else
            status = err_set(err, ERR_DATA, "%.200s: the name is no UTF-8", l->file[i].name);
    }
    js_set_int(root, "version", FORMAT_VERSION);
    js_set_int(root, "width", l->width);
    js_set(root, "files", files);
    if (status == 0)
        js_print_canonical(root, out);
    js_free(root);
    if (status == 0 && out->truncated)
        return err_set(err, ERR_DATA, "%lld files are too many to list", (long long)l->count);
    return status;
}

static int read_entry(struct listing *l, const struct js *value, struct error *err)
{
    char name[NAME_BYTES_MAX], tag[LISTING_TAG_MAX];
    int64_t bytes, skip, before = l->count;
    if (js_need_string(value, "name", name, sizeof name, err) < 0 ||
        js_need_int(value, "bytes", 0, SIZE_MAX_BYTES, &bytes, err) < 0 ||
        js_need_int(value, "skip", 0, bytes, &skip, err) < 0 ||
        js_need_string(value, "tag", tag, sizeof tag, err) < 0 || listing_add(l, name, bytes, tag, err) < 0)
        return -1;
    if (l->count == before)
        return err_set(err, ERR_DATA, "%.200s: such names are never listed", name);
    l->file[before].skip = skip;
    return 0;
}

static int read_root(struct listing *l, const struct js *root, struct error *err)
{
    int64_t version, width;
    const struct js *files;
    if (js_need_int(root, "version", 1, INT32_MAX, &version, err) < 0)
        return -1;
    if (version != FORMAT_VERSION)
        return err_set(err, ERR_DATA, "it has version %lld; only %d is known", (long long)version,
                       FORMAT_VERSION);
    if (js_need_int(root, "width", 1, 4, &width, err) < 0 ||
        js_need(root, "files", JS_ARRAY, &files, err) < 0)
        return -1;
    if (width == 3)
        return err_set(err, ERR_DATA, "tokens have 1, 2 or 4 bytes, not 3");
    l->width = (int)width;
    for (size_t i = 0; i < js_size(files); i++)
        if (read_entry(l, js_at(files, i), err) < 0)
            return -1;
    return 0;
}

int listing_read(struct listing *ret, const char *text, size_t length, const char *what, struct error *err)
{
    struct error why = {0};
    *ret = (struct listing){0};
    struct js *root = js_parse(text, length, "listing", &why);
    int status = root ? read_root(ret, root, &why) : -1;
    js_free(root);
    return status < 0 ? err_set(err, ERR_DATA, "%s: %.300s", what, why.text) : 0;
}

void listing_object_name(const uint8_t sha256[RM_HASH_BYTES], char out[LISTING_OBJECT_MAX])
{
    char hex[RM_HASH_HEX];
    hex_encode(sha256, RM_HASH_BYTES, hex);
    snprintf(out, LISTING_OBJECT_MAX, "data-%.16s.json", hex);
}

int listing_compare(const struct listing *kept, const struct listing *now, struct error *err)
{
    int64_t j = 0;
    for (int64_t i = 0; i < kept->count; i++) {
        const struct listing_file *then = &kept->file[i];
        while (j < now->count && strcmp(now->file[j].name, then->name) < 0)
            j++;
        if (j == now->count || strcmp(now->file[j].name, then->name) != 0)
            return err_set(err, ERR_DATA, "%.300s: the file is gone", then->name);
        if (now->file[j].bytes != then->bytes)
            return err_set(err, ERR_DATA, "%.200s: the file has changed: %lld bytes then, %lld now",
                           then->name, (long long)then->bytes, (long long)now->file[j].bytes);
        if (strcmp(now->file[j].tag, then->tag) != 0)
            return err_set(err, ERR_DATA, "%.300s: the file has changed: another content of the same size",
                           then->name);
    }
    return 0;
}
