/* Writes one slice of a checkpoint: its part of the model and of the optimizer, in pieces that are hashed on
 * the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/model/arrays.h"
#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/piece_hash.h"
#include "common/storage/checkpoint/safetensors.h"
#include "common/storage/checkpoint/standing.h"
#include "common/storage/checkpoint/sums.h"
#include "common/storage/checkpoint/upload.h"
#include "common/storage/checkpoint/verify.h"

/* One slice being written. */
struct writer {
    const struct checkpoint_slice *slice;
    char name[CHECKPOINT_NAME_MAX];
    bool anew;        /* what is there already may be damaged */
    struct str *sums; /* of what has been written (sums.h) */
};

/* What is told of a content: its sums, and its hash as a piece. */
struct telling {
    enum manifest_hash hash;
    int64_t bytes, heard;        /* how many of them were taken so far */
    struct piece_stream *stream; /* of what was taken; NULL: nothing, all, or it was read before */
    bool known;
    uint8_t (*sum)[RM_HASH_BYTES];
    uint8_t piece[RM_HASH_BYTES];
};

static void begin_anew(struct telling *t)
{
    piece_stream_free(t->stream);
    t->stream = piece_stream_open(t->bytes, t->hash);
    if (t->stream) /* else there is no memory for it, and the bytes are read for it once they are written */
        piece_stream_keep(t->stream, t->sum);
    t->heard = 0;
    t->known = false;
}

static void taken(void *ctx, int64_t at, const void *bytes, size_t count)
{
    struct telling *t = ctx;
    if (at == 0)
        begin_anew(t);
    if (!t->stream)
        return;
    RM_ASSERT(at == t->heard, "byte %lld was taken behind byte %lld", (long long)at, (long long)t->heard);
    piece_stream_add(t->stream, bytes, (int64_t)count);
    t->heard += (int64_t)count;
    if (t->heard < t->bytes)
        return;
    piece_stream_finish(t->stream, t->piece);
    t->stream = NULL;
    t->known = true;
}

static void read_for_sums(struct telling *t, const struct upload_content *content)
{
    piece_hash_body(t->hash, &content->body, content->bytes, t->sum, t->piece);
    t->known = true;
}

/* A folder takes all bytes in order, so they are hashed as they are taken. Not with SHA-256: two chunks side
 * by side cost less than reading them twice. false: no memory. */
static bool telling_begin(struct telling *t, struct upload_content *content, enum manifest_hash hash)
{
    *t = (struct telling){.hash = hash, .bytes = content->bytes};
    t->sum = calloc((size_t)piece_chunks(content->bytes, PIECE_CHUNK), RM_HASH_BYTES);
    if (!t->sum)
        return false;
    content->sha256 = t->piece;
    content->chunk_sha256 = hash == MANIFEST_SHA256 ? t->sum : NULL;
    if (hash != MANIFEST_XXH3 || !object_is_local(content->store)) {
        read_for_sums(t, content);
        return true;
    }
    content->body.taken = taken;
    content->body.ctx = t;
    return true;
}

static void telling_end(struct telling *t)
{
    piece_stream_free(t->stream);
    free(t->sum);
}

static void name_piece(struct checkpoint_pieces *ret, const struct upload_content *content,
                       const uint8_t *sha256)
{
    struct manifest_piece *piece = &ret->piece[ret->count++];
    *piece = (struct manifest_piece){.offset = content->offset, .bytes = content->bytes};
    text_copy(piece->file, sizeof piece->file, content->upload.file);
    memcpy(piece->sha256, sha256, RM_HASH_BYTES);
}

static struct upload_content content_of(const struct writer *w, const char *file)
{
    const struct checkpoint_slice *s = w->slice;
    return (struct upload_content){.store = s->store, .upload = {w->name, file, s->lineage, s->parts, 0}};
}

/* What has the lineage in its name and the right size was written by an earlier try: objects appear whole.
 * But not where a reader found damage. */
