#include "common/os/log_text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

void log_text_plain(const struct log_entry *e, struct str *out)
{
    str_addf(out, "%lld %s %s: %s %s\n", (long long)e->wall_ms, e->level, e->program, e->message, e->pairs);
}

static void add_char(struct str *out, char c)
{
    if (c == '"' || c == '\\')
        str_addf(out, "\\%c", c);
    else if ((unsigned char)c < 0x20 || c == 0x7f)
        str_addf(out, "\\u%04x", (unsigned)c);
    else
        str_add(out, &c, 1);
}

static void add_string(struct str *out, const char *text, size_t length)
{
    str_adds(out, "\"");
    for (size_t i = 0; i < length; i++)
        add_char(out, text[i]);
    str_adds(out, "\"");
}

static size_t key_length(const char *text)
{
    size_t n = 0;
    while (isalnum((unsigned char)text[n]) || text[n] == '_')
        n++;
    return text[n] == '=' ? n : 0;
}

/* A quote inside a value is not its end: that is followed by the next pair, or by nothing. */
static const char *closing_quote(const char *text)
{
    for (const char *p = text; *p; p++)
        if (*p == '"' && (!p[1] || (p[1] == ' ' && key_length(p + 2))))
            return p;
    return text + strlen(text);
}

/* A line's own keys, which a pair may not say again. */
static bool is_reserved(const char *key, size_t length)
{
    static const char *const own[] = {"time", "level", "program", "worker", "term", "message"};
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (strlen(own[i]) == length && !strncmp(own[i], key, length))
            return true;
    return false;
}

static void add_key(struct str *out, const char *key, size_t length)
{
    str_adds(out, ",\"");
    str_add(out, key, length);
    str_adds(out, is_reserved(key, length) ? "_\":" : "\":");
}

/* One pair; returns what follows it. What is no pair is kept as `text`. */
static const char *add_pair(struct str *out, const char *text)
{
    size_t key = key_length(text);
    bool quoted = key && text[key + 1] == '"';
    const char *value = text + (key ? key + 1 + quoted : 0);
    const char *end = !key ? text + strlen(text) : quoted ? closing_quote(value) : strchrnul(value, ' ');
    add_key(out, key ? text : "text", key ? key : 4);
    add_string(out, value, (size_t)(end - value));
    end += quoted && *end;
    return end + strspn(end, " ");
}

static void add_pairs(struct str *out, const char *pairs)
{
    const char *at = pairs + strspn(pairs, " ");
    while (*at)
        at = add_pair(out, at);
}

void log_text_json(const struct log_entry *e, struct str *out)
{
    str_addf(out, "{\"time\":%" PRId64 ",\"level\":\"%s\",\"program\":", e->wall_ms, e->level);
    add_string(out, e->program, strlen(e->program));
    if (e->worker >= 0)
        str_addf(out, ",\"worker\":%d", e->worker);
    if (e->term)
        str_addf(out, ",\"term\":%" PRId64, e->term);
    str_adds(out, ",\"message\":");
    add_string(out, e->message, strlen(e->message));
    add_pairs(out, e->pairs);
    str_adds(out, "}\n");
}
