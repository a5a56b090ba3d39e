/* Reads and writes manifest.json, and holds it to what a manifest must be. */
#include "common/storage/checkpoint/manifest.h"
#include "common/model/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/folder_texts.h"
#include "common/wire/json.h"

#define CREATED_BY "ringmaster 0.1"

enum {
    KEYS = 15,         /* of the top object, before version 4 */
    HASH_IS_NAMED = 4, /* since this version */
    PIECE_KEYS = 3,
    FILE_KEYS = 3,
};

static const int64_t most = INT64_C(1) << 60; /* of a count or size; far above anything real */

/* --- writing --- */

static void set_hash(struct js *object, const char *key, const uint8_t *hash)
{
    char text[RM_HASH_HEX];
    hex_encode(hash, RM_HASH_BYTES, text);
    js_set_string(object, key, text);
}

static struct js *shape_json(const struct model_shape *shape)
{
    struct js *object = js_object();
    if (image_bytes(shape)) {
        js_set_int(object, "image", image_bytes(shape));
        return object;
    }
    js_set_int(object, "layers", shape->layers);
    js_set_int(object, "heads", shape->heads);
    js_set_int(object, "width", shape->width);
    js_set_int(object, "context", shape->context);
    js_set_int(object, "vocabulary", shape->vocabulary);
    return object;
}

static struct js *data_json(const struct manifest *m)
{
    struct js *object = js_object();
    js_set_int(object, "files", m->data.files);
    js_set_int(object, "bytes", m->data.bytes);
    set_hash(object, "sha256", m->data.sha256);
    return object;
}

static struct js *piece_json(const struct manifest_piece *piece)
{
    struct js *object = js_object();
    js_set_int(object, "offset", piece->offset);
    js_set_int(object, "bytes", piece->bytes);
    set_hash(object, "sha256", piece->sha256);
    return object;
}

/* The file that starts at piece i; *next is the first piece of the one after it. */
static struct js *file_json(const struct manifest *m, int i, int *next)
{
    struct js *file = js_object(), *pieces = js_array();
    int64_t bytes = 0;
    int at = i;
    for (; at < m->pieces && !strcmp(m->piece[at].file, m->piece[i].file); at++) {
        js_push(pieces, piece_json(&m->piece[at]));
        bytes += m->piece[at].bytes;
    }
    js_set_string(file, "name", m->piece[i].file);
    js_set_int(file, "bytes", bytes);
    js_set(file, "pieces", pieces);
    *next = at;
    return file;
}

static struct js *files_json(const struct manifest *m)
{
    struct js *files = js_array();
    for (int i = 0; i < m->pieces;)
        js_push(files, file_json(m, i, &i));
    return files;
}

static struct js *k_json(const struct manifest *m)
{
    struct js *k = js_array();
    for (int i = 0; i < m->tensors; i++)
        js_push_int(k, m->k[i]);
    return k;
}

/* The last lines of the text: the hash of all bytes before them. */
static const char tail_before[] = ",\n  \"manifestSha256\": \"";
static const char tail_after[] = "\"\n}\n";

enum { TAIL = sizeof tail_before - 1 + RM_HASH_HEX - 1 + sizeof tail_after - 1 };

static void make_tail(const char *body, size_t length, char out[TAIL + 1])
{
    uint8_t hash[RM_HASH_BYTES];
    char hex[RM_HASH_HEX];
    sha256_once(body, length, hash);
    hex_encode(hash, RM_HASH_BYTES, hex);
    snprintf(out, TAIL + 1, "%s%s%s", tail_before, hex, tail_after);
}

/* Compared fields that are no JSON become null, which no reader takes. */
static struct js *compared_json(const struct manifest *m)
{
    struct js *compared = js_parse(m->compared, strlen(m->compared), "compared", NULL);
    return compared ? compared : js_new_null();
}

static int version_of(const struct manifest *m)
{
    return m->version ? m->version : MANIFEST_VERSION;
}

static const char *const hash_word[] = {[MANIFEST_XXH3] = "xxh3", [MANIFEST_SHA256] = "sha256"};

const char *manifest_hash_word(enum manifest_hash hash)
{
    return hash_word[hash == MANIFEST_XXH3 ? MANIFEST_XXH3 : MANIFEST_SHA256];
}

