#include "trainer/tokens/text_out.h"

#include <stdbool.h>

static const char replacement[] = "\xEF\xBF\xBD";

/* Bytes of the character that begins with this one; 0 where none does. */
static int length_of(unsigned char first)
{
    if (first < 0x80)
        return 1;
    if (first < 0xC2 || first > 0xF4)
        return 0;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* Overlong forms, surrogates and what lies past U+10FFFF show in the second byte. */
static bool can_follow(const struct text_out *t, unsigned char byte)
{
    unsigned char first = t->held[0], low = 0x80, high = 0xBF;
    if (t->count == 1) {
        low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
        high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
    }
    return byte >= low && byte <= high;
}

static void begin_letter(struct text_out *t, unsigned char byte, struct str *out)
{
    int length = length_of(byte);
    if (length > 1) {
        t->held[0] = byte;
        t->count = 1;
    } else if (length == 0) {
        str_adds(out, replacement);
    } else if (byte == '\n' || byte == '\t' || (byte >= 0x20 && byte != 0x7F)) {
        str_add(out, &byte, 1);
    }
}

void text_out_add(struct text_out *t, unsigned char byte, struct str *out)
{
    if (t->count && can_follow(t, byte)) {
        t->held[t->count++] = byte;
        if (t->count < length_of(t->held[0]))
            return;
        str_add(out, t->held, (size_t)t->count);
        t->count = 0;
        return;
    }
    text_out_end(t, out);
    begin_letter(t, byte, out);
}

void text_out_end(struct text_out *t, struct str *out)
{
    if (t->count)
        str_adds(out, replacement);
    t->count = 0;
}
