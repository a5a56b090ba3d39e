#include "operator/core/read.h"

#include <stdio.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"
#include "operator/core/instant.h"

const struct js *read_at(const struct js *object, const char *path)
{
    char part[64];
    while (object && *path) {
        size_t length = strcspn(path, ".");
        RM_ASSERT(length < sizeof part, "a member of %zu letters", length);
        snprintf(part, sizeof part, "%.*s", (int)length, path);
        object = js_get(object, part);
        path += length + (path[length] == '.');
    }
    return object;
}

/* Bytes of the character that begins here by its first byte. */
static size_t character_length(unsigned char first)
{
    if (first < 0x80)
        return 1;
    return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
}

void text_tame(const char *text, char *out, size_t size)
{
    size_t used = 0;
    RM_ASSERT(size > 0, "a text of %zu letters into nothing", strlen(text));
    while (*text) {
        size_t length = character_length((unsigned char)*text);
        if (used + length >= size || strnlen(text, length) < length)
            break;
        memcpy(out + used, text, length);
        if ((unsigned char)*text < 0x20 || *text == 0x7f)
            out[used] = ' ';
        used += length;
        text += length;
    }
    out[used] = 0;
}

void text_tame_ends(const char *text, char *out, size_t size)
{
    static const char gap[] = " ... ";
    size_t length = strlen(text);
    text_tame(text, out, length < size ? size : size / 2);
    if (length < size)
        return;
    size_t used = strlen(out), left = size - used - sizeof gap;
    RM_ASSERT(used + sizeof gap < size && left < length, "%zu of %zu letters, and %zu", used, length, left);
    const char *end = text + length - left;
    while (((unsigned char)*end & 0xc0) == 0x80)
        end++; /* no half of a character */
    memcpy(out + used, gap, sizeof gap);
    text_tame(end, out + used + sizeof gap - 1, left + 1);
}

void read_text(const struct js *object, const char *path, char *out, size_t size)
{
    const char *text = js_as_string(read_at(object, path));
    if (text)
        text_tame(text, out, size);
}

void read_int(const struct js *object, const char *path, int64_t lowest, int64_t highest, int64_t *ret)
{
    int64_t value;
    double real;
    const struct js *found = read_at(object, path);
    if (!js_as_int(found, &value)) {
        if (!js_as_real(found, &real) || !(real >= -9e15 && real <= 9e15))
            return;
        value = (int64_t)real;
    }
    RM_ASSERT(lowest <= highest, "a number from %lld to %lld", (long long)lowest, (long long)highest);
    *ret = value < lowest ? lowest : value > highest ? highest : value;
}

void read_small(const struct js *object, const char *path, int lowest, int highest, int *ret)
{
    int64_t value = *ret;
    read_int(object, path, lowest, highest, &value);
    *ret = (int)value;
}

void read_flag(const struct js *object, const char *path, bool *ret)
{
    js_as_bool(read_at(object, path), ret);
}

void read_instant(const struct js *object, const char *path, int64_t *ret_ms)
{
    instant_parse(js_as_string(read_at(object, path)), ret_ms);
}