enum { HASH_WORDS = sizeof hash_word / sizeof *hash_word };

void manifest_write(const struct manifest *m, struct str *out)
{
    struct js *top = js_object();
    struct str body = str_init(MANIFEST_TEXT_MAX);
    char tail[TAIL + 1];
    js_set_int(top, "version", version_of(m));
    js_set_string(top, "createdBy", CREATED_BY);
    js_set_string(top, "job", m->job);
    js_set_int(top, "step", m->step);
    set_hash(top, "lineage", m->lineage);
    js_set_bool(top, "exact", m->exact);
    if (version_of(m) >= HASH_IS_NAMED)
        js_set_string(top, "hash", manifest_hash_word(m->hash));
    if (m->has_weights || version_of(m) < HASH_IS_NAMED)
        set_hash(top, "weightsSha256", m->weights_sha256);
    else
        js_set(top, "weightsSha256", js_new_null());
    js_set_string(top, "fingerprint", m->fingerprint);
    js_set_int(top, "term", (int64_t)m->term);
    js_set_int(top, "generation", (int64_t)m->generation);
    js_set(top, "shape", shape_json(&m->shape));
    js_set(top, "compared", compared_json(m));
    js_set(top, "data", data_json(m));
    js_set(top, "files", files_json(m));
    js_set(top, "k", k_json(m));
    js_print_pretty(top, &body);
    js_free(top);
    size_t length = body.length - 2; /* without the closing "\n}" */
    make_tail(body.data, length, tail);
    str_add(out, body.data, length);
    str_adds(out, tail);
    str_clear(&body);
}

/* --- reading --- */

static int need_hash(const struct js *object, const char *key, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    char text[RM_HASH_HEX];
    if (js_need_string(object, key, text, sizeof text, err) < 0)
        return -1;
    if (!hex_decode(text, out, RM_HASH_BYTES))
        return err_set(err, ERR_DATA, "%s is not a SHA-256 in hex", key);
    return 0;
}

static int need_small(const struct js *object, const char *key, int highest, int *ret, struct error *err)
{
    int64_t value;
    if (js_need_int(object, key, 1, highest, &value, err) < 0)
        return -1;
    *ret = (int)value;
    return 0;
}

/* Reads the shape of a user's program's image. */
static int read_image(struct model_shape *shape, const struct js *object, struct error *err)
{
    int64_t bytes;
    if (js_need_int(object, "image", 8, most, &bytes, err) < 0)
        return -1;
    if (bytes % 4 || bytes >> 60 || js_size(object) != 1)
        return err_set(err, ERR_DATA, "shape: an image of %lld bytes, %zu fields", (long long)bytes,
                       js_size(object));
    *shape = image_shape(bytes);
    return 0;
}

static int read_shape(struct model_shape *shape, const struct js *top, struct error *err)
{
    const struct js *object;
    if (js_need(top, "shape", JS_OBJECT, &object, err) < 0)
        return -1;
    if (js_get(object, "image"))
        return read_image(shape, object, err);
    if (need_small(object, "layers", RM_LAYERS_MAX, &shape->layers, err) < 0 ||
        need_small(object, "heads", 1 << 16, &shape->heads, err) < 0 ||
        need_small(object, "width", 1 << 20, &shape->width, err) < 0 ||
        need_small(object, "context", 1 << 24, &shape->context, err) < 0 ||
        need_small(object, "vocabulary", 1 << 24, &shape->vocabulary, err) < 0)
        return -1;
    if (shape->width % shape->heads)
        return err_set(err, ERR_DATA, "shape: %d heads don't divide a width of %d", shape->heads,
                       shape->width);
    return 0;
}

static int read_data(struct manifest *m, const struct js *top, struct error *err)
{
    const struct js *object;
    if (js_need(top, "data", JS_OBJECT, &object, err) < 0 ||
        js_need_int(object, "files", -1, most, &m->data.files, err) < 0 ||
        js_need_int(object, "bytes", -1, most, &m->data.bytes, err) < 0)
        return -1;
    return need_hash(object, "sha256", m->data.sha256, err);
}

