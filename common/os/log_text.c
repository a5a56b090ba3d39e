#include "common/os/log_text.h"

#include <ctype.h>
#include <inttypes.h>
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

/* One pair; returns what follows it. What is no pair is kept as `text`. */
static const char *add_pair(struct str *out, const char *text)
{
    size_t key = key_length(text);
    bool quoted = key && text[key + 1] == '"';
    const char *value = text + (key ? key + 1 + quoted : 0);
    const char *end = !key ? text + strlen(text) : quoted ? closing_quote(value) : strchrnul(value, ' ');
    add_string(out, key ? text : "text", key ? key : 4);
    str_adds(out, ":");
    add_string(out, value, (size_t)(end - value));
    end += quoted && *end;
    return end + strspn(end, " ");
}

static void add_pairs(struct str *out, const char *pairs)
{
    const char *at = pairs + strspn(pairs, " ");
    if (!*at)
        return;
    str_adds(out, ",\"detail\":{");
    while (*at) {
        at = add_pair(out, at);
        if (*at)
            str_adds(out, ",");
    }
    str_adds(out, "}");
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
