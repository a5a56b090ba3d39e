#include "trainer/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/bpe_read.h"
#include "trainer/words.h"

int bpe_open(struct bpe **ret, const char *json, size_t length, struct error *err)
{
    struct bpe *b = calloc(1, sizeof *b);
    if (!b)
        return err_set(err, ERR_MACHINE, "tokenizer.json: out of memory");
    if (bpe_read(b, json, length, err) < 0) {
        bpe_free(b);
        return -1;
    }
    *ret = b;
    return 0;
}

void bpe_free(struct bpe *b)
{
    if (!b)
        return;
    bpe_table_clear(&b->table);
    free(b->added);
    free(b);
}

int bpe_size(const struct bpe *b)
{
    return b->table.size;
}

const char *bpe_bytes(const struct bpe *b, int32_t id, size_t *ret_length)
{
    bool shown = id >= 0 && id < b->table.size && b->table.token[id].bytes && !b->table.token[id].special;
    *ret_length = shown ? b->table.token[id].length : 0;
    return shown ? b->table.token[id].bytes : "";
}

/* A text on its way: tokens behind `ids + count` are those of the word at work. */
struct encoding {
    const struct bpe *b;
    int32_t *ids;
    int64_t count;
};

/* The earliest merge of neighbours among n tokens, the first of its kind; -1: there is none. */
static int64_t best_pair(const struct bpe_table *t, const int32_t *ids, int64_t n, struct bpe_merge *ret)
{
    int64_t best = -1;
    for (int64_t i = 0; i + 1 < n; i++) {
        const struct bpe_merge *merge = bpe_table_merge(t, ids[i], ids[i + 1]);
        if (merge && (best < 0 || merge->rank < ret->rank)) {
            best = i;
            *ret = *merge;
        }
    }
    return best;
}

static int add_word(struct encoding *e, const char *text, size_t length, struct error *err)
{
    const struct bpe_table *t = &e->b->table;
    int32_t whole = e->b->whole_words ? bpe_table_find(t, text, length) : -1, *ids = e->ids + e->count;
    if (whole >= 0) {
        ids[0] = whole;
        e->count++;
        return 0;
    }
    int64_t n = 0;
    for (size_t i = 0; i < length; i++) {
        if ((ids[n++] = bpe_table_find(t, text + i, 1)) < 0)
            return err_set(err, ERR_DATA, "tokenizer.json: no token stands for the byte 0x%02X",
                           (unsigned char)text[i]);
    }
    struct bpe_merge merge;
    int64_t at;
    while ((at = best_pair(t, ids, n, &merge)) >= 0) {
        ids[at] = merge.merged;
        n--;
        memmove(ids + at + 1, ids + at + 2, (size_t)(n - at - 1) * sizeof *ids);
    }
    e->count += n;
    return 0;
}

static int add_words(struct encoding *e, const char *text, size_t length, struct error *err)
{
    for (size_t at = 0; at < length;) {
        size_t end = e->b->words ? word_end(text, length, at) : length;
        if (add_word(e, text + at, end - at, err) < 0)
            return -1;
        at = end;
    }
    return 0;
}

/* A stretch without an added token. */
static int add_stretch(struct encoding *e, const char *text, size_t length, struct error *err)
{
    if (!e->b->blank_first || !length || text[0] == ' ')
        return add_words(e, text, length, err);
    char *with_blank = malloc(length + 1);
    if (!with_blank)
        return err_set(err, ERR_MACHINE, "out of memory");
    with_blank[0] = ' ';
    memcpy(with_blank + 1, text, length);
    int result = add_words(e, with_blank, length + 1, err);
    free(with_blank);
    return result;
}

/* The added token that stands at this place, the longest of several; -1: none. */
static int32_t added_at(const struct bpe *b, const char *text, size_t length)
{
    int32_t found = -1;
    for (int i = 0; i < b->added_count; i++) {
        const struct bpe_token *token = &b->table.token[b->added[i]];
        if (token->length <= length && !memcmp(token->bytes, text, token->length) &&
            (found < 0 || token->length > b->table.token[found].length))
            found = b->added[i];
    }
    return found;
}

static int add_text(struct encoding *e, const char *text, size_t length, struct error *err)
{
    size_t from = 0;
    for (size_t at = 0; at < length;) {
        int32_t added = added_at(e->b, text + at, length - at);
        if (added < 0) {
            at++;
            continue;
        }
        if (add_stretch(e, text + from, at - from, err) < 0)
            return -1;
        e->ids[e->count++] = added;
        from = at += e->b->table.token[added].length;
    }
    return add_stretch(e, text + from, length - from, err);
}

int64_t bpe_encode(const struct bpe *b, const char *text, size_t length, int32_t *ids, struct error *err)
{
    struct encoding e = {.b = b, .ids = ids};
    return add_text(&e, text, length, err) < 0 ? -1 : e.count;
}
