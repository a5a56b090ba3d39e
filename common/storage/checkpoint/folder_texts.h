/* The small files that a publisher writes beside the weights: config.json in every checkpoint, and in final/
 * of a model whose tokens are known what other programs need to take text: tokenizer.json,
 * tokenizer_config.json and generation_config.json. For a job of text the tokenizer is made here, 256 bytes
 * without a merge; else it is the file that spec.trainer.data.tokenizer names. Functions of their arguments
 * alone: each publisher writes the same bytes. */
#ifndef RM_STORE_FOLDER_TEXTS_H
#define RM_STORE_FOLDER_TEXTS_H

#include <stdbool.h>

#include "common/base/str.h"
#include "common/storage/checkpoint/manifest.h"

/* How random a text is made where nobody says: by `ringmaster generate`, and by other programs as
 * generation_config.json tells them. */
#define FOLDER_TEMPERATURE 0.8

struct js;

struct folder_text {
    const char *name; /* literal */
    struct str text;
};

struct folder_texts {
    int count;
    struct folder_text text[MANIFEST_TEXTS];
};

/* Of the checkpoint that m is of (its shape, its compared fields). tokenizer: the content of the job's own
 * tokenizer.json; NULL or empty: it has none. */
void folder_texts_init(struct folder_texts *ret, const struct manifest *m, bool final,
                       const struct str *tokenizer);
void folder_texts_clear(struct folder_texts *texts);

/* Of that name; NULL: it is none of them. */
const struct str *folder_texts_find(const struct folder_texts *texts, const char *name);

/* A file that a checkpoint may have or not: one of those that say what its tokens mean. */
bool folder_text_is_optional(const char *name);

/* By the fields that its manifest says a resume compares (NULL: none are known): each byte was a token. */
bool folder_is_of_text(const struct js *compared);

/* tokenizer.json of a model whose tokens are bytes: id = byte. */
void folder_bytes_tokenizer(struct str *out);

#endif
