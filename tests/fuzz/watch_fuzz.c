/* A story of a machine's metadata: a watch asks, and whoever answers there says what the input tells, byte by
 * byte. Of whatever comes: questions are of one line, and their headers too; nobody is asked in a circle, and
 * somebody always is; what changes is a new revision, and what is known can be told to a pod. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/date.h"
#include "common/notice/page.h"
#include "common/notice/start_request.h"
#include "common/notice/watch.h"
#include "common/wire/json.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/words.h"

enum { POOL = WATCH_SLOTS, ASKED = WATCH_SLOTS + 1, BODY_MAX = 1024, AT_ONCE_MOST = 32 };

static const int64_t noon = 1800014400000; /* 2027-01-15T12:00:00Z */

static struct watch w;
static rm_time now;
static bool asked[ASKED]; /* questions under way */
static int at_once;       /* asked at this moment */

/* ---- what may be relied on ---- */

static void check_line(const char *text, size_t room, char lowest, const char *sentence)
{
    size_t length = strnlen(text, room);
    if (length == room)
        fuzz_broken("a text ends within its room");
    for (size_t i = 0; i < length; i++)
        if (text[i] < lowest || text[i] > '~')
            fuzz_broken(sentence);
}

static void check_question(const struct watch_question *q)
{
    check_line(q->path, sizeof q->path, '!', "a path is one word");
    check_line(q->header, sizeof q->header, ' ', "a header is one line");
    if (*q->path != '/' || q->within <= 0 || (strcmp(q->method, "GET") != 0 && strcmp(q->method, "PUT") != 0))
        fuzz_broken("a question has a path, a method and an end");
    if (++at_once > AT_ONCE_MOST)
        fuzz_broken("nobody is asked in a circle");
}

static void check_notices(void)
{
    if (w.notices.count < 0 || w.notices.count > NOTICES_MAX)
        fuzz_broken("there is room for the notices");
    for (int i = 0; i < w.notices.count; i++) {
        const struct notice *n = &w.notices.at[i];
        if ((unsigned)n->source >= NOTICE_SOURCES || (unsigned)n->cause >= NOTICE_CAUSES)
            fuzz_broken("a notice has a source and a cause");
        if (n->until != RM_NEVER && n->until > now + notice_most(n->source))
            fuzz_broken("no moment is further ahead than is believed");
        check_line(n->id, sizeof n->id, '!', "an id is one word");
    }
}

/* As a node's agent would tell it to a pod, which has no other clock. */
static void check_page(void)
{
    struct str text = str_init(NOTICE_PAGE_MAX);
    struct notice_page page;
    struct error err = {0};
    notice_page_write(&w, now, &text);
    if (text.truncated || notice_page_read(str_text(&text), text.length, now, &page, &err) < 0)
        fuzz_broken("what is known can be told");
    if (page.notices.count != w.notices.count || page.revision != w.revision || page.complete != w.complete)
        fuzz_broken("what is told is what is known");
    str_clear(&text);
}

static void check_start(void)
{
    struct start_request start;
    struct error err = {0};
    if (!start_request_write(&w, &start))
        return;
    struct js *body = js_parse(str_text(&start.body), start.body.length, "start", &err);
    if (start.body.truncated || !body || w.cloud != WATCH_AZURE)
        fuzz_broken("what Azure is told is JSON");
    js_free(body);
    str_clear(&start.body);
}

static void check_all(int64_t revision, const struct notice *was)
{
    check_notices();
    check_page();
    check_start();
    if (w.revision < revision)
        fuzz_broken("a revision only grows");
    if (w.revision == revision && notice_change(was, notices_first(&w.notices)) != NOTICE_SAME)
        fuzz_broken("what changes is a new revision");
    for (int i = 0; i < ASKED; i++)
        if (asked[i] && i != POOL)
            return;
    if (watch_deadline(&w) == RM_NEVER)
        fuzz_broken("somebody is always asked");
}

/* ---- what is said ---- */

