/* Writes and reads the manifest of frozen processes, and says whether they can live again here. */
#include "common/storage/checkpoint/frozen_manifest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/os/crypto.h"
#include "common/wire/json.h"

static const char key_salt[] = "frozen processes of a job";
static const char hash_before[] = ",\n  \"manifestSha256\": \"", seal_before[] = "\",\n  \"seal\": \"",
                  text_end[] = "\"\n}\n";

enum {
    DIGITS = RM_HASH_HEX - 1,
    TAIL = sizeof hash_before - 1 + DIGITS + sizeof seal_before - 1 + DIGITS + sizeof text_end - 1,
    MOST_CRIU = 1000 * 10000,
};

void frozen_key(const void *job_key, size_t length, uint8_t out[RM_HASH_BYTES])
{
    hmac_sha256(job_key, length, key_salt, sizeof key_salt, out);
}

bool frozen_is_sealed_by(const struct frozen_manifest *m, const uint8_t key[RM_HASH_BYTES])
{
    uint8_t seal[RM_HASH_BYTES];
    hmac_sha256(key, RM_HASH_BYTES, m->sha256, RM_HASH_BYTES, seal);
    return crypto_equal(seal, m->seal, RM_HASH_BYTES);
}

/* --- pieces --- */

int64_t frozen_piece_bytes(int64_t bytes)
{
    RM_ASSERT(bytes >= 0 && bytes <= FROZEN_BYTES_MAX, "%lld bytes", (long long)bytes);
    int64_t piece = FROZEN_PIECE_LEAST;
    while (piece * FROZEN_PIECES_MAX < bytes)
        piece *= 2;
    return piece;
}

int frozen_pieces(int64_t bytes, int64_t piece_bytes)
{
    return (int)((bytes + piece_bytes - 1) / piece_bytes);
}

int64_t frozen_piece_length(const struct frozen_manifest *m, int piece)
{
    RM_ASSERT(piece >= 0 && piece < m->pieces, "piece %d of %d", piece, m->pieces);
    return piece + 1 < m->pieces ? m->piece_bytes : m->bytes - piece * m->piece_bytes;
}

/* --- writing --- */

static struct js *ground_json(const struct frozen_ground *ground)
{
    struct js *object = js_object();
    js_set_string(object, "image", ground->image);
    js_set_string(object, "machine", ground->machine);
    js_set_string(object, "features", ground->features);
    js_set_string(object, "kernel", ground->kernel);
    js_set_int(object, "criu", ground->criu);
    return object;
}

static struct js *files_json(const struct frozen_manifest *m)
{
    struct js *files = js_array();
    for (int i = 0; i < m->files; i++) {
        struct js *file = js_object();
        js_set_string(file, "name", m->file[i].name);
        js_set_int(file, "bytes", m->file[i].bytes);
        js_push(files, file);
    }
    return files;
}

static struct js *pieces_json(const struct frozen_manifest *m)
{
    struct js *pieces = js_array();
    for (int i = 0; i < m->pieces; i++) {
        char text[RM_HASH_HEX];
        hex_encode(m->piece_sha256[i], RM_HASH_BYTES, text);
        js_push_string(pieces, text);
    }
    return pieces;
}

/* All but the closing brace, the hash and the seal. */
static void write_body(const struct frozen_manifest *m, struct str *out)
{
    struct js *top = js_object();
    js_set_int(top, "version", FROZEN_VERSION);
    js_set_string(top, "job", m->job);
    js_set_int(top, "number", m->number);
    js_set(top, "ground", ground_json(&m->ground));
    js_set_string(top, "object", m->object);
    js_set_int(top, "bytes", m->bytes);
    js_set_int(top, "pieceBytes", m->piece_bytes);
    js_set(top, "files", files_json(m));
    js_set(top, "piecesSha256", pieces_json(m));
    js_print_pretty(top, out);
    js_free(top);
    out->length -= 2;
}

static void add_hex(struct str *out, const uint8_t hash[RM_HASH_BYTES])
{
    char text[RM_HASH_HEX];
    hex_encode(hash, RM_HASH_BYTES, text);
    str_adds(out, text);
}

void frozen_manifest_write(const struct frozen_manifest *m, const uint8_t key[RM_HASH_BYTES], struct str *out)
{
    struct str body = str_init(FROZEN_TEXT_MAX);
    uint8_t hash[RM_HASH_BYTES], seal[RM_HASH_BYTES];
    write_body(m, &body);
    sha256_once(body.data, body.length, hash);
    hmac_sha256(key, RM_HASH_BYTES, hash, RM_HASH_BYTES, seal);
    str_add(out, body.data, body.length);
    str_adds(out, hash_before);
    add_hex(out, hash);
    str_adds(out, seal_before);
    add_hex(out, seal);
    str_adds(out, text_end);
    str_clear(&body);
}

