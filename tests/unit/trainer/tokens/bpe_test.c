#include "trainer/tokens/bpe.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "common/storage/checkpoint/folder_texts.h"
#include "common/wire/json.h"

enum { ROOM = 200 };

/* The tokenizer of bytes, with one place of its text replaced by another. */
static int open_changed(struct bpe **ret, const char *was, const char *now, struct error *err)
{
    struct str text = str_init(1 << 20), compact = str_init(1 << 20), changed = str_init(1 << 20);
    folder_bytes_tokenizer(&text);
    struct js *top = js_parse(str_text(&text), text.length, "it", NULL);
    js_print(top, &compact);
    js_free(top);
    const char *all = str_text(&compact), *at = strstr(all, was);
    cr_assert(at, "%s is not in %.200s", was, all);
    str_add(&changed, all, (size_t)(at - all));
    str_adds(&changed, now);
    str_adds(&changed, at + strlen(was));
    int result = bpe_open(ret, str_text(&changed), changed.length, err);
    str_clear(&text);
    str_clear(&compact);
    str_clear(&changed);
    return result;
}

/* With three merges: "th", "the" and " the". */
#define WORDS ",\"th\":256,\"the\":257,\"Ġthe\":258"
static struct bpe *open_words(const char *merges, const char *flags)
{
    struct bpe *b = NULL;
    struct error err = {0};
    char now[400];
    snprintf(now, sizeof now, "%s},\"merges\":%s%s", WORDS, merges, flags);
    cr_assert_eq(open_changed(&b, "},\"merges\":[]", now, &err), 0, "%s", err.text);
    return b;
}

static void gives(const struct bpe *b, const char *text, const int32_t *wanted, int count)
{
    int32_t ids[ROOM];
    struct error err = {0};
    int64_t found = bpe_encode(b, text, strlen(text), ids, &err);
    cr_assert_eq(found, count, "\"%s\": %lld tokens, and not %d", text, (long long)found, count);
    for (int i = 0; i < count; i++)
        cr_assert_eq(ids[i], wanted[i], "\"%s\", token %d: %d, and not %d", text, i, ids[i], wanted[i]);
}