static void http_date(int64_t seconds, char *out, size_t size)
{
    time_t at = (time_t)seconds;
    struct tm t;
    strftime(out, size, "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&at, &t));
}

/* A moment from an hour ago to a year ahead. */
static int64_t any_moment(struct words *words, int64_t wall_ms)
{
    static const int64_t ahead[] = {-3600, -10, 0, 30, 120, 121, 900, 31536000};
    return wall_ms / 1000 + ahead[words_below(words, 8)] + words_below(words, 4);
}

/* What the three clouds say, with moments and names of the story's. */
static void vendors_body(struct words *words, int64_t wall_ms, char *out, size_t size)
{
    static const char *const plain[] = {"TOKEN==",
                                        "452003",
                                        "gpu_3",
                                        "TRUE",
                                        "FALSE",
                                        "NONE",
                                        "MIGRATE_ON_HOST_MAINTENANCE",
                                        "TERMINATE_ON_HOST_MAINTENANCE",
                                        "projects/4520/zones/us-central1-a",
                                        "p3.2xlarge",
                                        "",
                                        "[]"};
    static const char *const kinds[] = {"Preempt", "Reboot", "Terminate", "Freeze"};
    static const char *const states[] = {"Scheduled", "Started", "Completed"};
    char iso[DATE_ISO], http[40];
    int64_t at = any_moment(words, wall_ms);
    date_iso(at, iso);
    http_date(at, http, sizeof http);
    int which = words_below(words, 18), state = words_below(words, 3), id = words_below(words, 3);
    const char *kind = kinds[words_below(words, 4)];
    if (which < 12)
        text_copy(out, size, plain[which]);
    else if (which == 12)
        snprintf(out, size, "{\"action\":\"%s\",\"time\":\"%s\"}", state ? "terminate" : "hibernate", iso);
    else if (which == 13)
        snprintf(out, size, "{\"noticeTime\":\"%s\"}", iso);
    else if (which == 14)
        snprintf(out, size, "[{\"State\":\"%s\",\"EventId\":\"e-%d\",\"NotBefore\":\"%s\"}]",
                 state ? "active" : "completed", id, http + 5);
    else
        snprintf(
            out, size,
            "{\"Events\":[{\"EventId\":\"E-%d\",\"EventType\":\"%s\",\"Resources\":[\"gpu_3\"],"
            "\"EventStatus\":\"%s\",\"NotBefore\":\"%s\"},{\"EventId\":\"E-%d\",\"EventType\":\"Preempt\","
            "\"Resources\":[\"gpu_3\"],\"EventStatus\":\"Scheduled\",\"NotBefore\":\"%s\"}]}",
            id, kind, states[state], state == 1 ? "" : http, which, http);
}

/* Mostly a vendor's, now and then with a byte changed, or anything. */
static size_t any_body(struct words *words, int64_t wall_ms, char *out, size_t size)
{
    if (words_once_in(words, 5)) {
        struct words part = words_part(words);
        if (part.size)
            memcpy(out, part.data, part.size);
        return part.size;
    }
    vendors_body(words, wall_ms, out, size);
    size_t length = strlen(out);
    if (length && words_once_in(words, 4))
        out[words_byte(words) % length] = (char)words_byte(words);
    return length;
}

static void any_etag(struct words *words, char out[WATCH_ETAG_MAX])
{
    static const char *const some[] = {"", "e1", "e2", "\"quoted\""};
    int which = words_below(words, 5);
    struct words part = which == 4 ? words_part(words) : (struct words){0};
    size_t length = part.size < WATCH_ETAG_MAX ? part.size : WATCH_ETAG_MAX - 1;
    memset(out, 0, WATCH_ETAG_MAX);
    if (which < 4)
        text_copy(out, WATCH_ETAG_MAX, some[which]);
    else if (length)
        memcpy(out, part.data, length);
}

static void answer(struct words *words, int slot)
{
    static const int statuses[] = {200, 200, 200, 200, 404, 401, 0, 500, 302, 403};
    static const int64_t skews[] = {0, 0, 0, 600000, -600000, 5001};
    char room[BODY_MAX], say[WATCH_SAY_MAX] = "";
    struct watch_answer a = {.status = statuses[words_below(words, 10)], .why = "nobody listens"};
    int64_t wall_ms = noon + now / RM_MS, revision = w.revision;
    const struct notice *first = notices_first(&w.notices);
    struct notice was = first ? *first : (struct notice){.until = RM_NEVER};
    a.google = words_below(words, 2);
    a.wall_ms = wall_ms;
    a.said_ms = words_once_in(words, 6) ? 0 : wall_ms + skews[words_below(words, 6)];
    any_etag(words, a.etag);
    a.length = any_body(words, a.said_ms ? a.said_ms : wall_ms, room, sizeof room);
    char *body = fuzz_text((const uint8_t *)room, a.length);
    a.body = body;
    asked[slot] = false;
    if (slot == POOL)
        machine_pool_answer(&w, &a, now);
    else
        watch_answer(&w, slot, &a, now, say);
    free(body);
    if (strnlen(say, sizeof say) == sizeof say) /* the log makes one line of it */
        fuzz_broken("a sentence ends within its room");
    check_all(revision, first ? &was : NULL);
}

/* ---- the story ---- */

static void ask(void)
{
    struct watch_question q;
    while (watch_ask(&w, now, &q)) {
        if (q.slot < 0 || q.slot >= WATCH_SLOTS || asked[q.slot])
            fuzz_broken("one question a slot is under way");
        asked[q.slot] = true;
        check_question(&q);
    }
    while (machine_pool_ask(&w, now, &q)) {
        if (asked[POOL])
            fuzz_broken("one question for the pool is under way");
        asked[POOL] = true;
        check_question(&q);
    }
}

static void pass_time(struct words *words)
{
    rm_time due = rm_earlier(watch_deadline(&w), machine_pool_deadline(&w)), before = now;
    if (words_below(words, 2) || due == RM_NEVER || due < now)
        now += words_time(words);
    else
        now = due;
    if (now > before)
        at_once = 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct words words = {data, size};
    now = 100 * RM_S;
    at_once = 0;
    memset(asked, 0, sizeof asked);
    watch_init(&w, 1, now);
    while (words.size) {
        int what = words_below(&words, 8);
        if (what < ASKED && asked[what])
            answer(&words, what);
        else if (what == ASKED)
            pass_time(&words);
        ask();
    }
    return 0;
}
