/* Reading tokenizer.json; bpe.c alone uses this. */
#ifndef RM_TRAINER_BPE_READ_H
#define RM_TRAINER_BPE_READ_H

#include "common/base/error.h"
#include "common/wire/json.h"
#include "trainer/tokens/bpe_parts.h"

struct bpe {
    struct bpe_table table;
    int32_t *added; /* (added_count): tokens that a text may name */
    int added_count;
    bool words;       /* text is cut into words first */
    bool blank_first; /* a text that begins with none gets one */
    bool whole_words; /* a word that is a token is not merged from bytes */
};

/* b is zeroed; what is half read is cleared by bpe_free. */
int bpe_read(struct bpe *b, const char *json, size_t length, struct error *err);

#endif
