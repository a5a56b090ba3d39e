#include "common/os/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/config.h"

static char name[48] = "ringmaster";
static bool as_json;

void log_name(const char *program)
{
    text_copy(name, sizeof name, program);
}

void log_as_json(void)
{
    as_json = true;
}

static enum log_level threshold(void)
{
    const char *level = config_get(CONFIG_LOG);
    if (level && !strcmp(level, "debug"))
        return LOG_DEBUG;
    if (!level && as_json)
        return LOG_INFO;
    return level && !strcmp(level, "info") ? LOG_INFO : LOG_WARN;
}

/* Text as the inside of a JSON string. Bytes that are not ASCII stay as they are, if they are UTF-8. */
static void add_escaped(struct str *out, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (text[i] == '"' || text[i] == '\\')
            str_addf(out, "\\%c", text[i]);
        else if ((unsigned char)text[i] < ' ')
            str_addf(out, "\\u%04x", (unsigned char)text[i]);
        else
            str_add(out, text + i, 1);
}

/* A quoted value ends with the quote that a space or the end follows: the value itself may hold others. */
static const char *value_end(const char *value)
{
    if (*value != '"')
        return value + strcspn(value, " ");
    const char *end = value + 1;
    while (*end && !(*end == '"' && (end[1] == ' ' || !end[1])))
        end++;
    return end;
}

/* key=value key="value with spaces" */
static void add_pairs(struct str *out, const char *pairs)
{
    while (*(pairs += strspn(pairs, " "))) {
        size_t key = strcspn(pairs, "= ");
        const char *value = pairs + key + (pairs[key] == '='), *end = value_end(value);
        bool quoted = *value == '"';
        str_adds(out, ",\"");
        add_escaped(out, pairs, key);
        str_adds(out, "\":\"");
        add_escaped(out, value + quoted, (size_t)(end - value) - quoted);
        str_adds(out, "\"");
        pairs = end + (quoted && *end == '"');
    }
}

static void add_json(struct str *out, const char *level, const char *message, const char *pairs)
{
    str_addf(out, "{\"time\":%lld,\"level\":\"%s\",\"program\":\"", (long long)clock_wall_ms(), level);
    add_escaped(out, name, strlen(name));
    str_adds(out, "\",\"message\":\"");
    add_escaped(out, message, strlen(message));
    str_adds(out, "\"");
    add_pairs(out, pairs);
    str_adds(out, "}\n");
}

void log_line(enum log_level level, const char *message, const char *format, ...)
{
    static const char *const words[] = {"debug", "info", "warn"};
    if (level < threshold())
        return;
    char pairs[1600];
    va_list args;
    va_start(args, format);
    vsnprintf(pairs, sizeof pairs, format, args);
    va_end(args);
    /* One write per line, so that lines of several processes on one stderr do not mix. */
    struct str line = str_init(16 << 10);
    if (as_json)
        add_json(&line, words[level], message, pairs);
    else
        str_addf(&line, "%lld %s %s: %s %s\n", (long long)clock_wall_ms(), words[level], name, message,
                 pairs);
    fwrite(str_text(&line), 1, line.length, stderr);
    fflush(stderr);
    str_clear(&line);
}