/* --- reading --- */

static int read_ground(struct frozen_ground *ground, const struct js *top, struct error *err)
{
    const struct js *object;
    int64_t criu;
    if (js_need(top, "ground", JS_OBJECT, &object, err) < 0 ||
        js_need_string(object, "image", ground->image, sizeof ground->image, err) < 0 ||
        js_need_string(object, "machine", ground->machine, sizeof ground->machine, err) < 0 ||
        js_need_string(object, "features", ground->features, sizeof ground->features, err) < 0 ||
        js_need_string(object, "kernel", ground->kernel, sizeof ground->kernel, err) < 0 ||
        js_need_int(object, "criu", 0, MOST_CRIU, &criu, err) < 0)
        return -1;
    ground->criu = (int)criu;
    return 0;
}

/* A name that leads nowhere else. */
static bool is_plain(const char *name)
{
    return *name && *name != '.' && !strchr(name, '/');
}

static int read_files(struct frozen_manifest *m, const struct js *top, struct error *err)
{
    const struct js *files;
    int64_t sum = 0;
    if (js_need(top, "files", JS_ARRAY, &files, err) < 0)
        return -1;
    if (!js_size(files) || js_size(files) > FROZEN_FILES_MAX)
        return err_set(err, ERR_DATA, "it has %zu files, and not 1 to %d", js_size(files), FROZEN_FILES_MAX);
    for (size_t i = 0; i < js_size(files); i++) {
        struct frozen_file *file = &m->file[m->files++];
        if (js_need_string(js_at(files, i), "name", file->name, sizeof file->name, err) < 0 ||
            js_need_int(js_at(files, i), "bytes", 0, m->bytes - sum, &file->bytes, err) < 0)
            return err_wrap(err, "files");
        if (!is_plain(file->name) || (i > 0 && strcmp(m->file[i - 1].name, file->name) >= 0))
            return err_set(err, ERR_DATA, "files: \"%s\" is no name, or stands at the wrong place",
                           file->name);
        sum += file->bytes;
    }
    if (sum != m->bytes)
        return err_set(err, ERR_DATA, "its files have %lld bytes, and not %lld", (long long)sum,
                       (long long)m->bytes);
    return 0;
}

static int read_pieces(struct frozen_manifest *m, const struct js *top, struct error *err)
{
    const struct js *pieces;
    if (js_need(top, "piecesSha256", JS_ARRAY, &pieces, err) < 0)
        return -1;
    if (m->piece_bytes != frozen_piece_bytes(m->bytes) ||
        js_size(pieces) != (size_t)frozen_pieces(m->bytes, m->piece_bytes))
        return err_set(err, ERR_DATA, "%zu pieces of %lld bytes are not %lld bytes", js_size(pieces),
                       (long long)m->piece_bytes, (long long)m->bytes);
    for (size_t i = 0; i < js_size(pieces); i++) {
        const char *text = js_as_string(js_at(pieces, i));
        if (!text || !hex_decode(text, m->piece_sha256[i], RM_HASH_BYTES))
            return err_set(err, ERR_DATA, "piecesSha256[%zu] is not a SHA-256 in hex", i);
        m->pieces++;
    }
    return 0;
}

static int read_version(const struct js *top, struct error *err)
{
    int64_t version;
    if (js_need_int(top, "version", 1, INT64_MAX, &version, err) < 0)
        return -1;
    if (version > FROZEN_VERSION)
        return err_set(err, ERR_USAGE,
                       "version %lld is newer than version %d, the newest that this program knows; use a "
                       "newer Ringmaster",
                       (long long)version, FROZEN_VERSION);
    return 0;
}

static int read_top(struct frozen_manifest *m, const struct js *top, struct error *err)
{
    if (read_version(top, err) < 0 || js_need_string(top, "job", m->job, sizeof m->job, err) < 0 ||
        js_need_int(top, "number", 1, INT64_C(1) << 60, &m->number, err) < 0 ||
        read_ground(&m->ground, top, err) < 0 ||
        js_need_string(top, "object", m->object, sizeof m->object, err) < 0 ||
        js_need_int(top, "bytes", 1, FROZEN_BYTES_MAX, &m->bytes, err) < 0 ||
        js_need_int(top, "pieceBytes", 1, FROZEN_BYTES_MAX, &m->piece_bytes, err) < 0)
        return -1;
    if (!is_plain(m->object))
        return err_set(err, ERR_DATA, "object is \"%s\", which is no name", m->object);
    return read_files(m, top, err) < 0 ? -1 : read_pieces(m, top, err);
}

