/* Puts the questions of common/notice/watch.h to a machine's metadata over HTTP, for the listener of a worker
 * and for the agent of a node, and tells them of each new revision. */
#include "agent/notice/metadata_watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/date.h"
#include "common/base/str.h"
#include "common/notice/metadata.h"
#include "common/notice/start_request.h"
#include "common/os/clock.h"
#include "common/os/log.h"

enum { BASE_MAX = 128, BUFFER_BYTES = 4096, POOL = WATCH_SLOTS, ASKED = WATCH_SLOTS + 1 };

/* A question under way. */
struct asked {
    struct metadata_watch *watch;
    struct http_call *call;
    struct str body;
    struct watch_answer answer; /* as far as it has come */
};

struct metadata_watch {
    struct loop *loop;
    struct loop_timer *timer;
    struct metadata_watch_options options;
    char base[BASE_MAX];
    struct watch watch;
    struct asked asked[ASKED]; /* the last one: of its pool */
    struct {
        struct http_call *call;
        struct start_request request;
        struct http_run body;
        bool told;
        void (*done)(void *ctx);
        void *ctx;
    } start;
};

static void ask_what_is_due(struct metadata_watch *m);

static void tell_watch(struct metadata_watch *m, int slot, const struct watch_answer *answer)
{
    char say[WATCH_SAY_MAX];
    int64_t revision = m->watch.revision;
    if (slot == POOL) {
        machine_pool_answer(&m->watch, answer, loop_now(m->loop));
        return;
    }
    watch_answer(&m->watch, slot, answer, loop_now(m->loop), say);
    if (say[0])
        log_warn("metadata", "at=%s said=\"%s\"", m->base, say);
    if (m->watch.revision != revision)
        m->options.changed(m->options.ctx);
}

static void header_came(void *ctx, int status, const char *name, const char *value)
{
    struct asked *asked = ctx;
    int64_t seconds;
    (void)status;
    if (!strcasecmp(name, "ETag") && !text_copy(asked->answer.etag, sizeof asked->answer.etag, value))
        asked->answer.etag[0] = 0;
    if (!strcasecmp(name, "Metadata-Flavor"))
        asked->answer.google = !strcmp(value, "Google");
    if (!strcasecmp(name, "Date") && date_of_http(value, &seconds))
        asked->answer.said_ms = seconds * 1000;
}

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    struct asked *asked = ctx;
    (void)status;
    str_add(&asked->body, bytes, count);
    return asked->body.truncated ? -1 : 0;
}

static void answer_done(void *ctx, const struct http_answer *answer)
{
    struct asked *asked = ctx;
    struct metadata_watch *m = asked->watch;
    char why[64];
    snprintf(why, sizeof why, "the answer has more than %d bytes", METADATA_BODY_MAX);
    asked->call = NULL;
    asked->answer.status = answer->outcome == HTTP_ANSWERED ? answer->status : 0;
    asked->answer.why = asked->body.truncated ? why : answer->why;
    asked->answer.body = str_text(&asked->body);
    asked->answer.length = asked->body.length;
    asked->answer.wall_ms = clock_wall_ms();
    tell_watch(m, (int)(asked - m->asked), &asked->answer);
    ask_what_is_due(m);
}

static void ask_metadata(struct metadata_watch *m, int slot, const struct watch_question *question)
{
    char url[BASE_MAX + WATCH_PATH_MAX];
    struct asked *asked = &m->asked[slot];
    const char *header = question->header;
    struct error err;
    snprintf(url, sizeof url, "%s%s", m->base, question->path);
    str_reset(&asked->body);
    asked->body.truncated = false;
    asked->answer = (struct watch_answer){.why = ""};
    struct http_request request = {.method = question->method,
                                   .url = url,
                                   .header = &header,
                                   .headers = 1,
                                   .connect_within = 2 * RM_S,
                                   .within = question->within,
                                   .buffer = BUFFER_BYTES,
                                   .header_came = header_came,
                                   .body_came = body_came,
                                   .done = answer_done,
                                   .ctx = asked};
    if (http_start(m->options.http, &asked->call, &request, &err) < 0)
        tell_watch(m, slot, &(struct watch_answer){.why = err.text});
}

