#include "common/storage/object/credentials_json.h"

#include <ctype.h>
#include <string.h>

struct json {
    const char *at, *end;
};

static void skip_space(struct json *j)
{
    while (j->at < j->end && strchr(" \t\r\n", *j->at) && *j->at)
        j->at++;
}

static bool skip_char(struct json *j, char c)
{
    skip_space(j);
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

/* Keys, tokens and dates are ASCII: of the escapes only those of one character are read. out NULL: passed
 * over. */
static bool read_text(struct json *j, char *out, size_t size)
{
    size_t length = 0;
    if (!skip_char(j, '"'))
        return false;
    while (j->at < j->end && *j->at != '"') {
        char c = *j->at++;
        if (c == '\\') {
            if (j->at == j->end || !strchr("\"\\/", *j->at))
                return false;
            c = *j->at++;
        }
        if (!c || (out && length + 1 >= size))
            return false;
        if (out)
            out[length++] = c;
    }
    if (out)
        out[length] = 0;
    return skip_char(j, '"');
}

static bool read_word(struct json *j, char *out, size_t size)
{
    const char *from = j->at;
    while (j->at < j->end && (isalnum((unsigned char)*j->at) || strchr("+-.", *j->at)) && *j->at)
        j->at++;
    size_t length = (size_t)(j->at - from);
    if (!length || (out && length >= size))
        return false;
    if (out) {
        memcpy(out, from, length);
        out[length] = 0;
    }
    return true;
}

static bool read_pair(struct json *j, const struct credentials_field *field, int fields)
{
    char name[64];
    if (!read_text(j, name, sizeof name) || !skip_char(j, ':'))
        return false;
    skip_space(j);
    bool word = j->at < j->end && *j->at != '"';
    char *out = NULL;
    size_t size = 0;
    for (int i = 0; i < fields; i++)
        if (!strcmp(name, field[i].name) && field[i].word == word) {
            out = field[i].out;
            size = field[i].size;
        }
    return word ? read_word(j, out, size) : read_text(j, out, size);
}

bool credentials_json(const char *text, size_t length, const struct credentials_field *field, int fields)
{
    struct json j = {text, text + length};
    if (!skip_char(&j, '{'))
        return false;
    if (skip_char(&j, '}'))
        return true;
    while (read_pair(&j, field, fields)) {
        if (skip_char(&j, '}'))
            return true;
        if (!skip_char(&j, ','))
            return false;
    }
    return false;
}
