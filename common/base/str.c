#include "common/base/str.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

/* Makes room for `more` bytes and a NUL; returns how many of them fit below the ceiling. */
static size_t reserve(struct str *s, size_t more)
{
    size_t room = s->ceiling - s->length;
    RM_ASSERT(s->length <= s->ceiling, "%zu bytes of a text of %zu at most", s->length, s->ceiling);
    if (more > room) {
        s->truncated = true;
        more = room;
    }
    size_t needed = s->length + more + 1;
    if (needed <= s->capacity)
        return more;
    size_t capacity = s->capacity * 2 > needed ? s->capacity * 2 : needed + 48;
    char *grown = realloc(s->data, capacity);
    if (!grown)
        abort(); /* a few KiB that can't be had: nothing sensible is left to do */
    s->data = grown;
    s->capacity = capacity;
    return more;
}

void str_add(struct str *s, const void *bytes, size_t length)
{
    size_t fits = reserve(s, length);
    if (fits)
        memcpy(s->data + s->length, bytes, fits);
    s->length += fits;
    s->data[s->length] = 0;
    RM_ASSERT(s->length < s->capacity && s->length <= s->ceiling, "%zu bytes in %zu, of %zu at most",
              s->length, s->capacity, s->ceiling);
}

void str_adds(struct str *s, const char *text)
{
    str_add(s, text, strlen(text));
}

void str_addf(struct str *s, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n > 0) {
        size_t fits = reserve(s, (size_t)n);
        vsnprintf(s->data + s->length, fits + 1, format, again);
        s->length += fits;
    }
    va_end(again);
}

void str_reset(struct str *s)
{
    s->length = 0;
    s->truncated = false;
    if (s->data)
        s->data[0] = 0;
}

void str_clear(struct str *s)
{
    free(s->data);
    *s = str_init(s->ceiling);
}

const char *str_text(const struct str *s)
{
    return s->data ? s->data : "";
}

bool text_copy(char *out, size_t size, const char *text)
{
    size_t length = strnlen(text, size);
    bool whole = length < size;
    RM_ASSERT(size > 0, "no room for %.40s", text);
    if (!whole)
        length = size - 1;
    memcpy(out, text, length);
    out[length] = 0;
    return whole;
}

static bool is_inside(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

char *text_copy_ends(char *out, size_t size, const char *text)
{
    /* A sentence says most where it begins: thing and what to do. Its cause comes last, and is short. */
    enum { CAUSE_MOST = 36 };
    static const char gap[] = " ... ";
    size_t length = strlen(text);
    RM_ASSERT(size >= 32, "room of %zu for both ends of %.40s", size, text);
    if (length < size) {
        memcpy(out, text, length + 1);
        return out;
    }
    size_t room = size - sizeof gap, half = room / 2;
    size_t begin = room - (half < CAUSE_MOST ? half : CAUSE_MOST);
    while (begin > 0 && is_inside(text[begin]))
        begin--;
    const char *end = text + length - (size - sizeof gap - begin);
    while (is_inside(*end))
        end++;
    memcpy(out, text, begin);
    memcpy(out + begin, gap, sizeof gap - 1);
    memcpy(out + begin + sizeof gap - 1, end, (size_t)(text + length - end) + 1);
    return out;
}

char *text_print_ends(char *out, size_t size, const char *format, ...)
{
    char whole[2048];
    va_list args;
    va_start(args, format);
    vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    return text_copy_ends(out, size, whole);
}

void hex_encode(const void *bytes, size_t length, char *out)
{
    static const char digits[] = "0123456789abcdef";
    const uint8_t *in = bytes;
    for (size_t i = 0; i < length; i++) {
        out[2 * i] = digits[in[i] >> 4];
        out[2 * i + 1] = digits[in[i] & 15];
    }
    out[2 * length] = 0;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

bool hex_decode(const char *text, void *bytes, size_t length)
{
    uint8_t *out = bytes;
    if (strlen(text) != 2 * length)
        return false;
    for (size_t i = 0; i < length; i++) {
        int high = hex_value(text[2 * i]), low = hex_value(text[2 * i + 1]);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}
