/* A byte-level BPE tokenizer in Hugging Face's tokenizer.json, as GPT-2 has one: text to tokens and back. Any
 * other kind is refused by its name. Pure.
 *
 * Text is cut at added tokens, then into words (words.h; not at all with use_regex false). A word's bytes are
 * tokens of their own, and two neighbours become one as long as there is a merge for them, the earliest of
 * the list first. */
#ifndef RM_TRAINER_BPE_H
#define RM_TRAINER_BPE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct bpe;

/* From the text of a tokenizer.json. ERR_DATA, with a sentence that begins "tokenizer.json: ", where it is
 * none, or one of another kind. */
int bpe_open(struct bpe **ret, const char *json, size_t length, struct error *err);
void bpe_free(struct bpe *b);

/* One more than its highest token. */
int bpe_size(const struct bpe *b);

/* The tokens of a text into ids, which has room for 2 * length + 1; returns how many. -1, ERR_DATA: a byte
 * has no token. */
int64_t bpe_encode(const struct bpe *b, const char *text, size_t length, int32_t *ids, struct error *err);

/* The bytes of a token; none for special ones, and for numbers that are no token. */
const char *bpe_bytes(const struct bpe *b, int32_t id, size_t *ret_length);

#endif
