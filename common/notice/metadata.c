/* Reads what the metadata of three clouds says of a machine's end. */
#include "common/notice/metadata.h"

#include <string.h>

#include "common/base/assert.h"
#include "common/base/date.h"
#include "common/base/str.h"
#include "common/wire/json.h"

/* --- texts --- */

/* Without white space at either end. */
static int read_word(const char *what, const char *text, size_t length, char *out, size_t size,
                     struct error *err)
{
    RM_ASSERT(size > 0, "%s into nothing", what);
    while (length && strchr(" \t\r\n", text[length - 1]) && text[length - 1])
        length--;
    while (length && strchr(" \t\r\n", *text) && *text)
        text++, length--;
    if (!length || length >= size || memchr(text, 0, length))
        return err_set(err, ERR_PROTOCOL, "%s: the answer is no word, it has %zu bytes", what, length);
    memcpy(out, text, length);
    out[length] = 0;
    return 0;
}

static struct js *read_json(const char *what, const char *text, size_t length, enum js_kind kind,
                            struct error *err)
{
    if (length > METADATA_BODY_MAX) {
        err_set(err, ERR_PROTOCOL, "%s: the answer has %zu bytes", what, length);
        return NULL;
    }
    struct js *body = js_parse(text, length, what, err);
    if (!body) {
        if (err)
            err->code = ERR_PROTOCOL;
        return NULL;
    }
    if (js_kind(body) != kind) {
        err_set(err, ERR_PROTOCOL, "%s: the answer is %s, not %s", what, js_kind_name(js_kind(body)),
                js_kind_name(kind));
        js_free(body);
        return NULL;
    }
    return body;
}

static const char *text_of(const struct js *object, const char *key)
{
    const char *text = js_as_string(js_get(object, key));
    return text ? text : "";
}

/* For a log, or a page: no control character, no quote, nothing below lowest. */
static void take_plain(const char *text, char lowest, char *out, size_t size)
{
    RM_ASSERT(size > 0 && lowest >= ' ', "a plain text of %zu bytes, from '%c' on", size, lowest);
    size_t length = 0;
    for (; text[length] && length + 1 < size; length++) {
        char c = text[length];
        out[length] = c >= lowest && c <= '~' && c != '"' && c != '\\' ? c : '_';
    }
    out[length] = '\0';
}

static int refuse_text(const char *what, const char *key, const char *text, struct error *err)
{
    RM_ASSERT(*what && *key, "'%s' is refused: '%s'", what, key);
    char plain[41];
    take_plain(text, ' ', plain, sizeof plain);
    return err_set(err, ERR_PROTOCOL, "%s: %s is \"%s\"", what, key, plain);
}

static void add_word(struct metadata_words *ret, const struct metadata_word *word)
{
    RM_ASSERT(ret->count >= 0 && ret->count <= METADATA_WORDS_MAX, "%d words", ret->count);
    if (ret->count < METADATA_WORDS_MAX)
        ret->word[ret->count++] = *word;
}

/* --- AWS --- */

static int read_spot(const struct js *body, struct metadata_words *ret, struct error *err)
{
    static const char what[] = "spot/instance-action";
    const char *action = text_of(body, "action"), *time = text_of(body, "time");
    bool hibernates = !strcmp(action, "hibernate");
    int64_t until = 0;
    if (!hibernates && strcmp(action, "terminate") != 0 && strcmp(action, "stop") != 0)
        return refuse_text(what, "action", action, err);
    if (!hibernates && !date_of_iso_ms(time, &until))
        return refuse_text(what, "time", time, err);
    add_word(ret, &(struct metadata_word){.certainty = NOTICE_WILL,
                                          .cause = NOTICE_CAUSE_RECLAIM,
                                          .timed = !hibernates,
                                          .until_ms = until});
    return 0;
}

int metadata_read_aws_spot(const char *text, size_t length, struct metadata_words *ret, struct error *err)
{
    struct js *body = read_json("spot/instance-action", text, length, JS_OBJECT, err);
    ret->count = 0;
    int read = body ? read_spot(body, ret, err) : -1;
    js_free(body);
    return read;
}

int metadata_read_aws_rebalance(const char *text, size_t length, struct metadata_words *ret,
                                struct error *err)
{
    static const char what[] = "recommendations/rebalance";
    struct js *body = read_json(what, text, length, JS_OBJECT, err);
    int64_t told;
    ret->count = 0;
    int read = body ? 0 : -1;
    if (body && !date_of_iso_ms(text_of(body, "noticeTime"), &told))
        read = refuse_text(what, "noticeTime", text_of(body, "noticeTime"), err);
    if (read == 0)
        add_word(ret, &(struct metadata_word){.certainty = NOTICE_MAY, .cause = NOTICE_CAUSE_RECLAIM});
    js_free(body);
    return read;
}

static int read_event(const struct js *event, struct metadata_words *ret, struct error *err)
{
    static const char what[] = "maintenance/scheduled";
    const char *state = text_of(event, "State"), *before = text_of(event, "NotBefore");
    int64_t at;
    if (!strcmp(state, "completed") || !strcmp(state, "canceled"))
        return 0;
    if (strcmp(state, "active") != 0)
        return refuse_text(what, "State", state, err);
    if (!date_of_http(before, &at))
        return refuse_text(what, "NotBefore", before, err);
    struct metadata_word word = {.certainty = NOTICE_MAY, .cause = NOTICE_CAUSE_MAINTENANCE};
    take_plain(text_of(event, "EventId"), '!', word.id, sizeof word.id);
    add_word(ret, &word);
    return 0;
}