static void ask_what_is_due(struct metadata_watch *m)
{
    struct watch_question question;
    while (watch_ask(&m->watch, loop_now(m->loop), &question))
        ask_metadata(m, question.slot, &question);
    while (machine_pool_ask(&m->watch, loop_now(m->loop), &question))
        ask_metadata(m, POOL, &question);
    loop_timer_set(m->timer, rm_earlier(watch_deadline(&m->watch), machine_pool_deadline(&m->watch)));
}

static void timer_fired(void *ctx)
{
    ask_what_is_due(ctx);
}

/* ---- what is planned is to begin ---- */

static const rm_time start_within = 3 * RM_S; /* the pod that waits for it is about to end */

static void start_answered(void *ctx, const struct http_answer *answer)
{
    struct metadata_watch *m = ctx;
    m->start.call = NULL;
    if (answer->outcome == HTTP_ANSWERED && answer->status == 200)
        log_warn("the machine may go now", "at=%s events=%d", m->base, m->start.request.events);
    else
        log_warn("the machine goes when its cloud says: it did not hear that it may", //
                 "at=%s status=%d why=\"%s\"", m->base, answer->status, answer->why);
    m->start.done(m->start.ctx);
}

static int send_start(struct metadata_watch *m, struct error *err)
{
    char url[BASE_MAX + WATCH_PATH_MAX];
    const struct start_request *start = &m->start.request;
    const char *headers[] = {start->header, "Content-Type: application/json"};
    m->start.body = (struct http_run){.bytes = str_text(&start->body), .count = start->body.length};
    snprintf(url, sizeof url, "%s%s", m->base, start->path);
    struct http_request request = {.method = "POST",
                                   .url = url,
                                   .header = headers,
                                   .headers = 2,
                                   .body = &m->start.body,
                                   .runs = 1,
                                   .connect_within = start_within,
                                   .within = start_within,
                                   .buffer = BUFFER_BYTES,
                                   .fresh = true, /* by a connection that was kept it may be sent twice */
                                   .done = start_answered,
                                   .ctx = m};
    return http_start(m->options.http, &m->start.call, &request, err);
}

bool metadata_watch_start(struct metadata_watch *m, void (*done)(void *ctx), void *ctx)
{
    struct error err;
    if (m->start.told || !start_request_write(&m->watch, &m->start.request))
        return false;
    m->start.told = true;
    m->start.done = done;
    m->start.ctx = ctx;
    if (send_start(m, &err) == 0)
        return true;
    log_warn("the machine goes when its cloud says: it can't be told that it may", "at=%s why=\"%s\"",
             m->base, err.text);
    return false;
}

/* ---- start and end ---- */

static int read_base(struct metadata_watch *m, const char *base, struct error *err)
{
    if (strncmp(base, "http://", 7) != 0 || !base[7] || strpbrk(base + 7, " \"?#@") ||
        !text_copy(m->base, sizeof m->base, base))
        return err_set(
            err, ERR_USAGE,
            "\"%.100s\" is no address of a machine's metadata, which is one such as " METADATA_BASE, base);
    for (size_t n = strlen(m->base); n && m->base[n - 1] == '/'; n--)
        m->base[n - 1] = 0;
    return 0;
}

int metadata_watch_open(struct metadata_watch **ret, struct loop *loop,
                        const struct metadata_watch_options *options, struct error *err)
{
    struct metadata_watch *m = calloc(1, sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "no memory to watch the machine's metadata");
    m->loop = loop;
    m->options = *options;
    for (int i = 0; i < ASKED; i++)
        m->asked[i] = (struct asked){.watch = m, .body = str_init(METADATA_BODY_MAX)};
    watch_init(&m->watch, clock_wall_ms() / 1000, loop_now(loop));
    if (read_base(m, options->base, err) < 0 || loop_timer_open(&m->timer, loop, timer_fired, m, err) < 0) {
        metadata_watch_free(m);
        return -1;
    }
    loop_timer_set(m->timer, watch_deadline(&m->watch));
    *ret = m;
    return 0;
}

void metadata_watch_free(struct metadata_watch *m)
{
    if (!m)
        return;
    for (int i = 0; i < ASKED; i++) {
        http_cancel(m->asked[i].call);
        str_clear(&m->asked[i].body);
    }
    http_cancel(m->start.call);
    str_clear(&m->start.request.body);
    loop_timer_free(m->timer);
    free(m);
}

const struct watch *metadata_watch_see(const struct metadata_watch *m)
{
    return &m->watch;
}
