#include "trainer/tokens/words.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "trainer/tokens/unicode_words.h"

enum kind { BLANK, LETTER, NUMBER, OTHER };

struct character {
    uint32_t code;
    size_t bytes;
};

static const uint32_t no_code = UINT32_MAX;

/* Of the byte that a character begins with; 0: none does. */
static size_t bytes_of(unsigned char first)
{
    return first < 0x80 ? 1 : first >> 5 == 6 ? 2 : first >> 4 == 14 ? 3 : first >> 3 == 30 ? 4 : 0;
}

static struct character character_at(const char *text, size_t length, size_t at)
{
    const unsigned char *p = (const unsigned char *)text + at;
    size_t bytes = bytes_of(*p);
    if (!bytes || bytes > length - at)
        return (struct character){no_code, 1};
    uint32_t code = bytes == 1 ? *p : *p & (0x7Fu >> bytes);
    for (size_t i = 1; i < bytes; i++) {
        if (p[i] >> 6 != 2)
            return (struct character){no_code, 1};
        code = code << 6 | (p[i] & 0x3F);
    }
    return (struct character){code, bytes};
}

/* \s: Unicode's White_Space */
static bool is_blank(uint32_t code)
{
    return (code >= 9 && code <= 13) || code == ' ' || code == 0x85 || code == 0xA0 || code == 0x1680 ||
           (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 || code == 0x202F ||
           code == 0x205F || code == 0x3000;
}

static enum kind kind_of(uint32_t code)
{
    if (code == no_code)
        return OTHER;
    return is_blank(code)            ? BLANK
           : unicode_is_letter(code) ? LETTER
           : unicode_is_number(code) ? NUMBER
                                     : OTHER;
}

/* The end of the run of characters of one kind that begins at `from`; *last: where its last one begins. */
static size_t run_end(const char *text, size_t length, size_t from, enum kind kind, size_t *last)
{
    size_t at = from;
    while (at < length) {
        struct character c = character_at(text, length, at);
        if (kind_of(c.code) != kind)
            break;
        *last = at;
        at += c.bytes;
    }
    return at;
}

/* Bytes of 's, 't, 're ...; 0: there is none. */
static size_t contraction(const char *text, size_t length)
{
    static const char *const known[] = {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        size_t bytes = strlen(known[i]);
        if (bytes <= length && !memcmp(text, known[i], bytes))
            return bytes;
    }
    return 0;
}

size_t word_end(const char *text, size_t length, size_t from)
{
    size_t last = from, short_word = contraction(text + from, length - from);
    if (short_word)
        return from + short_word;
    size_t start =
        text[from] == ' ' && from + 1 < length ? from + 1 : from; /* a blank that goes with its word */
    enum kind kind = kind_of(character_at(text, length, start).code);
    if (kind != BLANK)
        return run_end(text, length, start, kind, &last);
    size_t end = run_end(text, length, from, BLANK, &last);
    return end == length || last == from ? end : last; /* the last blank goes with the word behind it */
}
