#include "common/storage/checkpoint/sums.h"

#include <string.h>

#include "common/os/crypto.h"
#include "common/storage/checkpoint/piece_hash.h"

enum { LINE_HEAD_MAX = MANIFEST_FILE_MAX + 80 };

void sums_name(char out[FILES_NAME_MAX], const char *checkpoint, const uint8_t *lineage, int part, int parts)
{
    static const char last[] = ".safetensors";
    char file[MANIFEST_FILE_MAX];
    manifest_optimizer_name(file, part, parts, lineage);
    text_copy(file + strlen(file) - strlen(last), sizeof ".sums", ".sums");
    files_object(out, checkpoint, file);
}

/* All of a line but its sums. */
static void write_head(struct str *out, enum manifest_hash hash, const struct manifest_piece *piece,
                       bool arrived)
{
    str_addf(out, "%s %lld %lld %s %s ", piece->file, (long long)piece->offset, (long long)piece->bytes,
             manifest_hash_word(hash), arrived ? "arrived" : "sent");
}

static int64_t chunks_of(const struct manifest_piece *piece)
{
    return piece_chunks(piece->bytes, PIECE_CHUNK);
}

void sums_add(struct str *out, enum manifest_hash hash, const struct manifest_piece *piece, bool arrived,
              const uint8_t (*sum)[RM_HASH_BYTES])
{
    write_head(out, hash, piece, arrived);
    for (int64_t i = 0; i < chunks_of(piece); i++) {
        char hex[RM_HASH_HEX];
        hex_encode(sum[i], (size_t)piece_sum_bytes(hash), hex);
        str_adds(out, hex);
    }
    str_adds(out, "\n");
}

/* `digits` holds as many as all sums have, and more of the text behind them. */
static bool read_sums(const char *digits, enum manifest_hash hash, const struct manifest_piece *piece,
                      uint8_t (*sum)[RM_HASH_BYTES])
{
    size_t each = (size_t)piece_sum_bytes(hash);
    uint8_t found[RM_HASH_BYTES];
    for (int64_t i = 0; i < chunks_of(piece); i++) {
        char hex[RM_HASH_HEX];
        memcpy(hex, digits + 2 * each * (size_t)i, 2 * each);
        hex[2 * each] = 0;
        memset(sum[i], 0, RM_HASH_BYTES);
        if (!hex_decode(hex, sum[i], each))
            return false;
    }
    piece_of_sums(hash, (const uint8_t(*)[RM_HASH_BYTES])sum, chunks_of(piece), found);
    return crypto_equal(found, piece->sha256, RM_HASH_BYTES);
}

/* The text behind this line's head; NULL: there is no such line, or it is cut short. */
static const char *find_line(const struct str *text, enum manifest_hash hash,
                             const struct manifest_piece *piece, bool arrived)
{
    size_t digits = 2 * (size_t)piece_sum_bytes(hash) * (size_t)chunks_of(piece);
    struct str head = str_init(LINE_HEAD_MAX);
    write_head(&head, hash, piece, arrived);
    const char *at = str_text(text), *end = at + text->length;
    while (at && strncmp(at, str_text(&head), head.length) != 0) {
        at = strchr(at, '\n');
        at = at ? at + 1 : NULL;
    }
    at = at ? at + head.length : NULL;
    str_clear(&head);
    return at && (size_t)(end - at) > digits && at[digits] == '\n' ? at : NULL;
}

bool sums_find(const struct str *text, enum manifest_hash hash, const struct manifest_piece *piece,
               bool *ret_arrived, uint8_t (*sum)[RM_HASH_BYTES])
{
    for (int arrived = 0; arrived < 2; arrived++) {
        const char *digits = find_line(text, hash, piece, arrived);
        if (!digits || !read_sums(digits, hash, piece, sum))
            continue;
        *ret_arrived = arrived;
        return true;
    }
    return false;
}
