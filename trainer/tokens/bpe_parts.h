/* What bpe.c, which reads and asks, and bpe_table.c, which remembers, share. */
#ifndef RM_TRAINER_BPE_PARTS_H
#define RM_TRAINER_BPE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpe_token {
    char *bytes; /* (length), owned; NULL: there is no such token */
    size_t length;
    bool added;   /* found in a text before it is cut into words */
    bool special; /* not shown */
};

struct bpe_merge {
    int32_t left, right, rank, merged; /* left -1: a free place */
};

/* Tokens by number and by bytes, merges by the two tokens that they join. */
struct bpe_table {
    struct bpe_token *token; /* (size) */
    int32_t size;
    int32_t *by_bytes; /* (places): token, or -1 */
    uint32_t places;   /* a power of two, above twice the tokens */
    struct bpe_merge *merge;
    uint32_t merge_places;
};

/* Room for so many tokens (numbers below size) and merges; false: no memory. */
bool bpe_table_init(struct bpe_table *t, int32_t size, size_t merges);
void bpe_table_clear(struct bpe_table *t);

/* Copies the bytes; the first token of the same bytes is the one that is found. false: no memory, or the
 * number is taken. */
bool bpe_table_put(struct bpe_table *t, int32_t id, const char *bytes, size_t length);
int32_t bpe_table_find(const struct bpe_table *t, const char *bytes, size_t length); /* -1: none */

void bpe_table_put_merge(struct bpe_table *t, struct bpe_merge merge); /* the first of two alike counts */
const struct bpe_merge *bpe_table_merge(const struct bpe_table *t, int32_t left,
                                        int32_t right); /* NULL: none */

#endif
