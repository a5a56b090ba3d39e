/* Copies a checkpoint's model to another place, checked against its hashes, with the card and the texts
 * beside it. */
#include <stdlib.h>
#include <string.h>

#include "common/model/image.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/folder_texts.h"
#include "common/storage/checkpoint/verify.h"

/* Of 16 MiB each, 10000 parts hold 156 GiB; a larger file gets larger ones. */
static const int64_t part_least = INT64_C(16) << 20;

static const char model_name[] = "model.safetensors";

/* One object that comes into being from bytes in order. */
struct copy {
    struct object_store *target;
    char id[OBJECT_UPLOAD_MAX];
    char *buffer; /* (room) */
    int64_t room, filled, sent;
    struct object_part part[OBJECT_PARTS_MAX];
    int parts;
};

static int send_part(struct copy *c, struct error *err)
{
    struct object_part *part = &c->part[c->parts++];
    *part = (struct object_part){
        .number = c->parts, .offset = c->sent, .body = {.runs = 1, .run = {{c->buffer, (size_t)c->filled}}}};
    c->sent += c->filled;
    c->filled = 0;
    return object_upload_parts(c->target, model_name, c->id, part, 1, err);
}

static int take_bytes(void *ctx, const void *bytes, int64_t count, struct error *err)
{
    struct copy *c = ctx;
    const char *from = bytes;
    while (count > 0) {
        int64_t here = c->room - c->filled < count ? c->room - c->filled : count;
        memcpy(c->buffer + c->filled, from, (size_t)here);
        c->filled += here;
        from += here;
        count -= here;
        if (c->filled == c->room && send_part(c, err) < 0)
            return -1;
    }
    return 0;
}

static int64_t bytes_of(const struct manifest *m, int first)
{
    const struct manifest_piece *last = &m->piece[verify_next_file(m, first) - 1];
    return last->offset + last->bytes;
}

static int first_of(const struct manifest *m, const char *file)
{
    int i = 0;
    while (i < m->pieces && strcmp(m->piece[i].file, file) != 0)
        i++;
    return i;
}

static int copy_checked(struct copy *c, struct verify_file *file, struct error *err)
{
    uint8_t weights[RM_HASH_BYTES];
    file->copy = take_bytes;
    file->ctx = c;
    if (verify_file(file, weights, err) < 0 || (c->filled && send_part(c, err) < 0))
        return -1;
    return object_upload_complete(c->target, model_name, c->id, c->part, c->parts, OBJECT_CREATE, err);
}

static int copy_model(struct verify_file *file, struct object_store *target, struct error *err)
{
    struct copy *c = calloc(1, sizeof *c);
    file->first = first_of(file->manifest, model_name);
    int64_t each = bytes_of(file->manifest, file->first) / (OBJECT_PARTS_MAX - 1) + 1;
    int64_t room = each < part_least ? part_least : each;
    char *buffer = c ? malloc((size_t)room) : NULL;
    int result = buffer ? 0 : err_set(err, ERR_MACHINE, "out of memory");
    if (buffer) {
        c->target = target;
        c->buffer = buffer;
        c->room = room;
        result = object_upload_open(target, model_name, c->id, err);
    }
    if (result == 0 && copy_checked(c, file, err) < 0) {
        object_upload_abort(target, model_name, c->id, NULL);
        result = -1;
    }
    free(buffer);
    free(c);
    return result;
}

static int take_text(void *ctx, const void *bytes, int64_t count, struct error *err)
{
    (void)err;
    str_add(ctx, bytes, (size_t)count);
    return 0;
}

static bool is_text(const char *name)
{
    return !strcmp(name, "config.json") || folder_text_is_optional(name);
}

/* 1: it is there with this very content; 0: it is not there. */
static int lies_there(struct object_store *target, const char *name, const struct str *text,
                      struct error *err)
{
    struct str found = str_init(MANIFEST_TOKENIZER_MAX);
    struct error why = {0};
    int result = object_get(target, name, MANIFEST_TOKENIZER_MAX, &found, &why);
    bool same = result == 0 && found.length == text->length &&
                !memcmp(str_text(&found), str_text(text), text->length);
    str_clear(&found);
    if (same)
        return 1;
    if (result == 0 || why.code == ERR_DATA) /* too long to be this one */
        return err_set(err, ERR_EXISTS, "%s holds another %s already; move it away, or name another place",
                       object_uri(target), name);
    return why.code == ERR_NOT_FOUND ? 0 : err_from(err, &why, "%s", why.text);
}

