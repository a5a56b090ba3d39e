#include "operator/core/labels.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/base/str.h"

enum { PREFIX_MAX = 253, NAME_MAX_CHARS = 63 };

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters and digits at both ends; between them these characters, too. */
static bool is_word(const char *text, size_t length, size_t most, const char *between)
{
    if (!length || length > most || !is_alphanumeric(text[0]) || !is_alphanumeric(text[length - 1]))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_alphanumeric(text[i]) && !strchr(between, text[i]))
            return false;
    return true;
}

/* A DNS name: each part between its dots is a word in small letters. */
static bool is_prefix(const char *text, size_t length)
{
    if (length > PREFIX_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        if (text[i] >= 'A' && text[i] <= 'Z')
            return false;
    for (;;) {
        const char *dot = memchr(text, '.', length);
        size_t part = dot ? (size_t)(dot - text) : length;
        if (!is_word(text, part, NAME_MAX_CHARS, "-"))
            return false;
        if (!dot)
            return true;
        text += part + 1;
        length -= part + 1;
    }
}

static bool is_key(const char *text, size_t length)
{
    const char *slash = memchr(text, '/', length);
    if (slash) {
        size_t prefix = (size_t)(slash - text);
        if (!is_prefix(text, prefix))
            return false;
        text += prefix + 1;
        length -= prefix + 1;
    }
    return is_word(text, length, NAME_MAX_CHARS, "-_.");
}

static void copy(char *out, const char *text, size_t length)
{
    RM_ASSERT(length < OP_LABEL_KEY_MAX, "a part of a label of %zu letters", length);
    memcpy(out, text, length);
    out[length] = 0;
}

static int one(struct op_labels *labels, const char *text, size_t length, struct error *err)
{
    const char *equals = memchr(text, '=', length);
    size_t key = equals ? (size_t)(equals - text) : 0, value = equals ? length - key - 1 : 0;
    bool good = equals && is_key(text, key) && (!value || is_word(equals + 1, value, NAME_MAX_CHARS, "-_."));
    if (!good)
        return err_set(
            err, ERR_USAGE,
            "\"%.*s\" is no label: write KEY=VALUE, such as kubernetes.io/metadata.name=monitoring",
            (int)(length < 80 ? length : 80), text);
    if (labels->count == OP_LABELS_MAX)
        return err_set(err, ERR_USAGE, "more than %d labels", OP_LABELS_MAX);
    RM_ASSERT(key < OP_LABEL_KEY_MAX && value < OP_LABEL_VALUE_MAX, "a label of %zu and %zu letters", key,
              value);
    copy(labels->label[labels->count].key, text, key);
    copy(labels->label[labels->count].value, equals + 1, value);
    labels->count++;
    return 0;
}

int labels_read(struct op_labels *ret, const char *text, struct error *err)
{
    struct op_labels labels = {0};
    for (;;) {
        size_t length = strcspn(text, ",");
        if (one(&labels, text, length, err) < 0)
            return -1;
        if (!text[length])
            break;
        text += length + 1;
    }
    RM_ASSERT(labels.count >= 1 && labels.count <= OP_LABELS_MAX, "%d labels", labels.count);
    *ret = labels;
    return 0;
}
