/* Writes one slice of a checkpoint: its part of the model and of the optimizer, in pieces that are hashed on
 * the way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/model/arrays.h"
#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/piece_hash.h"
#include "common/storage/checkpoint/safetensors.h"
#include "common/storage/checkpoint/upload.h"
#include "common/storage/checkpoint/verify.h"

/* One slice being written. */
struct writer {
    const struct checkpoint_slice *slice;
    char name[CHECKPOINT_NAME_MAX];
    bool anew; /* what is there already may be damaged */
};

/* What is told of the content: once read, for the manifest and for sending. false: no memory. */
static bool hash_content(struct upload_content *content, uint8_t sha256[RM_HASH_BYTES])
{
    content->chunk_sha256 = malloc((size_t)piece_chunks(content->bytes, PIECE_CHUNK) * RM_HASH_BYTES);
    if (!content->chunk_sha256)
        return false;
    piece_hash_body(&content->body, content->bytes, content->chunk_sha256, sha256);
    content->sha256 = sha256;
    return true;
}

static void add_run(struct upload_content *content, const void *bytes, int64_t count)
{
    struct object_body *body = &content->body;
    body->run[body->runs].bytes = bytes;
    body->run[body->runs++].count = (size_t)count;
    content->bytes += count;
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

/* Several writers, one object: each sends its own parts, and the publisher puts them together. */
static int write_model(const struct writer *w, struct checkpoint_pieces *ret, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    struct model_range range = model_weights_part(s->layout->parameters, s->part, s->parts);
    uint8_t sha256[RM_HASH_BYTES];
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
    int result = hash_content(&content, sha256) ? upload_send(&content, err)
                                                : err_set(err, ERR_MACHINE, "out of memory");
    free(content.chunk_sha256);
    str_clear(&header);
    if (result == 0)
        name_piece(ret, &content, sha256);
    return result;
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
    content->body.sha256 = one ? content->sha256 : NULL;
    if (object_is_local(content->store) || one)
        return object_put(content->store, name, &content->body, OBJECT_REPLACE, err);
    content->number = 1;
    content->numbers = OBJECT_PARTS_MAX;
    if (upload_send(content, err) < 0)
        return -1;
    return upload_finish(content->store, &content->upload, content->bytes, OBJECT_REPLACE, err);
}

static int write_optimizer(const struct writer *w, struct checkpoint_pieces *ret, struct error *err)
{
    const struct checkpoint_slice *s = w->slice;
    int64_t parameters = s->layout->parameters;
    struct safetensors_slice part = {model_optimizer_part(s->layout, s->part, s->parts), s->part, s->parts};
    char file[MANIFEST_FILE_MAX];
    uint8_t sha256[RM_HASH_BYTES];
    manifest_optimizer_name(file, s->part, s->parts, s->lineage);
    struct upload_content content = content_of(w, file);
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_optimizer_header(&part, &header);
    add_run(&content, header.data, (int64_t)header.length);
    for (int i = 1; i < MODEL_ARRAYS; i++)
        add_run(&content, s->state + i * parameters + part.range.first, 4 * part.range.count);
    int result = hash_content(&content, sha256) ? send_alone(w, &content, err)
                                                : err_set(err, ERR_MACHINE, "out of memory");
    free(content.chunk_sha256);
    str_clear(&header);
    if (result == 0)
        name_piece(ret, &content, sha256);
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
        result = write_model(&w, ret, err);
    if (result == 0) {
        FAULT("slice-written");
        result = write_optimizer(&w, ret, err);
    }
    return result < 0 ? err_wrap(err, "checkpoint %s of %s", w.name, object_uri(s->store)) : 0;
}

int checkpoint_write_slice(const struct checkpoint_slice *slice, struct checkpoint_pieces *ret,
                           struct error *err)
{
    struct checkpoint_pieces pieces;
    struct error why = {0};
    int result = write_slice(slice, &pieces, &why);
    /* What earlier checkpoints left unfinished may be what fills the disk. */
    if (result < 0 && why.code == ERR_MACHINE && files_collect(slice->store, slice->step) > 0)
        result = write_slice(slice, &pieces, &why);
    if (result < 0)
        return err_from(err, &why, "%s", why.text);
    *ret = pieces;
    return 0;
}
