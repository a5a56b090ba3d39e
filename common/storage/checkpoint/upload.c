/* Opens an upload that several writers share without speaking to each other, and completes it once all parts
 * are there. */
#include "common/storage/checkpoint/upload.h"

#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/storage/checkpoint/piece_hash.h"

enum {
    ATTEMPTS_MAX = 64,
    TRIES_MAX = 4, /* of one sending, where uploads end under it */
    AGREE_TRIES = 8,
    ID_TEXT_MAX = OBJECT_UPLOAD_MAX + RM_HASH_HEX,
};

struct parts {
    struct object_part *part;
    int count, room;
    int64_t bytes;
};

static int note_part(void *ctx, const struct object_part_info *info, struct error *err)
{
    struct parts *p = ctx;
    if (p->count == p->room) {
        int room = p->room ? 2 * p->room : 64;
        struct object_part *grown = realloc(p->part, (size_t)room * sizeof *grown);
        if (!grown)
            return err_set(err, ERR_MACHINE, "out of memory");
        p->part = grown;
        p->room = room;
    }
    struct object_part *part = &p->part[p->count++];
    *part = (struct object_part){.number = info->number, .body.runs = 1};
    part->body.run[0].count = (size_t)info->bytes;
    text_copy(part->tag, sizeof part->tag, info->tag);
    p->bytes += info->bytes;
    return 0;
}

static int list_parts(struct object_store *store, const struct files_upload *upload, const char *id,
                      struct parts *ret, struct error *err)
{
    char name[FILES_NAME_MAX];
    files_object(name, upload->checkpoint, upload->file);
    return object_upload_list(store, name, id, note_part, ret, err);
}

/* --- agreeing on an upload --- */

/* The id and its hash: an id with a flipped bit is one of no upload, which would look like one that is over.
 */
