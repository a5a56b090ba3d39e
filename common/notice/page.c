#include "common/notice/page.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"
#include "common/wire/json.h"

static const char what[] = "/v1/notices";

static struct js *entry_of(const struct notice *n, rm_time now)
{
    struct js *entry = js_object();
    js_set_string(entry, "source", notice_kind(n->source)->name);
    js_set_string(entry, "cause", notice_cause_name(n->cause));
    js_set_string(entry, "certainty", notice_certainty_name(n->certainty));
    if (n->until != RM_NEVER)
        js_set_int(entry, "leftMs", n->until > now ? (n->until - now) / RM_MS : 0);
    js_set_string(entry, "id", n->id);
    return entry;
}

enum { QUICK_MOST = 8 };

static const rm_time apart = 100 * RM_MS; /* two questions, where answers come at once */

rm_time notice_page_pause(struct notice_pace *pace, bool news, rm_time took)
{
    RM_ASSERT(took >= 0 && pace->quick >= 0, "an answer after %lld ns, %d in a row", (long long)took,
              pace->quick);
    if (took >= apart) {
        pace->quick = 0;
        return 0;
    }
    pace->quick += pace->quick < QUICK_MOST;
    return news && pace->quick < QUICK_MOST ? 0 : apart;
}

static const rm_time waits_most = 55 * RM_S;

/* The revision that a caller has; -1: it names none. */
static int64_t after(const char *query)
{
    static const char name[] = "after=";
    char *end;
    const char *digits = query + sizeof name - 1;
    if (strncmp(query, name, sizeof name - 1) != 0 || *digits < '0' || *digits > '9')
        return -1;
    long long value = strtoll(digits, &end, 10);
    return *end ? -1 : value;
}

bool notice_page_waits(const struct watch *watch, const char *query, rm_time waited)
{
    RM_ASSERT(waited >= 0, "an answer waits for %lld ns", (long long)waited);
    return after(query) == watch->revision && waited < waits_most;
}

void notice_page_write(const struct watch *watch, rm_time now, struct str *out)
{
    RM_ASSERT(watch->notices.count >= 0 && watch->notices.count <= NOTICES_MAX, "%d notices",
              watch->notices.count);
    struct js *page = js_object(), *list = js_array();
    char pool[MACHINE_POOL_NAME_MAX];
    js_set_int(page, "revision", watch->revision);
    js_set_string(page, "cloud", watch_cloud_name(watch->cloud));
    js_set_bool(page, "complete", watch->complete);
    machine_pool_name(&watch->pool, pool);
    js_set_string(page, "pool", pool);
    for (int i = 0; i < watch->notices.count; i++)
        js_push(list, entry_of(&watch->notices.at[i], now));
    js_set(page, "notices", list);
    js_print(page, out);
    js_free(page);
}

/* The index of a word; -1: it is none of these. */
static int index_of(const char *word, const char *(*name)(int), int count)
{
    RM_ASSERT(count > 0, "one of %d words", count);
    for (int i = 0; i < count; i++)
        if (!strcmp(word, name(i)))
            return i;
    return -1;
}

static const char *name_of_certainty(int i)
{
    return notice_certainty_name((enum notice_certainty)i);
}

static bool is_plain(const char *text)
{
    for (; *text; text++)
        if (*text <= ' ' || *text > '~' || *text == '"')
            return false;
    return true;
}

static int read_entry(const struct js *entry, rm_time now, struct notices *ret, struct error *err)
{
    char source[64], cause[64], sure[16], id[NOTICE_ID_MAX];
    int64_t left = 0;
    if (!entry || js_kind(entry) != JS_OBJECT)
        return err_set(err, ERR_PROTOCOL, "a notice is %s", js_kind_name(js_kind(entry)));
    bool timed = js_get(entry, "leftMs") != NULL;
    if (js_need_string(entry, "source", source, sizeof source, err) < 0 ||
        js_need_string(entry, "cause", cause, sizeof cause, err) < 0 ||
        js_need_string(entry, "certainty", sure, sizeof sure, err) < 0 ||
        js_need_string(entry, "id", id, sizeof id, err) < 0 ||
        (timed && js_need_int(entry, "leftMs", 0, INT64_MAX, &left, err) < 0))
        return -1;
    enum notice_cause cause_at = notice_cause_named(cause);
    int sure_at = index_of(sure, name_of_certainty, 2);
    enum notice_source source_at = notice_source_named(source);
    if (cause_at == NOTICE_CAUSES || sure_at < 0 || !is_plain(id))
        return err_set(err, ERR_PROTOCOL, "a notice has the cause, the certainty or the id of no notice");
    if (source_at == NOTICE_SOURCES)
        return 0;
    struct notice told = {.source = source_at,
                          .cause = cause_at,
                          .certainty = (enum notice_certainty)sure_at,
                          .until = timed ? notice_until(source_at, left, 0, now) : RM_NEVER};
    text_copy(told.id, sizeof told.id, id);
    notices_take(ret, &told);
    return 0;
}

static int read_page(const struct js *page, rm_time now, struct notice_page *ret, struct error *err)
{
    const struct js *list;
    bool has_pool = js_get(page, "pool") != NULL; /* of an older release it has none */
    if (js_kind(page) != JS_OBJECT)
        return err_set(err, ERR_PROTOCOL, "it is %s", js_kind_name(js_kind(page)));
    if (js_need_int(page, "revision", 0, INT64_MAX, &ret->revision, err) < 0 ||
        js_need_bool(page, "complete", &ret->complete, err) < 0 ||
        (has_pool && js_need_string(page, "pool", ret->pool, sizeof ret->pool, err) < 0) ||
        js_need(page, "notices", JS_ARRAY, &list, err) < 0)
        return -1;
    if (!is_plain(ret->pool))
        return err_set(err, ERR_PROTOCOL, "its pool has the name of no pool");
    for (size_t i = 0; i < js_size(list); i++)
        if (read_entry(js_at(list, i), now, &ret->notices, err) < 0)
            return -1;
    return 0;
}

int notice_page_read(const char *text, size_t length, rm_time now, struct notice_page *ret, struct error *err)
{
    struct js *page = js_parse(text, length, what, err);
    *ret = (struct notice_page){.revision = 0};
    int read = page ? read_page(page, now, ret, err) : -1;
    js_free(page);
    if (read < 0) {
        err->code = ERR_PROTOCOL;
        err_wrap(err, "no agent of a machine answers there: %s", what);
    }
    return read;
}