static bool is_there(const struct writer *w, const struct upload_content *content, const char *name)
{
    struct object_info info;
    char damaged[FILES_NAME_MAX];
    files_object(damaged, content->upload.checkpoint, DAMAGED_NAME);
    return !w->anew && object_head(content->store, name, &info, NULL) == 0 && info.bytes == content->bytes &&
           object_head(content->store, damaged, &info, NULL) < 0;
}

/* Alone in its file, a piece of one chunk is sent at once; a larger one in parts, so that a second try sends
 * only what is missing and many connections share the work. */
static int send_alone(const struct writer *w, struct upload_content *content, struct error *err)
{
    char name[FILES_NAME_MAX];
    bool one = piece_chunks(content->bytes, PIECE_CHUNK) == 1;
    files_object(name, content->upload.checkpoint, content->upload.file);
    if (is_there(w, content, name))
        return 0;
    content->body.sha256 = one && content->chunk_sha256 ? content->sha256 : NULL;
    if (object_is_local(content->store) || one) {
        int64_t before = object_unproven(content->store);
        int result = object_put(content->store, name, &content->body, OBJECT_REPLACE, err);
        content->arrived = result == 0 && object_unproven(content->store) == before;
        return result;
    }
    content->number = 1;
    content->numbers = OBJECT_PARTS_MAX;
    if (upload_send(content, err) < 0)
        return -1;
    return upload_finish(content->store, &content->upload, content->bytes, OBJECT_REPLACE, err);
}

/* Sends it, and names it as a piece. */
static int send_told(const struct writer *w, struct upload_content *content, bool alone,
                     struct checkpoint_pieces *ret, struct error *err)
{
    struct telling t;
    int result = telling_begin(&t, content, w->slice->hash) ? 0 : err_set(err, ERR_MACHINE, "out of memory");
    if (result == 0)
        result = alone ? send_alone(w, content, err) : upload_send(content, err);
    if (result == 0 && !t.known) /* it was there already, and nobody had to take it */
        read_for_sums(&t, content);
    if (result == 0) {
        name_piece(ret, content, t.piece);
        sums_add(w->sums, t.hash, &ret->piece[ret->count - 1], content->arrived,
                 (const uint8_t(*)[RM_HASH_BYTES])t.sum);
    }
    telling_end(&t);
    content->body.taken = NULL;
    content->body.ctx = NULL;
    content->sha256 = content->body.sha256 = NULL;
    content->chunk_sha256 = NULL;
    return result;
}

static void add_run(struct upload_content *content, const void *bytes, int64_t count)
{
    struct object_body *body = &content->body;
    body->run[body->runs].bytes = bytes;
    body->run[body->runs++].count = (size_t)count;
    content->bytes += count;
}

/* Several writers, one object: each sends its own parts, and the publisher puts them together. */
static int write_model(const struct writer *w, struct checkpoint_pieces *ret, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    struct model_range range = model_weights_part(s->layout->parameters, s->part, s->parts);
    if (!range.count)
        return 0;
    struct upload_content content = content_of(w, "model.safetensors");
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_model_header(s->layout, &header);
    if (s->part)
        content.offset = (int64_t)header.length + 4 * range.first;
    else if (header.length)
        add_run(&content, header.data, (int64_t)header.length);
    add_run(&content, s->state + range.first, 4 * range.count);
    content.number = 1 + s->part * (OBJECT_PARTS_MAX / s->parts);
    content.numbers = OBJECT_PARTS_MAX / s->parts;
    int result = send_told(w, &content, false, ret, err);
    str_clear(&header);
    return result;
}

static int write_optimizer(const struct writer *w, struct checkpoint_pieces *ret, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    int64_t parameters = s->layout->parameters;
    struct safetensors_slice part = {model_optimizer_part(s->layout, s->part, s->parts), s->part, s->parts};
    char file[MANIFEST_FILE_MAX];
    manifest_optimizer_name(file, s->part, s->parts, s->lineage);
    struct upload_content content = content_of(w, file);
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_optimizer_header(&part, &header);
    add_run(&content, header.data, (int64_t)header.length);
    for (int i = 1; i < MODEL_ARRAYS; i++)
        add_run(&content, s->state + i * parameters + part.range.first, 4 * part.range.count);
    int result = send_told(w, &content, true, ret, err);
    str_clear(&header);
    return result;
}

