#include "common/kube/split.h"

#include <string.h>

enum { REST_MAX = 64 << 10 };

struct split split_init(bool lines, void (*object)(void *ctx, char *text, size_t length), void *ctx)
{
    return (struct split){.lines = lines,
                          .object = object,
                          .ctx = ctx,
                          .text = str_init(SPLIT_OBJECT_MAX),
                          .rest = str_init(REST_MAX)};
}

void split_reset(struct split *split)
{
    struct str text = split->text, rest = split->rest;
    *split = split_init(split->lines, split->object, split->ctx);
    str_reset(&text);
    str_reset(&rest);
    split->text = text;
    split->rest = rest;
}

void split_clear(struct split *split)
{
    str_clear(&split->text);
    str_clear(&split->rest);
}

static void hand_out(struct split *split)
{
    if (split->text.length)
        split->object(split->ctx, split->text.data, split->text.length);
    str_reset(&split->text);
}

static void add_lines(struct split *split, const char *bytes, size_t count)
{
    for (const char *end; count && (end = memchr(bytes, '\n', count)); bytes = end + 1) {
        str_add(&split->text, bytes, (size_t)(end - bytes));
        count -= (size_t)(end - bytes) + 1;
        if (split->text.truncated)
            return;
        hand_out(split);
    }
    str_add(&split->text, bytes, count);
}

static bool ends_with(const struct str *text, const char *end)
{
    size_t length = strlen(end);
    return text->length >= length && !memcmp(text->data + text->length - length, end, length);
}

/* The items open with the bracket behind a key of the outermost object; white space there is not the API
 * server's way, but it is JSON's. */
static bool opens_items(const struct split *split)
{
    struct str key = split->rest;
    while (key.length && strchr(" \t\r\n", key.data[key.length - 1]))
        key.length--;
    if (split->depth != 1 || !key.length || key.data[key.length - 1] != ':')
        return false;
    key.length--;
    while (key.length && strchr(" \t\r\n", key.data[key.length - 1]))
        key.length--;
    return ends_with(&key, "\"items\"");
}

static void step_string(struct split *split, char c)
{
    if (split->escaped)
        split->escaped = false;
    else if (c == '\\')
        split->escaped = true;
    else if (c == '"')
        split->in_string = false;
}

/* Between the elements: their commas and white space are dropped. */
static void step_between(struct split *split, char c)
{
    if (c == ']') {
        split->in_items = false;
        split->depth--;
        str_add(&split->rest, &c, 1);
        return;
    }
    if (c == ',' || strchr(" \t\r\n", c))
        return;
    split->in_item = true;
    split->depth += c == '{' || c == '[';
    split->in_string = c == '"';
    str_add(&split->text, &c, 1);
}

static void step_over(struct split *split, char c)
{
    if (split->in_items && !split->in_item) {
        step_between(split, c);
        return;
    }
    bool opens = !split->in_string && c == '[' && !split->in_items && opens_items(split);
    str_add(split->in_item ? &split->text : &split->rest, &c, 1);
    if (split->in_string) {
        step_string(split, c);
        return;
    }
    split->in_string = c == '"';
    split->depth += c == '{' || c == '[';
    split->depth -= c == '}' || c == ']';
    split->in_items |= opens;
    if (split->in_item && split->depth == 2) {
        split->in_item = false;
        hand_out(split);
    }
}

int split_add(struct split *split, const char *bytes, size_t count)
{
    if (split->lines)
        add_lines(split, bytes, count);
    else
        for (size_t i = 0; i < count; i++)
            step_over(split, bytes[i]);
    return split->text.truncated || split->rest.truncated ? -1 : 0;
}
