#include "common/base/base64.h"

#include <stdint.h>
#include <string.h>

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(const void *bytes, size_t length, struct str *out)
{
    const uint8_t *at = bytes;
    for (size_t i = 0; i < length; i += 3) {
        size_t left = length - i;
        uint32_t word = (uint32_t)at[i] << 16 | (left > 1 ? (uint32_t)at[i + 1] << 8 : 0) |
                        (left > 2 ? (uint32_t)at[i + 2] : 0);
        char four[4] = {digits[word >> 18], digits[word >> 12 & 63], left > 1 ? digits[word >> 6 & 63] : '=',
                        left > 2 ? digits[word & 63] : '='};
        str_add(out, four, sizeof four);
    }
}

/* The three bytes of four digits, of which `padding` are missing. */
static void add_group(uint32_t word, int padding, struct str *out)
{
    char three[3] = {(char)(word >> 16), (char)(word >> 8), (char)word};
    str_add(out, three, (size_t)(3 - padding));
}

bool base64_decode(const char *text, struct str *out)
{
    uint32_t word = 0;
    int count = 0, padding = 0;
    for (; *text; text++) {
        const char *digit = strchr(digits, *text);
        if (strchr(" \t\r\n", *text))
            continue;
        if (*text == '=' ? count < 2 : !digit || padding)
            return false;
        padding += *text == '=';
        word = word << 6 | (*text == '=' ? 0 : (uint32_t)(digit - digits));
        if (++count < 4)
            continue;
        add_group(word, padding, out);
        word = 0;
        count = 0;
        if (padding) /* nothing but white space may follow */
            return text[1 + strspn(text + 1, " \t\r\n")] == 0;
    }
    return count == 0;
}