/* write: else it is only looked whether it may be. What is read is checked each time. */
static int copy_text(struct verify_file *file, int first, struct object_store *target, bool write,
                     struct error *err)
{
    const char *name = file->manifest->piece[first].file;
    struct str text = str_init(MANIFEST_TOKENIZER_MAX);
    file->first = first;
    file->copy = take_text;
    file->ctx = &text;
    int result = verify_file(file, NULL, err);
    int there = result == 0 ? lies_there(target, name, &text, err) : -1;
    if (there == 0 && write)
        there = files_put(target, name, &text, OBJECT_CREATE, err);
    str_clear(&text);
    return there < 0 ? -1 : 0;
}

/* All that is small and no state: config.json, and what says what tokens mean. */
static int copy_texts(struct verify_file *file, struct object_store *target, bool write, struct error *err)
{
    const struct manifest *m = file->manifest;
    for (int i = 0; i < m->pieces; i = verify_next_file(m, i))
        if (is_text(m->piece[i].file) && copy_text(file, i, target, write, err) < 0)
            return -1;
    return 0;
}

/* Only the last checkpoint has what says what tokens mean. Of a model of text it is the same for each. */
static int make_texts(const struct verify_file *file, struct object_store *target, bool write,
                      struct error *err)
{
    const struct manifest *m = file->manifest;
    struct folder_texts texts;
    int result = 0;
    for (int i = 0; i < m->pieces; i = verify_next_file(m, i))
        if (folder_text_is_optional(m->piece[i].file))
            return 0;
    folder_texts_init(&texts, m, true, NULL);
    for (int i = 0; result == 0 && i < texts.count; i++) {
        const struct folder_text *t = &texts.text[i];
        int there = folder_text_is_optional(t->name) ? lies_there(target, t->name, &t->text, err) : 1;
        if (there == 0 && write)
            there = files_put(target, t->name, &t->text, OBJECT_CREATE, err);
        result = there < 0 ? -1 : 0;
    }
    folder_texts_clear(&texts);
    return result;
}

/* The card is copied as it lies there, if it does: no hash is known of it. What somebody wrote in that place
 * himself stays. */
static int copy_card(const struct verify_file *file, struct object_store *target, struct error *err)
{
    char name[FILES_NAME_MAX];
    struct str text = str_init(MODEL_CARD_MAX);
    struct error why = {0};
    int result = 0;
    files_object(name, file->checkpoint, MODEL_CARD_NAME);
    if (object_get(file->store, name, MODEL_CARD_MAX, &text, NULL) == 0 &&
        files_put(target, MODEL_CARD_NAME, &text, OBJECT_CREATE, &why) < 0 && why.code != ERR_EXISTS)
        result = err_from(err, &why, "%s", why.text);
    str_clear(&text);
    return result;
}

static int export_all(struct verify_file *file, struct object_store *target, struct error *err)
{
    struct object_info info;
    struct error why = {0};
    if (object_head(target, model_name, &info, &why) == 0)
        return err_set(err, ERR_EXISTS, "%s holds a model already; name another place", object_uri(target));
    if (why.code != ERR_NOT_FOUND)
        return err_from(err, &why, "%s", why.text);
    /* all are looked at before one is written */
    if (copy_texts(file, target, false, err) < 0 || make_texts(file, target, false, err) < 0 ||
        copy_texts(file, target, true, err) < 0 || make_texts(file, target, true, err) < 0 ||
        copy_card(file, target, err) < 0)
        return -1;
    return copy_model(file, target, err);
}

int checkpoint_export(struct object_store *store, const char *name, struct object_store *target,
                      struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    struct model_layout *layout = malloc(sizeof *layout);
    int result = m && layout ? checkpoint_manifest(store, name, m, err)
                             : err_set(err, ERR_MACHINE, "checkpoint: out of memory");
    if (result == 0) {
        image_or_model_layout(layout, &m->shape);
        struct verify_file file = {.store = store, .checkpoint = name, .manifest = m, .layout = layout};
        result = export_all(&file, target, err);
    }
    free(layout);
    free(m);
    return result;
}
