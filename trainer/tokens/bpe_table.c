#include "trainer/tokens/bpe_parts.h"

#include <stdlib.h>
#include <string.h>

static uint32_t places_for(size_t count)
{
    uint32_t places = 16;
    while (places < 2 * count + 2)
        places *= 2;
    return places;
}

bool bpe_table_init(struct bpe_table *t, int32_t size, size_t merges)
{
    *t = (struct bpe_table){
        .size = size, .places = places_for((size_t)size), .merge_places = places_for(merges)};
    t->token = calloc((size_t)size + 1, sizeof *t->token);
    t->by_bytes = malloc(t->places * sizeof *t->by_bytes);
    t->merge = malloc(t->merge_places * sizeof *t->merge);
    if (!t->token || !t->by_bytes || !t->merge)
        return false;
    for (uint32_t i = 0; i < t->places; i++)
        t->by_bytes[i] = -1;
    for (uint32_t i = 0; i < t->merge_places; i++)
        t->merge[i].left = -1;
    return true;
}

void bpe_table_clear(struct bpe_table *t)
{
    for (int32_t i = 0; t->token && i < t->size; i++)
        free(t->token[i].bytes);
    free(t->token);
    free(t->by_bytes);
    free(t->merge);
    *t = (struct bpe_table){0};
}

/* FNV-1a */
static uint32_t hash_of(const char *bytes, size_t length)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 16777619u;
    return hash;
}

/* Where the token of these bytes is, or would be. */
static uint32_t place_of(const struct bpe_table *t, const char *bytes, size_t length)
{
    uint32_t at = hash_of(bytes, length) & (t->places - 1);
    for (; t->by_bytes[at] >= 0; at = (at + 1) & (t->places - 1)) {
        const struct bpe_token *token = &t->token[t->by_bytes[at]];
        if (token->length == length && !memcmp(token->bytes, bytes, length))
            break;
    }
    return at;
}

bool bpe_table_put(struct bpe_table *t, int32_t id, const char *bytes, size_t length)
{
    struct bpe_token *token = &t->token[id];
    if (token->bytes || !(token->bytes = malloc(length + 1)))
        return false;
    memcpy(token->bytes, bytes, length);
    token->length = length;
    uint32_t at = place_of(t, bytes, length);
    if (t->by_bytes[at] < 0)
        t->by_bytes[at] = id;
    return true;
}

int32_t bpe_table_find(const struct bpe_table *t, const char *bytes, size_t length)
{
    return t->by_bytes[place_of(t, bytes, length)];
}

static uint32_t merge_place(const struct bpe_table *t, int32_t left, int32_t right)
{
    uint32_t hash = (uint32_t)left * 0x9E3779B1u ^ (uint32_t)right * 0x85EBCA77u;
    uint32_t at = (hash ^ hash >> 15) & (t->merge_places - 1);
    while (t->merge[at].left >= 0 && (t->merge[at].left != left || t->merge[at].right != right))
        at = (at + 1) & (t->merge_places - 1);
    return at;
}

void bpe_table_put_merge(struct bpe_table *t, struct bpe_merge merge)
{
    uint32_t at = merge_place(t, merge.left, merge.right);
    if (t->merge[at].left < 0)
        t->merge[at] = merge;
}

const struct bpe_merge *bpe_table_merge(const struct bpe_table *t, int32_t left, int32_t right)
{
    const struct bpe_merge *found = &t->merge[merge_place(t, left, right)];
    return found->left < 0 ? NULL : found;
}