#define GIVES(b, text, ...)                                                                                  \
    gives(b, text, (const int32_t[]){__VA_ARGS__},                                                           \
          (int)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static void says(const struct bpe *b, int32_t id, const char *wanted)
{
    size_t length;
    const char *bytes = bpe_bytes(b, id, &length);
    cr_assert(length == strlen(wanted) && !memcmp(bytes, wanted, length), "token %d", id);
}

Test(bpe, a_token_of_a_model_of_text_is_a_byte)
{
    struct bpe *b;
    cr_assert_eq(open_changed(&b, "\"version\"", "\"version\"", NULL), 0);
    cr_assert_eq(bpe_size(b), 256);
    for (int byte = 1; byte < 256; byte++) {
        char text[2] = {(char)byte};
        GIVES(b, text, byte);
        says(b, byte, text);
    }
    bpe_free(b);
}

Test(bpe, neighbours_become_one_in_the_order_of_the_merges)
{
    static const char *const forms[] = {"[\"t h\",\"th e\",\"Ġ the\"]",
                                        "[[\"t\",\"h\"],[\"th\",\"e\"],[\"Ġ\",\"the\"]]"};
    for (int i = 0; i < 2; i++) {
        struct bpe *b = open_words(forms[i], "");
        GIVES(b, "the the", 257, 258);
        GIVES(b, "thth", 256, 256);
        GIVES(b, " th", ' ', 256);
        GIVES(b, "t he", 't', ' ', 'h', 'e');
        GIVES(b, "ethe", 'e', 257);
        says(b, 258, " the");
        says(b, 259, "");
        says(b, -1, "");
        bpe_free(b);
    }
}

Test(bpe, a_merge_that_comes_first_in_the_list_goes_first_in_the_word)
{
    struct bpe *b = NULL;
    struct error err = {0};
    cr_assert_eq(
        open_changed(&b, "},\"merges\":[]", ",\"he\":256,\"th\":257},\"merges\":[\"h e\",\"t h\"]", &err), 0,
        "%s", err.text);
    GIVES(b, "the", 't', 256);
    GIVES(b, "tht", 257, 't');
    bpe_free(b);
}

Test(bpe, a_word_that_is_a_token_is_taken_whole_where_merges_are_ignored)
{
    struct bpe *b = open_words("[\"t h\"]", ",\"ignore_merges\":true");
    GIVES(b, "the", 257);
    GIVES(b, "thet", 256, 'e', 't');
    bpe_free(b);
}

Test(bpe, added_tokens_are_found_before_words_and_special_ones_are_not_shown)
{
    struct bpe *b = NULL;
    struct error err = {0};
    cr_assert_eq(open_changed(&b, "\"added_tokens\":[]",
                              "\"added_tokens\":[{\"id\":256,\"content\":\"<|end|>\",\"special\":true},{"
                              "\"id\":257,\"content\":\"<|end|>!\"}]",
                              &err),
                 0, "%s", err.text);
    GIVES(b, "a<|end|>b", 'a', 256, 'b');
    GIVES(b, "<|end|>!<|end|>", 257, 256);
    GIVES(b, "<|end", '<', '|', 'e', 'n', 'd');
    says(b, 256, "");
    says(b, 257, "<|end|>!");
    cr_assert_eq(bpe_size(b), 258);
    bpe_free(b);
}

Test(bpe, a_text_without_a_blank_in_front_gets_one_where_that_is_asked_for)
{
    struct bpe *b = NULL;
    cr_assert_eq(open_changed(&b, "\"add_prefix_space\":false", "\"add_prefix_space\":true", NULL), 0);
    GIVES(b, "ab", ' ', 'a', 'b');
    GIVES(b, " a", ' ', 'a');
    GIVES(b, "\na", ' ', '\n', 'a');
    bpe_free(b);
}

Test(bpe, what_is_no_byte_level_bpe_is_refused_by_its_name)
{
    static const struct {
        const char *was, *now, *part;
    } table[] = {
        {"\"type\":\"BPE\"", "\"type\":\"Unigram\"", "its model is Unigram, and generate knows BPE alone"},
        {"\"type\":\"BPE\"", "\"type\":\"WordPiece\"", "its model is WordPiece"},
        {"\"pre_tokenizer\":{\"type\":\"ByteLevel\"", "\"pre_tokenizer\":{\"type\":\"Metaspace\"",
         "its pre_tokenizer is Metaspace"},
        {"\"decoder\":{\"type\":\"ByteLevel\"", "\"decoder\":{\"type\":\"Sequence\"",
         "its decoder is Sequence"},
        {"\"normalizer\":null", "\"normalizer\":{\"type\":\"NFC\"}", "its normalizer is NFC"},
        {"\"post_processor\":null", "\"post_processor\":{\"type\":\"TemplateProcessing\"}",
         "its post_processor is TemplateProcessing"},
        {"\"byte_fallback\":false", "\"byte_fallback\":true", "BPE with byte_fallback"},
        {"\"dropout\":null", "\"dropout\":0.1",
         "its model is BPE with dropout, and generate knows BPE without it alone"},
        {"\"end_of_word_suffix\":null", "\"end_of_word_suffix\":\"</w>\"",
         "its model is BPE with end_of_word_suffix"},
        {"\"merges\":[]", "\"merges\":[\"t h\"]",
         "model.merges: number 0 has or makes a token that model.vocab lacks"},
        {"\"merges\":[]", "\"merges\":[7]", "model.merges: number 0 is no pair"},
        {"\"a\":97", "\"a\":98", "model.vocab: b has a number that another token has"},
        {"\"a\":97", "\"a\":-1", "model.vocab: a has no number from 0"},
        {"\"a\":97", "\"a\":99999999", "model.vocab: a has no number from 0"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":300,\"content\":\"\"}]",
         "added_tokens: one has no content"},
        {"\"added_tokens\":[]", "\"added_tokens\":[{\"id\":300,\"content\":\"x\",\"lstrip\":true}]",
         "lstrip"},
        {"\"merges\"", "\"merged\"", "merges"},
        {"{\"version\"", "[{\"version\"", "tokenizer.json: "},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct bpe *b = NULL;
        struct error err = {0};
        cr_assert_eq(open_changed(&b, table[i].was, table[i].now, &err), -1, "%s", table[i].now);
        cr_assert_eq(err.code, ERR_DATA);
        cr_assert(!strncmp(err.text, "tokenizer.json: ", 16) && strstr(err.text, table[i].part), "%s: %s",
                  table[i].now, err.text);
    }
}

/* GPT-2's own file has one. */
Test(bpe, a_token_for_what_is_unknown_is_never_needed)
{
    struct bpe *b = NULL;
    struct error err = {0};
    cr_assert_eq(open_changed(&b, "\"unk_token\":null", "\"unk_token\":\"a\"", &err), 0, "%s", err.text);
    gives(b, "b", (const int32_t[]){98}, 1);
    bpe_free(b);
}

Test(bpe, a_byte_that_no_token_stands_for_is_named)
{
    struct bpe *b = NULL;
    int32_t ids[ROOM];
    struct error err = {0};
    cr_assert_eq(open_changed(&b, "\"a\":97,", "", NULL), 0);
    cr_assert_eq(bpe_encode(b, "bab", 3, ids, &err), -1);
    cr_assert(strstr(err.text, "no token stands for the byte 0x61"), "%s", err.text);
    bpe_free(b);
}

Test(bpe, a_token_without_bytes_is_refused)
{
    struct bpe *b = NULL;
    struct error err = {0};
    cr_assert_lt(open_changed(&b, "},\"merges\":[]", ",\"\":256},\"merges\":[]", &err), 0);
    cr_assert(strstr(err.text, "token 256 stands for no bytes"), "%s", err.text);
}

/* ---- long words, against the rule as it is written ---- */

enum { MERGES = 24, LETTERS = 300 };

struct made {
    char left[16], right[16];
};

/* Some of them join what others make, also what comes later in the list. */
static int make_merges(uint32_t seed, struct made *merge)
{
    char part[3 + MERGES][16] = {"a", "b", "c"};
    int parts = 3, n = 0;
    for (int tries = 0; tries < 200 && n < MERGES; tries++) {
        seed = seed * 1664525 + 1013904223;
        const char *left = part[(seed >> 8) % (uint32_t)parts], *right = part[(seed >> 20) % (uint32_t)parts];
        bool known = strlen(left) + strlen(right) > 12;
        char both[32];
        snprintf(both, sizeof both, "%s%s", left, right);
        for (int i = 0; i < parts; i++)
            known = known || !strcmp(part[i], both);
        if (known)
            continue;
        snprintf(merge[n].left, sizeof merge[n].left, "%s", left);
        snprintf(merge[n++].right, sizeof merge->right, "%s", right);
        snprintf(part[parts++], sizeof *part, "%s", both);
    }
    return n;
}

/* The list is told backwards for odd seeds: what is made of others comes before them. */
static struct bpe *open_made(const struct made *merge, int n, bool backwards)
{
    struct bpe *b = NULL;
    struct error err = {0};
    struct str now = str_init(1 << 16);
    for (int i = 0; i < n; i++)
        str_addf(&now, ",\"%s%s\":%d", merge[i].left, merge[i].right, 256 + i);
    str_adds(&now, "},\"merges\":[");
    for (int i = 0; i < n; i++) {
        const struct made *m = &merge[backwards ? n - 1 - i : i];
        str_addf(&now, "%s\"%s %s\"", i ? "," : "", m->left, m->right);
    }
    str_adds(&now, "]");
    cr_assert_eq(open_changed(&b, "},\"merges\":[]", str_text(&now), &err), 0, "%s", err.text);
    str_clear(&now);
    return b;
}

/* One join after the other: of the earliest merge that fits anywhere the first place. */
static int join_slowly(const struct made *merge, int n, bool backwards, char (*token)[16], int count)
{
    for (;;) {
        int at = -1;
        for (int rank = 0; rank < n && at < 0; rank++)
            for (int i = 0; i + 1 < count && at < 0; i++) {
                const struct made *m = &merge[backwards ? n - 1 - rank : rank];
                if (!strcmp(token[i], m->left) && !strcmp(token[i + 1], m->right))
                    at = i;
            }
        if (at < 0)
            return count;
        size_t used = strlen(token[at]), more = strlen(token[at + 1]) + 1;
        cr_assert_leq(used + more, sizeof *token);
        memcpy(token[at] + used, token[at + 1], more);
        memmove(token[at + 1], token[at + 2], (size_t)(count - at - 2) * sizeof *token);
        count--;
    }
}

Test(bpe, long_words_are_joined_as_one_join_after_the_other_would)
{
    for (uint32_t seed = 0; seed < 40; seed++) {
        struct made merge[MERGES];
        static char token[LETTERS][16];
        char text[LETTERS + 1] = "";
        int32_t ids[2 * LETTERS + 1];
        struct error err = {0};
        int n = make_merges(seed, merge);
        uint32_t draw = seed + 77;
        for (int i = 0; i < LETTERS; i++) {
            draw = draw * 1664525 + 1013904223;
            text[i] = (char)('a' + (draw >> 16) % 3);
            snprintf(token[i], sizeof token[i], "%c", text[i]);
        }
        struct bpe *b = open_made(merge, n, seed % 2);
        int wanted = join_slowly(merge, n, seed % 2, token, LETTERS);
        int64_t found = bpe_encode(b, text, LETTERS, ids, &err);
        cr_assert_eq(found, wanted, "seed %u: %lld tokens, and not %d", seed, (long long)found, wanted);
        for (int i = 0; i < wanted; i++)
            says(b, ids[i], token[i]);
        bpe_free(b);
    }
}
