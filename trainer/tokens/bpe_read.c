/* tokenizer.json -> struct bpe. What is not byte-level BPE is refused by the name that the file gives it. */
#include "trainer/tokens/bpe_read.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/byte_letters.h"
#include "common/base/str.h"

enum { TOKENS_MAX = 1 << 20 }; /* of a file: the largest vocabularies have a quarter of it */

static bool absent(const struct js *value)
{
    return !value || js_kind(value) == JS_NULL;
}

static const char *type_of(const struct js *part)
{
    const char *type = js_as_string(js_get(part, "type"));
    return type ? type : "without a type";
}

static bool flag(const struct js *object, const char *key, bool otherwise)
{
    bool value = otherwise;
    js_as_bool(js_get(object, key), &value);
    return value;
}

static int refuse_part(struct error *err, const char *what, const char *is, const char *known)
{
    return err_set(err, ERR_DATA,
                   "its %s is %.60s, and generate knows %s alone; open the folder with transformers, which "
                   "has the others",
                   what, is, known);
}

/* A part that must be ByteLevel, or (where it may) absent. */
static int need_byte_level(const struct js *top, const char *key, bool may_lack, struct error *err)
{
    const struct js *part = js_get(top, key);
    if (absent(part))
        return may_lack ? 0 : refuse_part(err, key, "absent", "ByteLevel");
    return strcmp(type_of(part), "ByteLevel") ? refuse_part(err, key, type_of(part), "ByteLevel") : 0;
}

static int check_kind(const struct js *top, const struct js *model, struct error *err)
{
    /* unk_token is none of these: of bytes each is known, so that it stands for nothing (GPT-2 has one) */
    static const char *const none[] = {"continuing_subword_prefix", "end_of_word_suffix", "dropout"};
    const char *type = js_as_string(js_get(model, "type"));
    bool has_merges = js_get(model, "merges") != NULL;
    if (type ? strcmp(type, "BPE") != 0 : !has_merges) /* files of old don't name it */
        return refuse_part(err, "model", type ? type : "without a type", "BPE");
    if (!absent(js_get(top, "normalizer")))
        return refuse_part(err, "normalizer", type_of(js_get(top, "normalizer")),
                           "a text that stays as it is");
    if (need_byte_level(top, "pre_tokenizer", false, err) < 0 ||
        need_byte_level(top, "post_processor", true, err) < 0 ||
        need_byte_level(top, "decoder", false, err) < 0)
        return -1;
    if (flag(model, "byte_fallback", false))
        return refuse_part(err, "model", "BPE with byte_fallback", "BPE of bytes");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        const struct js *value = js_get(model, none[i]);
        const char *text = js_as_string(value);
        char with[64];
        snprintf(with, sizeof with, "BPE with %s", none[i]);
        if (!absent(value) && !(text && !*text))
            return refuse_part(err, "model", with, "BPE without it");
    }
    return 0;
}

/* ---- its tokens ---- */

/* What the letters stand for; what are none of them (an added token's name) stays as it is. */
static void bytes_of(const char *letters, struct str *out)
{
    str_reset(out);
    for (const char *at = letters; *at;) {
        size_t length;
        int byte = byte_of_letter(at, &length);
        if (byte < 0) {
            str_reset(out);
            str_adds(out, letters);
            return;
        }
        char one = (char)byte;
        str_add(out, &one, 1);
        at += length;
    }
}

static int highest_token(const struct js *vocabulary, const struct js *added, int64_t *ret, struct error *err)
{
    int64_t id;
    *ret = -1;
    for (void *it = js_first(vocabulary); it; it = js_next(vocabulary, it)) {
        if (!js_as_int(js_value(it), &id) || id < 0 || id >= TOKENS_MAX)
            return err_set(err, ERR_DATA, "model.vocab: %.60s has no number from 0 to %d", js_key(it),
                           TOKENS_MAX - 1);
        *ret = id > *ret ? id : *ret;
    }
    for (size_t i = 0; i < js_size(added); i++) {
        if (js_need_int(js_at(added, i), "id", 0, TOKENS_MAX - 1, &id, err) < 0)
            return err_wrap(err, "added_tokens");
        *ret = id > *ret ? id : *ret;
    }
    return 0;
}

static int take_vocabulary(struct bpe *b, const struct js *vocabulary, struct error *err)
{
    struct str bytes = str_init(1 << 20);
    int result = 0;
    for (void *it = js_first(vocabulary); it && result == 0; it = js_next(vocabulary, it)) {
        int64_t id = 0;
        js_as_int(js_value(it), &id);
        bytes_of(js_key(it), &bytes);
        if (!bytes.length) /* it would be found at every place of a text, and lead nowhere */
            result = err_set(err, ERR_DATA, "model.vocab: token %lld stands for no bytes", (long long)id);
        else if (!bpe_table_put(&b->table, (int32_t)id, str_text(&bytes), bytes.length))
            result =
                err_set(err, ERR_DATA, "model.vocab: %.60s has a number that another token has", js_key(it));
    }
    str_clear(&bytes);
    return result;
}

