/* Wraps jansson: nothing else in the tree includes it. */
#include "common/wire/json.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* struct js is never defined: it is jansson's json_t under a name of our own. */
static json_t *raw(const struct js *value)
{
    return (json_t *)(uintptr_t)value;
}

static struct js *wrap(json_t *value)
{
    return (struct js *)value;
}

struct js *js_parse(const char *text, size_t length, const char *what, struct error *err)
{
    json_error_t why;
    json_t *value = json_loadb(text, length, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &why);
    if (!value)
        err_set(err, ERR_PROTOCOL, "%s:%d:%d: not valid JSON: %s", what, why.line, why.column, why.text);
    return wrap(value);
}

/* A backslash and what it escapes are one step, so that "\\\\u0000" stays the text that it is. */
static void replace_nuls(char *text, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++) {
        if (text[i] != '\\')
            continue;
        if (length - i >= 6 && !memcmp(text + i, "\\u0000", 6))
            memcpy(text + i + 2, "fffd", 4);
        i++;
    }
}

struct js *js_parse_foreign(char *text, size_t length, const char *what, struct error *err)
{
    json_error_t why;
    replace_nuls(text, length);
    json_t *value = json_loadb(text, length, JSON_DECODE_ANY, &why);
    if (!value)
        err_set(err, ERR_PROTOCOL, "%s:%d:%d: not valid JSON: %s", what, why.line, why.column, why.text);
    return wrap(value);
}

void js_free(struct js *value)
{
    json_decref(raw(value));
}

struct js *js_copy(const struct js *value)
{
    return wrap(json_deep_copy(raw(value)));
}

enum js_kind js_kind(const struct js *value)
{
    switch (json_typeof(raw(value))) {
    case JSON_TRUE:
    case JSON_FALSE:
        return JS_BOOL;
    case JSON_INTEGER:
        return JS_INT;
    case JSON_REAL:
        return JS_REAL;
    case JSON_STRING:
        return JS_STRING;
    case JSON_ARRAY:
        return JS_ARRAY;
    case JSON_OBJECT:
        return JS_OBJECT;
    default:
        return JS_NULL;
    }
}

const char *js_kind_name(enum js_kind kind)
{
    static const char *const names[] = {"null",     "true or false", "a whole number", "a number",
                                        "a string", "a list",        "an object"};
    return names[kind];
}

static void print_value(const struct js *value, size_t flags, struct str *out)
{
    char *text = json_dumps(raw(value), flags | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17));
    if (!text)
        abort(); /* out of memory: our trees hold valid UTF-8 only */
    str_adds(out, text);
    free(text);
}

void js_print(const struct js *value, struct str *out)
{
    print_value(value, JSON_COMPACT, out);
}

void js_print_canonical(const struct js *value, struct str *out)
{
    print_value(value, JSON_COMPACT | JSON_SORT_KEYS, out);
}

void js_print_pretty(const struct js *value, struct str *out)
{
    print_value(value, JSON_INDENT(2), out);
}

struct js *js_object(void)
{
    return wrap(json_object());
}

struct js *js_array(void)
{
    return wrap(json_array());
}

void js_set(struct js *object, const char *key, struct js *child)
{
    if (json_object_set_new(raw(object), key, raw(child)) < 0)
        abort();
}

void js_set_int(struct js *object, const char *key, int64_t value)
{
    js_set(object, key, js_new_int(value));
}

void js_set_real(struct js *object, const char *key, double value)
{
    js_set(object, key, js_new_real(value));
}

void js_set_bool(struct js *object, const char *key, bool value)
{
    js_set(object, key, js_new_bool(value));
}

void js_set_string(struct js *object, const char *key, const char *value)
{
    js_set(object, key, js_new_string(value));
}

void js_push(struct js *array, struct js *child)
{
    if (json_array_append_new(raw(array), raw(child)) < 0)
        abort();
}

void js_push_int(struct js *array, int64_t value)
{
    js_push(array, js_new_int(value));
}

void js_push_string(struct js *array, const char *value)
{
    js_push(array, js_new_string(value));
}

struct js *js_new_int(int64_t value)
{
    return wrap(json_integer(value));
}

struct js *js_new_real(double value)
{
    return isfinite(value) ? wrap(json_real(value)) : js_new_null();
}

