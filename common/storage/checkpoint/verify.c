/* Reads a checkpoint's files and holds each piece to its hash in the manifest. */
#include "common/storage/checkpoint/verify.h"
#include "common/model/arrays.h"
#include "common/model/image.h"

#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/pages.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/image.h"
#include "common/storage/checkpoint/piece_hash.h"
#include "common/storage/checkpoint/safetensors.h"

enum { PAGE = 4096 }; /* what lies so can be read to past this machine's memory without a copy */

/* A file being read in order, with the running hash of the piece under way. */
struct stream {
    const struct verify_file *file;
    char name[FILES_NAME_MAX];
    char tag[OBJECT_TAG_MAX];  /* of the content: it must not change on the way */
    int piece, end;            /* in the manifest's list: the current one, and one past the file's last */
    int64_t at;                /* bytes read so far */
    struct piece_stream *hash; /* of the current piece */
    int64_t chunk;             /* its first one, counted over the file */
    struct sha256 *weights;    /* of the data section; NULL while it is not wanted */
    int64_t room;
    char *scratch; /* (room) */
};

int verify_next_file(const struct manifest *m, int i)
{
    int next = i + 1;
    while (next < m->pieces && !strcmp(m->piece[next].file, m->piece[i].file))
        next++;
    return next;
}

static int begin_piece(struct stream *s, struct error *err)
{
    const struct manifest *m = s->file->manifest;
    s->hash = piece_stream_open(m->piece[s->piece].bytes, m->hash);
    if (!s->hash)
        return err_set(err, ERR_MACHINE, "out of memory");
    if (s->file->sum)
        piece_stream_keep(s->hash, s->file->sum + s->chunk);
    s->chunk += piece_chunks(m->piece[s->piece].bytes, piece_chunk(m->hash));
    return 0;
}

int verify_damaged(const struct manifest_piece *piece, const uint8_t found[RM_HASH_BYTES], struct error *err)
{
    char expected_hex[RM_HASH_HEX], found_hex[RM_HASH_HEX];
    hex_encode(piece->sha256, RM_HASH_BYTES, expected_hex);
    hex_encode(found, RM_HASH_BYTES, found_hex);
    return err_set(
        err, ERR_DATA,
        "its content is damaged: bytes %lld to %lld have the hash %.16s..., and not %.16s... as the "
        "manifest says",
        (long long)piece->offset, (long long)(piece->offset + piece->bytes - 1), found_hex, expected_hex);
}

static int finish_piece(struct stream *s, struct error *err)
{
    const struct manifest_piece *piece = &s->file->manifest->piece[s->piece];
    uint8_t hash[RM_HASH_BYTES];
    piece_stream_finish(s->hash, hash);
    s->hash = NULL;
    if (++s->piece < s->end && begin_piece(s, err) < 0)
        return -1;
    if (!crypto_equal(hash, piece->sha256, RM_HASH_BYTES))
        return verify_damaged(piece, hash, err);
    return 0;
}

/* Bytes of the current piece that are still to come. */
static int64_t left_of_piece(const struct stream *s)
{
    const struct manifest_piece *piece = &s->file->manifest->piece[s->piece];
    return piece->offset + piece->bytes - s->at;
}

static bool by_little(const struct stream *s)
{
    return s->file->manifest->hash == MANIFEST_XXH3 && object_is_local(s->file->store);
}

static int64_t step_most(const struct stream *s)
{
    return by_little(s) ? PIECE_IN_CACHE : PIECE_WANTS_MOST;
}

/* How many of the next `most` bytes are read at once: what the hash likes best. But a bucket is asked for
 * much, which many connections share. */
static int64_t step_of(const struct stream *s, int64_t most)
{
    bool much = s->file->manifest->hash == MANIFEST_XXH3 && !object_is_local(s->file->store);
    int64_t left = left_of_piece(s), step = much ? step_most(s) : piece_stream_wants(s->hash);
    step = step < s->room ? step : s->room;
    int64_t over = (s->at + step) % PIECE_IN_CACHE; /* the next one begins where a disk's blocks do */
    step -= by_little(s) && step > over ? over : 0;
    step = step < left ? step : left;
    return step < most ? step : most;
}