/* "a b", or ["a", "b"]. */
static bool read_pair(const struct js *value, struct str *left, struct str *right)
{
    const char *text = js_as_string(value), *blank = text ? strchr(text, ' ') : NULL;
    if (text && blank) {
        struct str letters = str_init(1 << 16);
        str_add(&letters, text, (size_t)(blank - text));
        bytes_of(str_text(&letters), left);
        bytes_of(blank + 1, right);
        str_clear(&letters);
        return true;
    }
    const char *first = js_as_string(js_at(value, 0)), *second = js_as_string(js_at(value, 1));
    if (text || !first || !second || js_size(value) != 2)
        return false;
    bytes_of(first, left);
    bytes_of(second, right);
    return true;
}

static int take_merge(struct bpe *b, const struct js *value, int32_t rank, struct str part[2],
                      struct error *err)
{
    if (!read_pair(value, &part[0], &part[1]))
        return err_set(err, ERR_DATA, "model.merges: number %d is no pair of tokens", rank);
    struct bpe_merge merge = {.left = bpe_table_find(&b->table, str_text(&part[0]), part[0].length),
                              .right = bpe_table_find(&b->table, str_text(&part[1]), part[1].length),
                              .rank = rank};
    str_add(&part[0], str_text(&part[1]), part[1].length);
    merge.merged = bpe_table_find(&b->table, str_text(&part[0]), part[0].length);
    if (merge.left < 0 || merge.right < 0 || merge.merged < 0)
        return err_set(err, ERR_DATA, "model.merges: number %d has or makes a token that model.vocab lacks",
                       rank);
    bpe_table_put_merge(&b->table, merge);
    return 0;
}

static int take_merges(struct bpe *b, const struct js *merges, struct error *err)
{
    struct str part[2] = {str_init(1 << 16), str_init(1 << 16)};
    int result = 0;
    for (size_t i = 0; i < js_size(merges) && result == 0; i++)
        result = take_merge(b, js_at(merges, i), (int32_t)i, part, err);
    str_clear(&part[0]);
    str_clear(&part[1]);
    return result;
}

/* Some name a token of the vocabulary, others are beside it. */
static int take_added(struct bpe *b, const struct js *one, struct error *err)
{
    int64_t id;
    const char *content = js_as_string(js_get(one, "content"));
    if (!content || !*content || js_need_int(one, "id", 0, TOKENS_MAX - 1, &id, err) < 0)
        return err_set(err, ERR_DATA, "added_tokens: one has no content, or no id");
    if (flag(one, "lstrip", false) || flag(one, "rstrip", false) || flag(one, "single_word", false))
        return refuse_part(err, "added token", "one with lstrip, rstrip or single_word",
                           "those that are found as they are");
    struct bpe_token *token = &b->table.token[id];
    if (!token->bytes && !bpe_table_put(&b->table, (int32_t)id, content, strlen(content)))
        return err_set(err, ERR_MACHINE, "no memory for its tokens");
    token->added = true;
    token->special = flag(one, "special", false);
    b->added[b->added_count++] = (int32_t)id;
    return 0;
}

static int take_parts(struct bpe *b, const struct js *top, struct error *err)
{
    const struct js *model = js_get(top, "model"), *vocabulary, *merges, *added = js_get(top, "added_tokens");
    int64_t highest;
    if (check_kind(top, model, err) < 0 || js_need(model, "vocab", JS_OBJECT, &vocabulary, err) < 0 ||
        js_need(model, "merges", JS_ARRAY, &merges, err) < 0 ||
        highest_token(vocabulary, added, &highest, err) < 0)
        return -1;
    b->words = flag(js_get(top, "pre_tokenizer"), "use_regex", true);
    b->blank_first = flag(js_get(top, "pre_tokenizer"), "add_prefix_space", true);
    b->whole_words = flag(model, "ignore_merges", false);
    b->added = calloc(js_size(added) + 1, sizeof *b->added);
    if (!b->added || !bpe_table_init(&b->table, (int32_t)highest + 1, js_size(merges)))
        return err_set(err, ERR_MACHINE, "no memory for its tokens");
    if (take_vocabulary(b, vocabulary, err) < 0 || take_merges(b, merges, err) < 0)
        return -1;
    for (size_t i = 0; i < js_size(added); i++)
        if (take_added(b, js_at(added, i), err) < 0)
            return -1;
    return 0;
}

int bpe_read(struct bpe *b, const char *json, size_t length, struct error *err)
{
    struct error why = {0};
    struct js *top = js_parse(json, length, "it", &why);
    int result = top ? take_parts(b, top, &why) : -1;
    js_free(top);
    return result < 0 ? err_set(err, why.code == ERR_MACHINE ? ERR_MACHINE : ERR_DATA, "tokenizer.json: %s",
                                why.text)
                      : 0;
}