/* In the letters that are written, and no others. */
static bool is_hash(const char *text, uint8_t out[RM_HASH_BYTES])
{
    char again[RM_HASH_HEX];
    if (!hex_decode(text, out, RM_HASH_BYTES))
        return false;
    hex_encode(out, RM_HASH_BYTES, again);
    return !strcmp(text, again);
}

/* The hash and the seal at the text's end; they cover what is before them. */
static int read_tail(struct frozen_manifest *m, const char *text, size_t length, struct error *err)
{
    char hash[RM_HASH_HEX], seal[RM_HASH_HEX];
    uint8_t found[RM_HASH_BYTES];
    if (length <= TAIL)
        return err_set(err, ERR_DATA, "it is cut short");
    const char *tail = text + length - TAIL, *hash_at = tail + sizeof hash_before - 1,
               *seal_at = hash_at + DIGITS + sizeof seal_before - 1;
    snprintf(hash, sizeof hash, "%.*s", DIGITS, hash_at);
    snprintf(seal, sizeof seal, "%.*s", DIGITS, seal_at);
    sha256_once(text, length - TAIL, found);
    bool whole = !memcmp(tail, hash_before, sizeof hash_before - 1) &&
                 !memcmp(hash_at + DIGITS, seal_before, sizeof seal_before - 1) &&
                 !memcmp(seal_at + DIGITS, text_end, sizeof text_end - 1);
    if (!whole || !is_hash(hash, m->sha256) || !is_hash(seal, m->seal) ||
        memcmp(found, m->sha256, RM_HASH_BYTES) != 0)
        return err_set(err, ERR_DATA, "it is damaged: it does not have the hash that it names");
    return 0;
}

/* Nothing is in the text that was not read out of it. */
static int check_text_again(const struct frozen_manifest *m, const char *text, size_t length,
                            struct error *err)
{
    struct str again = str_init(FROZEN_TEXT_MAX);
    write_body(m, &again);
    bool same = again.length == length - TAIL && !memcmp(again.data, text, again.length);
    str_clear(&again);
    return same ? 0 : err_set(err, ERR_DATA, "it holds what no manifest of processes has");
}

static int read_text(struct frozen_manifest *m, const char *text, size_t length, struct error *err)
{
    if (read_tail(m, text, length, err) < 0)
        return -1;
    struct js *top = js_parse(text, length, "text", err);
    int result = top ? read_top(m, top, err) : -1;
    js_free(top);
    return result < 0 ? -1 : check_text_again(m, text, length, err);
}

int frozen_manifest_read(struct frozen_manifest *ret, const char *text, size_t length, const char *what,
                         struct error *err)
{
    struct error why = {0};
    memset(ret, 0, sizeof *ret);
    if (read_text(ret, text, length, &why) == 0)
        return 0;
    return err_set(err, why.code == ERR_USAGE ? ERR_USAGE : ERR_DATA, "%s: %s", what, why.text);
}

/* --- where it can live --- */

static bool has_word(const char *words, const char *word, size_t length)
{
    for (const char *at = words; *at; at += strspn(at, " ")) {
        size_t this = strcspn(at, " ");
        if (this == length && !strncmp(at, word, length))
            return true;
        at += this;
    }
    return false;
}

/* Names what of `wanted` is not in `had`, up to a few; false: nothing. */
static bool name_missing(const char *wanted, const char *had, char out[static 64])
{
    *out = 0;
    for (const char *at = wanted; *at; at += strspn(at, " ")) {
        size_t length = strcspn(at, " "), used = strlen(out);
        if (!has_word(had, at, length) && used + length + 3 < 64)
            snprintf(out + used, 64 - used, "%s%.*s", used ? ", " : "", (int)length, at);
        at += length;
    }
    return *out;
}

int frozen_refuse_ground(const struct frozen_ground *there, const struct frozen_ground *here,
                         struct error *err)
{
    char missing[64];
    if (*there->image && *here->image && strcmp(there->image, here->image) != 0)
        return err_set(err, ERR_MACHINE,
                       "it was frozen in image %.60s, and this is %.60s: what it has open would be other "
                       "files; give the job its image back",
                       there->image, here->image);
    if (strcmp(there->machine, here->machine) != 0)
        return err_set(err, ERR_MACHINE, "it was frozen on a machine of kind %s, and this is one of kind %s",
                       there->machine, here->machine);
    if (name_missing(there->features, here->features, missing))
        return err_set(err, ERR_MACHINE,
                       "this processor lacks %s, by which a program that was frozen on another one may "
                       "compute; keep the job to machines of one kind",
                       missing);
    if (there->criu > here->criu)
        return err_set(err, ERR_MACHINE, "it was frozen by CRIU %d.%d, and this is %d.%d, which is older",
                       there->criu / 10000, there->criu / 100 % 100, here->criu / 10000,
                       here->criu / 100 % 100);
    return 0;
}
