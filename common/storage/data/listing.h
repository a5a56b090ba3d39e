/* Which objects of a store are a job's training data: names, sizes, contents' tags, fixed once for the job's
 * life. docs/file-formats.md is the specification of the text.
 *
 * The text is canonical (one text for one listing), and its SHA-256 is the data's identity: the tag is what
 * the store says about a content, and the store refuses to read another content under it. */
#ifndef RM_DATA_LISTING_H
#define RM_DATA_LISTING_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"

enum {
    LISTING_TAG_MAX = 128,
    LISTING_TEXT_MAX = 256 << 20, /* bytes of a listing's text */
    LISTING_OBJECT_MAX = 64,      /* bytes of listing_object_name's, with its NUL */
};

struct listing_file {
    char *name; /* relative to the data's URI */
    int64_t bytes;
    int64_t skip; /* bytes in front of the first token */
    char tag[LISTING_TAG_MAX];
};

struct listing {
    int width;           /* bytes of a token: 1 is text, 2, 4; 0: not known yet */
    int64_t count, room; /* files, in byte order of their names */
    int64_t bytes;       /* of all files together */
    struct listing_file *file;
};

/* *listing is empty (all zero) before the first file; files come in order. Names with a part that starts with
 * a dot are left out. */
int listing_add(struct listing *listing, const char *name, int64_t bytes, const char *tag, struct error *err);
void listing_clear(struct listing *listing);
int64_t listing_bytes(const struct listing *listing);

/* out: with room for LISTING_TEXT_MAX. ERR_DATA where it is longer, or a name is no UTF-8. */
int listing_write(const struct listing *listing, struct str *out, struct error *err);
/* *ret needs listing_clear in any case. ERR_DATA where the text is no listing; it starts with `what`. */
int listing_read(struct listing *ret, const char *text, size_t length, const char *what, struct error *err);

/* "data-0123456789abcdef.json": where the text with this hash is kept. */
void listing_object_name(const uint8_t sha256[RM_HASH_BYTES], char out[LISTING_OBJECT_MAX]);

/* Is each file of `kept` still there with its size and tag? ERR_DATA names the first that isn't. More files
 * are fine. */
int listing_compare(const struct listing *kept, const struct listing *now, struct error *err);

#endif