/* It says that it is finished; what counts is what it holds. Seldom asked: a run that saves a step which is
 * saved already has gone back behind it, and mostly because it could not be read. 1: sound, 0: damaged. */
static int is_sound(const struct writer *w, const struct manifest *found, struct error *err)
{
    struct error why = {0};
    if (verify_all(w->slice->store, w->name, found, NULL, &why) == 0)
        return 1;
    return why.code == ERR_DATA ? 0 : err_from(err, &why, "%s", why.text);
}

/* 1: the store holds this very checkpoint, finished; 0: it is to be written; -1: it holds another. */
static int finished_already(struct writer *w, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    struct error why = {0};
    struct manifest *found = malloc(sizeof *found);
    if (!found)
        return err_set(err, ERR_MACHINE, "out of memory");
    int result = files_manifest(s->store, w->name, found, &why), sound = 0;
    bool same = result == 0 && found->step == s->step && !memcmp(found->lineage, s->lineage, RM_HASH_BYTES);
    if (same)
        sound = is_sound(w, found, err);
    free(found);
    if (result == 0 && !same)
        return err_set(err, ERR_EXISTS,
                       "a checkpoint of another history is there already; use --overwrite or another folder");
    if (result < 0 && why.code != ERR_NOT_FOUND && why.code != ERR_DATA)
        return err_from(err, &why, "%s", why.text);
    w->anew = sound == 0 && why.code != ERR_NOT_FOUND;
    return sound;
}

/* Before the pieces are told: who publishes them looks for it. */
static int write_sums(const struct writer *w, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    char name[FILES_NAME_MAX];
    sums_name(name, w->name, s->lineage, s->part, s->parts);
    if (files_put(s->store, name, w->sums, OBJECT_REPLACE, err) < 0)
        return -1;
    FAULT("sums-written");
    return 0;
}

static int write_pieces(struct writer *w, struct checkpoint_pieces *ret, struct error *err)
{
    struct str sums = str_init(SUMS_TEXT_MAX);
    w->sums = &sums;
    int result = write_model(w, ret, err);
    if (result == 0) {
        FAULT("slice-written");
        result = write_optimizer(w, ret, err);
    }
    if (result == 0)
        result = write_sums(w, err);
    str_clear(&sums);
    w->sums = NULL;
    return result;
}

static int write_slice(const struct checkpoint_slice *s, struct checkpoint_pieces *ret, struct error *err)
{
    struct writer w = {.slice = s};
    *ret = (struct checkpoint_pieces){0};
    checkpoint_name(w.name, s->step, s->final);
    if (s->run && owner_check(s->store, s->run, err) < 0)
        return -1;
    int result = finished_already(&w, err);
    ret->damaged = w.anew;
    if (result == 0)
        result = write_pieces(&w, ret, err);
    return result < 0 ? err_wrap(err, "checkpoint %s of %s", w.name, object_uri(s->store)) : 0;
}

/* What earlier checkpoints left unfinished may be what fills the disk, or older ones that nobody has had the
 * time to remove. */
static bool make_room(const struct checkpoint_slice *s)
{
    struct checkpoint_settling settling = {.store = s->store, .run = s->run, .keep = s->keep};
    bool collected = files_collect(s->store, s->step) > 0;
    settling.step = s->keep ? standing_before(s->store, s->step) : 0;
    return (settling.step && checkpoint_settle(&settling, NULL) > 0) || collected;
}

int checkpoint_write_slice(const struct checkpoint_slice *slice, struct checkpoint_pieces *ret,
                           struct error *err)
{
    struct checkpoint_pieces pieces;
    struct error why = {0};
    int result = write_slice(slice, &pieces, &why);
    if (result < 0 && why.code == ERR_MACHINE && make_room(slice))
        result = write_slice(slice, &pieces, &why);
    if (result < 0)
        return err_from(err, &why, "%s", why.text);
    *ret = pieces;
    return 0;
}