struct js *js_new_bool(bool value)
{
    return wrap(json_boolean(value));
}

/* Bytes that are not UTF-8 (a file name, say) come out as '?', never as a failure. */
struct js *js_new_string(const char *value)
{
    json_t *made = json_string(value);
    if (made)
        return wrap(made);
    size_t length = strlen(value);
    char *ascii = malloc(length + 1);
    if (!ascii)
        abort();
    for (size_t i = 0; i <= length; i++)
        ascii[i] = (unsigned char)value[i] < 128 ? value[i] : '?';
    made = json_string(ascii);
    free(ascii);
    return wrap(made);
}

struct js *js_new_null(void)
{
    return wrap(json_null());
}

size_t js_size(const struct js *container)
{
    json_t *value = raw(container);
    return json_is_object(value) ? json_object_size(value) : json_array_size(value);
}

const struct js *js_at(const struct js *array, size_t index)
{
    return wrap(json_array_get(raw(array), index));
}

const struct js *js_get(const struct js *object, const char *key)
{
    return wrap(json_object_get(raw(object), key));
}

void *js_first(const struct js *object)
{
    return json_object_iter(raw(object));
}

void *js_next(const struct js *object, void *it)
{
    return json_object_iter_next(raw(object), it);
}

const char *js_key(void *it)
{
    return json_object_iter_key(it);
}

const struct js *js_value(void *it)
{
    return wrap(json_object_iter_value(it));
}

bool js_as_int(const struct js *value, int64_t *ret)
{
    if (!json_is_integer(raw(value)))
        return false;
    *ret = json_integer_value(raw(value));
    return true;
}

bool js_as_real(const struct js *value, double *ret)
{
    if (!json_is_number(raw(value)))
        return false;
    *ret = json_number_value(raw(value));
    return true;
}

bool js_as_bool(const struct js *value, bool *ret)
{
    if (!json_is_boolean(raw(value)))
        return false;
    *ret = json_is_true(raw(value));
    return true;
}

const char *js_as_string(const struct js *value)
{
    return json_string_value(raw(value));
}

static int refuse_member(const struct js *found, const char *key, const char *wanted, struct error *err)
{
    if (!found)
        return err_set(err, ERR_PROTOCOL, "%s is missing", key);
    return err_set(err, ERR_PROTOCOL, "%s is %s, not %s", key, js_kind_name(js_kind(found)), wanted);
}

int js_need_int(const struct js *object, const char *key, int64_t lowest, int64_t highest, int64_t *ret,
                struct error *err)
{
    const struct js *found = js_get(object, key);
    int64_t value;
    if (!js_as_int(found, &value))
        return refuse_member(found, key, js_kind_name(JS_INT), err);
    if (value < lowest || value > highest)
        return err_set(err, ERR_PROTOCOL, "%s is %lld, outside %lld to %lld", key, (long long)value,
                       (long long)lowest, (long long)highest);
    *ret = value;
    return 0;
}

int js_need_real(const struct js *object, const char *key, double *ret, struct error *err)
{
    const struct js *found = js_get(object, key);
    return js_as_real(found, ret) ? 0 : refuse_member(found, key, js_kind_name(JS_REAL), err);
}

int js_need_bool(const struct js *object, const char *key, bool *ret, struct error *err)
{
    const struct js *found = js_get(object, key);
    return js_as_bool(found, ret) ? 0 : refuse_member(found, key, js_kind_name(JS_BOOL), err);
}

int js_need_string(const struct js *object, const char *key, char *out, size_t size, struct error *err)
{
    const struct js *found = js_get(object, key);
    const char *text = js_as_string(found);
    if (!text)
        return refuse_member(found, key, js_kind_name(JS_STRING), err);
    if (strlen(text) >= size)
        return err_set(err, ERR_PROTOCOL, "%s is longer than %zu bytes", key, size - 1);
    text_copy(out, size, text);
    return 0;
}

int js_need(const struct js *object, const char *key, enum js_kind kind, const struct js **ret,
            struct error *err)
{
    const struct js *found = js_get(object, key);
    if (!found || js_kind(found) != kind)
        return refuse_member(found, key, js_kind_name(kind), err);
    *ret = found;
    return 0;
}
