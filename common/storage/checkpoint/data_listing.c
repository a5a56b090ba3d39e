#include "common/storage/checkpoint/data_listing.h"

#include <string.h>

#include "common/os/crypto.h"

static int visit(void *ctx, const struct object_entry *entry, struct error *err)
{
    return listing_add(ctx, entry->name, entry->info.bytes, entry->info.tag, err);
}

int data_listing_scan(struct object_store *data, struct listing *ret, struct error *err)
{
    *ret = (struct listing){0};
    if (object_list(data, "", visit, ret, err) < 0)
        return err_wrap(err, "data");
    return 0;
}

int data_listing_keep(struct object_store *checkpoints, const struct listing *listing,
                      uint8_t ret_sha256[RM_HASH_BYTES], struct error *err)
{
    struct str text = str_init(LISTING_TEXT_MAX);
    char name[LISTING_OBJECT_MAX];
    struct error why = {0};
    int status = listing_write(listing, &text, &why);
    if (status == 0) {
        sha256_once(text.data, text.length, ret_sha256);
        listing_object_name(ret_sha256, name);
        struct object_body body = {.runs = 1, .sha256 = ret_sha256};
        body.run[0].bytes = text.data;
        body.run[0].count = text.length;
        status = object_put(checkpoints, name, &body, OBJECT_CREATE, &why);
    }
    str_clear(&text);
    if (status == 0 || why.code == ERR_EXISTS)
        return 0;
    return err_from(err, &why, "keep the data's listing: %.400s", why.text);
}

static int check_listing(const struct str *text, const char *name, const uint8_t sha256[RM_HASH_BYTES],
                         struct listing *ret, struct error *err)
{
    uint8_t hash[RM_HASH_BYTES];
    sha256_once(str_text(text), text->length, hash);
    if (memcmp(hash, sha256, sizeof hash) != 0)
        return err_set(err, ERR_DATA, "%s: the data's listing is damaged", name);
    return listing_read(ret, str_text(text), text->length, name, err);
}

int data_listing_fetch(struct object_store *checkpoints, const uint8_t sha256[RM_HASH_BYTES],
                       struct listing *ret, struct str *ret_text, struct error *err)
{
    struct str own = str_init(LISTING_TEXT_MAX), *text = ret_text ? ret_text : &own;
    char name[LISTING_OBJECT_MAX];
    *ret = (struct listing){0};
    str_reset(text);
    listing_object_name(sha256, name);
    int status = object_get(checkpoints, name, LISTING_TEXT_MAX, text, err);
    if (status == 0)
        status = check_listing(text, name, sha256, ret, err);
    str_clear(&own);
    return status;
}

/* --- removing --- */

enum { OTHERS_MAX = 256 }; /* of one job: one each time that its data were somewhere else */

struct others {
    char name[OTHERS_MAX][LISTING_OBJECT_MAX];
    int count;
    const char *but;
};

static bool is_listing(const char *name)
{
    uint8_t hash[8];
    char hex[17];
    size_t digits = sizeof hex - 1, stem = strlen("data-");
    if (strlen(name) != stem + digits + strlen(".json") || strncmp(name, "data-", stem) != 0)
        return false;
    text_copy(hex, sizeof hex, name + stem);
    return hex_decode(hex, hash, sizeof hash) && !strcmp(name + stem + digits, ".json");
}

static int note_listing(void *ctx, const struct object_entry *entry, struct error *err)
{
    struct others *o = ctx;
    (void)err;
    if (o->count < OTHERS_MAX && is_listing(entry->name) && strcmp(entry->name, o->but) != 0)
        text_copy(o->name[o->count++], LISTING_OBJECT_MAX, entry->name);
    return 0;
}

int data_listing_remove(struct object_store *checkpoints, const uint8_t *but_sha256, struct error *err)
{
    char but[LISTING_OBJECT_MAX] = "";
    const char *names[OTHERS_MAX];
    struct others others = {.but = but};
    if (but_sha256)
        listing_object_name(but_sha256, but);
    if (object_list(checkpoints, "data-", note_listing, &others, err) < 0)
        return -1;
    for (int i = 0; i < others.count; i++)
        names[i] = others.name[i];
    return others.count ? object_delete(checkpoints, names, others.count, err) : 0;
}