static int read_k(struct manifest *m, const struct js *top, struct error *err)
{
    const struct js *list;
    if (js_need(top, "k", JS_ARRAY, &list, err) < 0)
        return -1;
    m->tensors = (int)js_size(list);
    if (image_bytes(&m->shape) && (!js_size(list) || js_size(list) > RM_TENSORS_MAX))
        return err_set(err, ERR_DATA, "k has %zu exponents, and not 1 to %d", js_size(list), RM_TENSORS_MAX);
    if (!image_bytes(&m->shape) && js_size(list) != (size_t)(12 * m->shape.layers + 4))
        return err_set(err, ERR_DATA, "k has %zu exponents, but the model %d tensors", js_size(list),
                       12 * m->shape.layers + 4);
    for (int i = 0; i < m->tensors; i++) {
        int64_t value;
        if (!js_as_int(js_at(list, (size_t)i), &value) || value < -RM_EXPONENT_MOST ||
            value > RM_EXPONENT_MOST)
            return err_set(err, ERR_DATA, "k[%d] is no exponent", i);
        m->k[i] = (int)value;
    }
    return 0;
}

static int read_compared(struct manifest *m, const struct js *top, struct error *err)
{
    const struct js *object;
    if (js_need(top, "compared", JS_OBJECT, &object, err) < 0)
        return -1;
    struct str text = str_init(MANIFEST_TEXT_MAX);
    js_print_canonical(object, &text);
    bool fits = text_copy(m->compared, sizeof m->compared, str_text(&text));
    str_clear(&text);
    return fits ? 0 : err_set(err, ERR_DATA, "compared is longer than %d bytes", MANIFEST_COMPARED_MAX - 1);
}

static int read_piece(struct manifest *m, const char *file, const struct js *value, struct error *err)
{
    if (m->pieces == MANIFEST_PIECES_MAX)
        return err_set(err, ERR_DATA, "files: more than %d pieces", MANIFEST_PIECES_MAX);
    struct manifest_piece *piece = &m->piece[m->pieces];
    text_copy(piece->file, sizeof piece->file, file);
    if (!value || js_kind(value) != JS_OBJECT || js_size(value) != PIECE_KEYS)
        return err_set(err, ERR_DATA, "%s: a piece is not an object of offset, bytes, sha256", file);
    if (js_need_int(value, "offset", 0, most, &piece->offset, err) < 0 ||
        js_need_int(value, "bytes", 0, most, &piece->bytes, err) < 0 ||
        need_hash(value, "sha256", piece->sha256, err) < 0)
        return err_wrap(err, "%s", file);
    m->pieces++;
    return 0;
}

static int read_file(struct manifest *m, const struct js *value, struct error *err)
{
    char name[MANIFEST_FILE_MAX];
    int64_t bytes, sum = 0;
    const struct js *pieces;
    int first = m->pieces;
    if (js_kind(value) != JS_OBJECT || js_size(value) != FILE_KEYS)
        return err_set(err, ERR_DATA, "files: an entry is not an object of name, bytes, pieces");
    if (js_need_string(value, "name", name, sizeof name, err) < 0 ||
        js_need_int(value, "bytes", 0, most, &bytes, err) < 0 ||
        js_need(value, "pieces", JS_ARRAY, &pieces, err) < 0)
        return err_wrap(err, "files");
    for (size_t i = 0; i < js_size(pieces); i++)
        if (read_piece(m, name, js_at(pieces, i), err) < 0)
            return -1;
    for (int i = first; i < m->pieces; i++)
        sum += m->piece[i].bytes;
    if (sum != bytes)
        return err_set(err, ERR_DATA, "%s: has %lld bytes, but its pieces %lld", name, (long long)bytes,
                       (long long)sum);
    return 0;
}

static int read_files(struct manifest *m, const struct js *top, struct error *err)
{
    const struct js *files;
    if (js_need(top, "files", JS_ARRAY, &files, err) < 0)
        return -1;
    for (size_t i = 0; i < js_size(files); i++)
        if (read_file(m, js_at(files, i), err) < 0)
            return -1;
    return manifest_check_pieces(m, err);
}

/* A changed digit must not pass for another step, and not for a newer version either: every version ends with
 * this hash. */