/* The next count bytes of the file, to out unless that is NULL. */
static int next_bytes(struct stream *s, void *out, int64_t count, struct error *err)
{
    char *to = out;
    while (count > 0) {
        int64_t here = step_of(s, count);
        char *into = to ? to : s->scratch;
        struct object_range range = {
            .name = s->name, .offset = s->at, .bytes = here, .into = into, .tag = s->tag};
        if (object_read(s->file->store, &range, 1, err) < 0)
            return -1;
        piece_stream_add(s->hash, into, here);
        if (s->weights)
            sha256_add(s->weights, into, (size_t)here);
        if (s->file->copy && s->file->copy(s->file->ctx, into, here, err) < 0)
            return -1;
        s->at += here;
        count -= here;
        to = to ? to + here : NULL;
        if (left_of_piece(s) == 0 && finish_piece(s, err) < 0)
            return -1;
    }
    return 0;
}

static int expect_header(struct stream *s, const struct str *header, struct error *err)
{
    char *found = malloc(header->length + 1);
    if (!found)
        return err_set(err, ERR_MACHINE, "out of memory");
    int result = next_bytes(s, found, (int64_t)header->length, err);
    if (result == 0 && header->length && memcmp(found, header->data, header->length) != 0)
        result = err_set(err, ERR_DATA, "its header is not that of this model and part");
    free(found);
    return result;
}

/* Up to that byte of the file; counted as weights or not. */
static int go_to(struct stream *s, int64_t end, bool weights, struct error *err)
{
    struct sha256 *h = s->weights;
    char *to = s->file->state ? (char *)s->file->state + s->at : NULL;
    s->weights = weights ? h : NULL;
    int result = next_bytes(s, to, end - s->at, err);
    s->weights = h;
    return result;
}

/* The parts of an image that are its weights, from the file's start on; where it can't be read as one, all of
 * it. *ret: for free(). What was read of it for that lies in `head`. */
static int find_weights(struct stream *s, struct str *head, struct image_part **ret, int *ret_parts,
                        struct error *err)
{
    int64_t bytes = image_bytes(&s->file->layout->shape), length;
    char *header = malloc(IMAGE_LENGTH + IMAGE_HEADER_MAX);
    if (!header || !(*ret = calloc(1, sizeof **ret))) {
        free(header);
        return err_set(err, ERR_MACHINE, "out of memory");
    }
    **ret = (struct image_part){0, bytes};
    *ret_parts = 1;
    int result = next_bytes(s, header, IMAGE_LENGTH, err);
    length = image_header_length(header, bytes);
    if (result == 0 && length > 0)
        result = next_bytes(s, header + IMAGE_LENGTH, length, err);
    str_add(head, header, (size_t)s->at);
    struct image_part *part;
    if (result == 0 && length > 0 &&
        image_weights(header + IMAGE_LENGTH, (size_t)length, bytes - s->at, &part, ret_parts, NULL) == 0) {
        for (int i = 0; i < *ret_parts; i++)
            part[i] = (struct image_part){part[i].begin + s->at, part[i].end + s->at};
        free(*ret);
        *ret = part;
    }
    free(header);
    return result;
}

/* Its weightsSha256 is that of its weights alone. */
static int read_image(struct stream *s, uint8_t *weights_sha256, struct error *err)
{
    struct str head = str_init(IMAGE_LENGTH + IMAGE_HEADER_MAX);
    struct image_part *part = NULL;
    int parts = 0, result = find_weights(s, &head, &part, &parts, err);
    if (result == 0 && s->file->state)
        memcpy(s->file->state, head.data, head.length);
    s->weights = weights_sha256 ? sha256_open() : NULL;
    if (result == 0 && s->weights && parts && !part[0].begin)
        sha256_add(s->weights, head.data, head.length);
    for (int i = 0; result == 0 && i < parts; i++)
        if ((part[i].begin > s->at && go_to(s, part[i].begin, false, err) < 0) ||
            go_to(s, part[i].end, true, err) < 0)
            result = -1;
    if (result == 0)
        result = go_to(s, image_bytes(&s->file->layout->shape), false, err);
    if (result == 0 && s->weights) {
        sha256_finish(s->weights, weights_sha256);
        s->weights = NULL;
    }
    free(part);
    str_clear(&head);
    return result;
}

static int read_model(struct stream *s, uint8_t *weights_sha256, struct error *err)
{
    const struct model_layout *layout = s->file->layout;
    if (image_bytes(&layout->shape))
        return read_image(s, weights_sha256, err);
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_model_header(layout, &header);
    int result = expect_header(s, &header, err);
    str_clear(&header);
    if (result < 0)
        return -1;
    s->weights = weights_sha256 ? sha256_open() : NULL;
    if (next_bytes(s, s->file->state, 4 * layout->parameters, err) < 0)
        return -1;
    if (s->weights)
        sha256_finish(s->weights, weights_sha256);
    s->weights = NULL;
    return 0;
}