int metadata_read_aws_maintenance(const char *text, size_t length, struct metadata_words *ret,
                                  struct error *err)
{
    struct js *body = read_json("maintenance/scheduled", text, length, JS_ARRAY, err);
    ret->count = 0;
    int read = body ? 0 : -1;
    for (size_t i = 0; read == 0 && i < js_size(body); i++)
        read = read_event(js_at(body, i), ret, err);
    js_free(body);
    return read;
}

/* --- GCE --- */

int metadata_read_gce_preempted(const char *text, size_t length, struct metadata_words *ret,
                                struct error *err)
{
    char word[8];
    ret->count = 0;
    if (read_word("instance/preempted", text, length, word, sizeof word, err) < 0)
        return -1;
    if (!strcmp(word, "FALSE"))
        return 0;
    if (strcmp(word, "TRUE") != 0)
        return refuse_text("instance/preempted", "the answer", word, err);
    add_word(ret, &(struct metadata_word){.certainty = NOTICE_WILL, .cause = NOTICE_CAUSE_RECLAIM});
    return 0;
}

int metadata_read_gce_maintenance(const char *text, size_t length, struct metadata_words *ret,
                                  struct error *err)
{
    static const char what[] = "instance/maintenance-event";
    static const char migrate[] = "MIGRATE_";
    char word[64];
    ret->count = 0;
    if (read_word(what, text, length, word, sizeof word, err) < 0)
        return -1;
    if (!strcmp(word, "NONE") || !strncmp(word, migrate, sizeof migrate - 1))
        return 0;
    if (strcmp(word, "TERMINATE_ON_HOST_MAINTENANCE") != 0)
        return refuse_text(what, "the answer", word, err);
    add_word(ret, &(struct metadata_word){.certainty = NOTICE_WILL, .cause = NOTICE_CAUSE_MAINTENANCE});
    return 0;
}

/* --- Azure --- */

/* Is `machine` among those that an event is for, and is it the only one? */
static bool names(const struct js *event, const char *machine, bool *ret_alone)
{
    const struct js *resources = js_get(event, "Resources");
    bool named = false;
    for (size_t i = 0; i < js_size(resources); i++) {
        const char *name = js_as_string(js_at(resources, i));
        named = named || (name && !strcmp(name, machine));
    }
    *ret_alone = js_size(resources) == 1;
    return named;
}

/* What happens to the machine; NULL for a type that leaves it where it is, or that nobody knows. */
static const enum notice_cause *cause_of(const char *type)
{
    static const struct {
        const char *type;
        enum notice_cause cause;
    } types[] = {{"Preempt", NOTICE_CAUSE_RECLAIM},
                 {"Terminate", NOTICE_CAUSE_SCALE_DOWN},
                 {"Redeploy", NOTICE_CAUSE_MAINTENANCE},
                 {"Reboot", NOTICE_CAUSE_MAINTENANCE}};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (!strcmp(types[i].type, type))
            return &types[i].cause;
    return NULL;
}

static int read_azure_event(const struct js *event, const char *machine, int64_t now_ms,
                            struct metadata_words *ret, struct error *err)
{
    static const char what[] = "scheduledevents";
    const char *status = text_of(event, "EventStatus"), *before = text_of(event, "NotBefore");
    const enum notice_cause *cause = cause_of(text_of(event, "EventType"));
    bool alone, started = !strcmp(status, "Started");
    int64_t at = 0;
    if (js_kind(event) != JS_OBJECT)
        return err_set(err, ERR_PROTOCOL, "%s: an event is %s", what, js_kind_name(js_kind(event)));
    if (!names(event, machine, &alone) || !cause || !strcmp(status, "Completed"))
        return 0;
    if (!started && strcmp(status, "Scheduled") != 0)
        return refuse_text(what, "EventStatus", status, err);
    /* Of what has begun it comes empty. */
    if (!(started && !*before) && !date_of_http(before, &at))
        return refuse_text(what, "NotBefore", before, err);
    bool ahead = !started && at * 1000 > now_ms;
    struct metadata_word word = {.certainty = started || ahead ? NOTICE_WILL : NOTICE_MAY,
                                 .cause = *cause,
                                 .timed = ahead,
                                 .until_ms = ahead ? at * 1000 : 0};
    take_plain(text_of(event, "EventId"), '!', word.id, sizeof word.id);
    word.startable = alone && !started && *word.id && !strcmp(word.id, text_of(event, "EventId"));
    add_word(ret, &word);
    return 0;
}

int metadata_read_azure(const char *text, size_t length, const char *machine, int64_t now_ms,
                        struct metadata_words *ret, struct error *err)
{
    struct js *body = read_json("scheduledevents", text, length, JS_OBJECT, err);
    const struct js *events = js_get(body, "Events");
    ret->count = 0;
    int read = body ? 0 : -1;
    if (body && (!events || js_kind(events) != JS_ARRAY))
        read = err_set(err, ERR_PROTOCOL, "scheduledevents: the answer has no list of Events");
    for (size_t i = 0; read == 0 && i < js_size(events); i++)
        read = read_azure_event(js_at(events, i), machine, now_ms, ret, err);
    js_free(body);
    return read;
}
