/* The text of a set. */
#include "common/base/set.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

/* Words from the lowest to the highest that has a member; one at least. */
static int words_of(struct worker_set set)
{
    int words = SET_WORDS;
    while (words > 1 && !set.bits[words - 1])
        words--;
    return words;
}

void set_write(struct worker_set set, char out[SET_TEXT_MAX])
{
    int words = words_of(set);
    for (int i = 0; i < words; i++)
        snprintf(out + SET_DIGITS * i, SET_DIGITS + 1, "%016" PRIx64, set.bits[words - 1 - i]);
}

static bool read_word(const char *digits, uint64_t *ret)
{
    char text[SET_DIGITS + 1] = "";
    uint8_t bytes[SET_DIGITS / 2];
    memcpy(text, digits, SET_DIGITS);
    if (!hex_decode(text, bytes, sizeof bytes))
        return false;
    *ret = 0;
    for (size_t i = 0; i < sizeof bytes; i++)
        *ret = *ret << 8 | bytes[i];
    return true;
}

bool set_read(const char *text, struct worker_set *ret)
{
    struct worker_set set = {0};
    size_t digits = strlen(text), words = digits / SET_DIGITS;
    if (!digits || digits % SET_DIGITS || words > SET_WORDS)
        return false;
    for (size_t i = 0; i < words; i++)
        if (!read_word(text + SET_DIGITS * i, &set.bits[words - 1 - i]))
            return false;
    if (!set_is_empty(set_minus(set, set_below(RM_WORKERS_MAX))))
        return false;
    *ret = set;
    return true;
}

void set_describe(struct worker_set set, char out[SET_TEXT_MAX])
{
    char text[SET_TEXT_MAX];
    set_write(set, text);
    size_t zeros = strspn(text, "0"), digits = strlen(text);
    zeros = zeros < digits ? zeros : digits - 1;
    memcpy(out, text + zeros, digits - zeros + 1);
}