static int read_optimizer(struct stream *s, int part, int parts, struct error *err)
{
    const struct model_layout *layout = s->file->layout;
    struct safetensors_slice slice = {model_optimizer_part(layout, part, parts), part, parts};
    struct str header = str_init(SAFETENSORS_HEADER_MAX);
    safetensors_optimizer_header(&slice, &header);
    int result = expect_header(s, &header, err);
    str_clear(&header);
    for (int i = 1; result == 0 && i < MODEL_ARRAYS; i++) {
        float *array = s->file->state ? s->file->state + i * layout->parameters + slice.range.first : NULL;
        result = next_bytes(s, array, 4 * slice.range.count, err);
    }
    return result;
}

static int read_content(struct stream *s, uint8_t *weights_sha256, struct error *err)
{
    const struct manifest *m = s->file->manifest;
    const struct manifest_piece *last = &m->piece[s->end - 1];
    const char *name = last->file;
    if (!strcmp(name, "model.safetensors"))
        return read_model(s, weights_sha256, err);
    if (!strncmp(name, "optimizer-", 10))
        return read_optimizer(s, (int)strtol(name + 10, NULL, 10) - 1, manifest_parts(m), err);
    return next_bytes(s, NULL, last->offset + last->bytes, err);
}

static int open_stream(struct stream *s, struct error *err)
{
    const struct manifest_piece *last = &s->file->manifest->piece[s->end - 1];
    int64_t bytes = last->offset + last->bytes;
    struct object_info info;
    files_object(s->name, s->file->checkpoint, last->file);
    if (files_head(s->file->store, s->file->checkpoint, last->file, &info, err) < 0)
        return -1;
    if (info.bytes != bytes)
        return err_set(err, ERR_DATA, "it has %lld bytes instead of %lld", (long long)info.bytes,
                       (long long)bytes);
    text_copy(s->tag, sizeof s->tag, info.tag);
    s->room = step_most(s) < bytes ? step_most(s) : bytes;
    s->scratch = by_little(s) ? aligned_alloc(PAGE, PIECE_IN_CACHE) : pages_alloc((size_t)s->room);
    return s->scratch ? begin_piece(s, err) : err_set(err, ERR_MACHINE, "out of memory");
}

struct verify_look {
    const struct verify_file *file;
    uint8_t *weights_sha256;
};

static int verify_once(void *ctx, struct error *err)
{
    const struct verify_look *l = ctx;
    const struct verify_file *file = l->file;
    struct stream s = {
        .file = file, .piece = file->first, .end = verify_next_file(file->manifest, file->first)};
    int result = open_stream(&s, err);
    if (result == 0)
        result = read_content(&s, l->weights_sha256, err);
    piece_stream_free(s.hash);
    sha256_free(s.weights);
    free(s.scratch);
    return result < 0 ? err_wrap(err, "%s", file->manifest->piece[file->first].file) : 0;
}

int verify_file(const struct verify_file *file, uint8_t *weights_sha256, struct error *err)
{
    struct verify_look look = {file, weights_sha256};
    if (file->copy) /* who gets the bytes can't take them back */
        return verify_once(&look, err);
    return files_look(file->store, verify_once, &look, err);
}

static int verify_each(const struct verify_file *common, struct error *err)
{
    const struct manifest *m = common->manifest;
    uint8_t weights[RM_HASH_BYTES] = {0};
    for (int i = 0; i < m->pieces; i = verify_next_file(m, i)) {
        struct verify_file file = *common;
        file.first = i;
        if (verify_file(&file, m->has_weights ? weights : NULL, err) < 0)
            return -1;
        FAULT("file-verified");
    }
    if (m->has_weights && !crypto_equal(weights, m->weights_sha256, RM_HASH_BYTES))
        return err_set(err, ERR_DATA, "model.safetensors: its data don't have the manifest's weightsSha256");
    return 0;
}

int verify_all(struct object_store *store, const char *checkpoint, const struct manifest *manifest,
               float *state, struct error *err)
{
    struct model_layout *layout = malloc(sizeof *layout);
    if (!layout)
        return err_set(err, ERR_MACHINE, "out of memory");
    image_or_model_layout(layout, &manifest->shape);
    struct verify_file common = {
        .store = store, .checkpoint = checkpoint, .manifest = manifest, .layout = layout, .state = state};
    int result = verify_each(&common, err);
    free(layout);
    return result;
}
