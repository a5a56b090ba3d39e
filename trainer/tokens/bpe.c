#include "trainer/tokens/bpe.h"

#include <stdlib.h>
#include <string.h>

#include "trainer/tokens/bpe_read.h"
#include "trainer/tokens/words.h"

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

/* The earliest merge of neighbours among n tokens; false: there is none. */
static bool best_pair(const struct bpe_table *t, const int32_t *ids, int64_t n, struct bpe_merge *ret)
{
    bool found = false;
    for (int64_t i = 0; i + 1 < n; i++) {
        const struct bpe_merge *merge = bpe_table_merge(t, ids[i], ids[i + 1]);
        if (merge && (!found || merge->rank < ret->rank)) {
            found = true;
            *ret = *merge;
        }
    }
    return found;
}

static bool comes_before(const struct bpe_table *t, int32_t left, int32_t right, int32_t rank)
{
    const struct bpe_merge *merge = bpe_table_merge(t, left, right);
    return merge && merge->rank < rank;
}

/* Joins all such neighbours, from the left on, and returns how many tokens are left. So a long word costs a
 * pass a merge, and not a pass a place. It stops where a new neighbour has an earlier merge: that is next. */
static int64_t join_all(const struct bpe_table *t, int32_t *ids, int64_t n, const struct bpe_merge *merge)
{
    int64_t to = 0;
    for (int64_t i = 0; i < n;) {
        bool joins = i + 1 < n && ids[i] == merge->left && ids[i + 1] == merge->right;
        ids[to++] = joins ? merge->merged : ids[i];
        i += joins ? 2 : 1;
        if (joins && ((to > 1 && comes_before(t, ids[to - 2], merge->merged, merge->rank)) ||
                      (i < n && comes_before(t, merge->merged, ids[i], merge->rank)))) {
            memmove(ids + to, ids + i, (size_t)(n - i) * sizeof *ids);
            return to + n - i;
        }
    }
    return to;
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
    struct bpe_merge merge = {0};
    while (best_pair(t, ids, n, &merge))
        n = join_all(t, ids, n, &merge);
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