static int check_tail(const char *text, size_t length, struct error *err)
{
    char tail[TAIL + 1];
    if (length < TAIL)
        return err_set(err, ERR_DATA, "it is cut short");
    make_tail(text, length - TAIL, tail);
    if (memcmp(tail, text + length - TAIL, TAIL) != 0)
        return err_set(err, ERR_DATA, "it is damaged: it does not have the hash that it names");
    return 0;
}

static int read_version(struct manifest *m, const struct js *top, struct error *err)
{
    int64_t version;
    if (js_kind(top) != JS_OBJECT)
        return err_set(err, ERR_DATA, "not an object");
    if (js_need_int(top, "version", 1, most, &version, err) < 0)
        return -1;
    if (version > MANIFEST_VERSION)
        return err_set(
            err, ERR_USAGE,
            "version %lld is newer than version %d, the newest that this program knows; use a newer "
            "Ringmaster, or another checkpoint folder",
            (long long)version, MANIFEST_VERSION);
    m->version = (int)version;
    m->hash = version == 1 ? MANIFEST_WHOLE : MANIFEST_SHA256;
    return 0;
}

static int read_hash(struct manifest *m, const struct js *top, struct error *err)
{
    char word[16];
    if (m->version < HASH_IS_NAMED)
        return 0;
    if (js_need_string(top, "hash", word, sizeof word, err) < 0)
        return -1;
    for (int i = 0; i < HASH_WORDS; i++)
        if (!strcmp(word, hash_word[i])) {
            m->hash = (enum manifest_hash)i;
            return 0;
        }
    return err_set(err, ERR_DATA, "hash is %s, and not xxh3 or sha256", word);
}

static int read_weights(struct manifest *m, const struct js *top, struct error *err)
{
    const struct js *value = js_get(top, "weightsSha256");
    m->has_weights = m->version < HASH_IS_NAMED || !value || js_kind(value) != JS_NULL;
    return m->has_weights ? need_hash(top, "weightsSha256", m->weights_sha256, err) : 0;
}

static int read_who(struct manifest *m, const struct js *top, struct error *err)
{
    char created_by[64];
    int64_t term, generation;
    if (js_need_string(top, "createdBy", created_by, sizeof created_by, err) < 0 ||
        js_need_string(top, "job", m->job, sizeof m->job, err) < 0 ||
        js_need_string(top, "fingerprint", m->fingerprint, sizeof m->fingerprint, err) < 0 ||
        js_need_int(top, "term", 0, INT64_MAX, &term, err) < 0 ||
        js_need_int(top, "generation", 0, INT64_MAX, &generation, err) < 0)
        return -1;
    m->term = (uint64_t)term;
    m->generation = (uint64_t)generation;
    return 0;
}

static int read_top(struct manifest *m, const struct js *top, struct error *err)
{
    if (read_version(m, top, err) < 0)
        return -1;
    int keys = KEYS + 1 + (m->version >= HASH_IS_NAMED);
    if (js_size(top) != (size_t)keys)
        return err_set(err, ERR_DATA, "it has %zu fields, not %d", js_size(top), keys);
    if (js_need_int(top, "step", 0, most, &m->step, err) < 0 ||
        js_need_bool(top, "exact", &m->exact, err) < 0 || need_hash(top, "lineage", m->lineage, err) < 0 ||
        read_hash(m, top, err) < 0 || read_weights(m, top, err) < 0 || read_who(m, top, err) < 0 ||
        read_shape(&m->shape, top, err) < 0 || read_k(m, top, err) < 0 || read_compared(m, top, err) < 0 ||
        read_data(m, top, err) < 0)
        return -1;
    return read_files(m, top, err);
}

static int read_text(struct manifest *m, const char *text, size_t length, struct error *err)
{
    if (check_tail(text, length, err) < 0)
        return -1;
    struct js *top = js_parse(text, length, "text", err);
    int result = top ? read_top(m, top, err) : -1;
    js_free(top);
    return result;
}

int manifest_read(struct manifest *ret, const char *text, size_t length, const char *what, struct error *err)
{
    struct error why = {0};
    struct manifest *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "%s: out of memory", what);
    int result = read_text(m, text, length, &why);
    if (result == 0)
        *ret = *m;
    else
        err_set(err, why.code == ERR_USAGE ? ERR_USAGE : ERR_DATA, "%s: %s", what, why.text);
    free(m);
    return result;
}