static void write_id(const char *id, struct str *out)
{
    uint8_t hash[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    sha256_once(id, strlen(id), hash);
    hex_encode(hash, sizeof hash, hex);
    str_addf(out, "%s %s", hex, id);
}

static int read_id_once(struct object_store *store, const char *name, char id[OBJECT_UPLOAD_MAX],
                        struct error *err)
{
    struct str text = str_init(ID_TEXT_MAX), right = str_init(ID_TEXT_MAX);
    int result = object_get(store, name, ID_TEXT_MAX, &text, err);
    if (result == 0) {
        bool whole = text.length >= RM_HASH_HEX;
        text_copy(id, OBJECT_UPLOAD_MAX, whole ? str_text(&text) + RM_HASH_HEX : "");
        write_id(id, &right);
        if (!whole || strcmp(str_text(&text), str_text(&right)) != 0)
            result = err_set(err, ERR_DATA, "%s: it is damaged", name);
    }
    str_clear(&text);
    str_clear(&right);
    return result;
}

/* The id that is kept for this attempt. */
static int read_id(struct object_store *store, const struct files_upload *upload, char id[OBJECT_UPLOAD_MAX],
                   struct error *err)
{
    char name[FILES_NAME_MAX];
    struct error why = {0};
    files_upload_name(name, upload);
    for (int i = 0; i < FILES_LOOKS; i++) {
        if (read_id_once(store, name, id, &why) == 0)
            return 0;
        if (why.code != ERR_DATA)
            break;
    }
    return err_from(err, &why, "%s", why.text);
}

/* 1: begun by us; 0: somebody else was quicker. */
static int begin_upload(struct object_store *store, const struct files_upload *upload,
                        char id[OBJECT_UPLOAD_MAX], struct error *err)
{
    char name[FILES_NAME_MAX], kept[FILES_NAME_MAX];
    struct error why = {0};
    files_object(name, upload->checkpoint, upload->file);
    files_upload_name(kept, upload);
    if (object_upload_open(store, name, id, err) < 0)
        return -1;
    FAULT("upload-begun");
    struct str text = str_init(ID_TEXT_MAX);
    write_id(id, &text);
    int result = files_put(store, kept, &text, OBJECT_CREATE, &why);
    str_clear(&text);
    if (result == 0)
        return 1;
    object_upload_abort(store, name, id, NULL);
    return why.code == ERR_EXISTS ? 0 : err_from(err, &why, "%s", why.text);
}

/* 1: `there` holds what the upload has; 0: it is over, or not begun; -1. */
static int look_at_upload(struct object_store *store, const struct files_upload *upload,
                          char id[OBJECT_UPLOAD_MAX], struct parts *there, bool *ret_begun, struct error *err)
{
    struct error why = {0};
    *ret_begun = read_id(store, upload, id, &why) == 0;
    if (*ret_begun && list_parts(store, upload, id, there, &why) == 0)
        return 1;
    return why.code == ERR_NOT_FOUND ? 0 : err_from(err, &why, "%s", why.text);
}

/* The upload under way, or a new one. */
static int agree(struct upload_content *content, char id[OBJECT_UPLOAD_MAX], struct parts *there,
                 struct error *err)
{
    struct files_upload *upload = &content->upload;
    int lost = 0;
    for (upload->attempt = 0; upload->attempt < ATTEMPTS_MAX && lost < AGREE_TRIES;) {
        bool begun;
        int found = look_at_upload(content->store, upload, id, there, &begun, err);
        if (found)
            return found < 0 ? -1 : 0;
        if (begun) {
            upload->attempt++;
            continue;
        }
        int ours = begin_upload(content->store, upload, id, err);
        if (ours)
            return ours < 0 ? -1 : 0;
        lost++;
    }
    return err_set(err, ERR_MACHINE, "%s: no upload can be agreed on", upload->file);
}

/* --- sending --- */

/* A folder takes it in one piece: there is nothing to share out. Otherwise parts are chunks, but where there
 * are more of those than numbers. */
static int parts_of(const struct upload_content *content)
{
    int64_t chunks = piece_chunks(content->bytes, PIECE_CHUNK);
    if (object_is_local(content->store))
        return 1;
    return chunks < content->numbers ? (int)chunks : content->numbers;
}

static void describe_part(const struct upload_content *content, int i, int parts, struct object_part *ret)
{
    bool chunks = parts == piece_chunks(content->bytes, PIECE_CHUNK);
    struct model_range range = model_part(content->bytes, i, parts);
    if (chunks)
        range =
            (struct model_range){(int64_t)i * PIECE_CHUNK, piece_chunk_bytes(content->bytes, PIECE_CHUNK, i)};
    *ret = (struct object_part){.number = content->number + i, .offset = content->offset + range.first};
    ret->body = piece_cut(&content->body, range.first, range.count);
    ret->body.sha256 = chunks && content->chunk_sha256 ? content->chunk_sha256[i] : NULL;
    ret->label = parts == 1 ? content->sha256 : NULL;
}

static int64_t bytes_of(const struct object_body *body)
{
    int64_t bytes = 0;
    for (int i = 0; i < body->runs; i++)
        bytes += (int64_t)body->run[i].count;
    return bytes;
}

static bool has_part(const struct parts *there, const struct object_part *part)
{
    for (int i = 0; i < there->count; i++)
        if (there->part[i].number == part->number)
            return bytes_of(&there->part[i].body) == bytes_of(&part->body);
    return false;
}

static int send_missing(struct upload_content *content, const char *id, const struct parts *there,
                        struct error *err)
{
    char name[FILES_NAME_MAX];
    int parts = parts_of(content), missing = 0;
    struct object_part *part = calloc((size_t)parts, sizeof *part);
    if (!part)
        return err_set(err, ERR_MACHINE, "out of memory");
    for (int i = 0; i < parts; i++) {
        describe_part(content, i, parts, &part[missing]);
        missing += !has_part(there, &part[missing]);
    }
    files_object(name, content->upload.checkpoint, content->upload.file);
    int64_t before = object_unproven(content->store);
    int result = missing ? object_upload_parts(content->store, name, id, part, missing, err) : 0;
    free(part);
    content->arrived = result == 0 && missing == parts && object_unproven(content->store) == before;
    return result;
}

int upload_send(struct upload_content *content, struct error *err)
{
    struct error why = {0};
    for (int i = 0; i < TRIES_MAX; i++) {
        char id[OBJECT_UPLOAD_MAX];
        struct parts there = {0};
        int result = agree(content, id, &there, &why);
        bool agreed = result == 0;
        if (agreed)
            result = send_missing(content, id, &there, &why);
        free(there.part);
        if (result == 0)
            return 0;
        if (!agreed || why.code != ERR_NOT_FOUND) /* else it has ended meanwhile: the next one */
            break;
    }
    return err_from(err, &why, "%s", why.text);
}

/* --- finishing --- */

static int finish_parts(struct object_store *store, const struct files_upload *upload, const char *id,
                        const struct parts *there, enum object_mode mode, struct error *err)
{
    char name[FILES_NAME_MAX];
    files_object(name, upload->checkpoint, upload->file);
    return object_upload_complete(store, name, id, there->part, there->count, mode, err);
}

int upload_finish(struct object_store *store, const struct files_upload *asked, int64_t bytes,
                  enum object_mode mode, struct error *err)
{
    struct files_upload upload = *asked;
    for (upload.attempt = 0; upload.attempt < ATTEMPTS_MAX; upload.attempt++) {
        char id[OBJECT_UPLOAD_MAX];
        struct parts there = {0};
        bool begun;
        int result = look_at_upload(store, &upload, id, &there, &begun, err);
        if (result > 0 && there.bytes != bytes)
            result = err_set(err, ERR_DATA, "%s: %lld bytes of %lld are there", upload.file,
                             (long long)there.bytes, (long long)bytes);
        if (result > 0)
            result = finish_parts(store, &upload, id, &there, mode, err) < 0 ? -1 : 1;
        free(there.part);
        if (result)
            return result < 0 ? -1 : 0;
        if (!begun)
            break;
    }
    return err_set(err, ERR_NOT_FOUND, "%s: no upload of it is under way", upload.file);
}
