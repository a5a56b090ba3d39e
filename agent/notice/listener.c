/* Asks for notices of this machine's end, again and again, and hands what it hears to the agent's core. */
#include "agent/notice/listener.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/heed.h"
#include "agent/notice/metadata_watch.h"
#include "common/base/address.h"
#include "common/base/limits.h"
#include "common/base/str.h"
#include "common/net/resolve.h"
#include "common/notice/page.h"
#include "common/notice/repeats.h"
#include "common/os/config.h"
#include "common/os/log.h"

static const rm_time answer_within = 70 * RM_S; /* it comes after a minute at most */
static const rm_time again_first = RM_S, again_most = 30 * RM_S;

struct listener {
    struct loop *loop;
    struct http *http;
    struct loop_timer *ask_timer, *heed_timer;
    struct listener_options options;
    struct metadata_watch *watch; /* NULL: the machine's agent is asked */
    bool starts;                  /* the machine is this worker's alone, by a person's word */
    struct http_call *call;
    struct str body;
    char at[RM_ADDRESS_MAX];
    int64_t revision; /* that is known; -1 none */
    rm_time asked_at;
    struct notice_pace pace;
    int failures;
    char trouble[RM_WHY_MAX]; /* said, and not over */
    struct repeats troubles, words;
    struct heed heed;
    struct notices notices;
    bool complete;                    /* see watch.h */
    char pool[MACHINE_POOL_NAME_MAX]; /* see pool.h */
    bool tells;                       /* the newest AGENT_NOTICED had a notice: */
    struct notice told;               /* this one */
};

/* ---- what is heard ---- */

/* Whoever answers may tell and take back one notice for ever. */
static bool is_to_be_said(struct listener *l, const char *word, const struct notice *notice)
{
    char sentence[120];
    int64_t more;
    snprintf(sentence, sizeof sentence, "%s %s", word, notice_kind(notice->source)->name);
    return repeats_say(&l->words, sentence, loop_now(l->loop), &more);
}

static void heed(void *ctx)
{
    struct listener *l = ctx;
    struct notice will;
    rm_time now = loop_now(l->loop);
    bool leave = heed_notices(&l->heed, &l->notices, l->complete, now, &will);
    loop_timer_set(l->heed_timer, heed_deadline(&l->heed, &l->notices, now));
    if (!leave)
        return;
    struct agent_event event = {.kind = AGENT_NOTICE};
    event.deadline = will.until == RM_NEVER ? 0 : will.until - now;
    text_copy(event.text, sizeof event.text, notice_kind(will.source)->name);
    log_warn("leaving", "notice=%s cause=%s seconds=%" PRId64, event.text, notice_cause_name(will.cause),
             event.deadline / RM_S);
    l->options.happened(l->options.ctx, &event);
}

static void tell_agent(struct listener *l)
{
    const struct notice *is = notices_first(&l->notices);
    if (notice_change(l->tells ? &l->told : NULL, is) == NOTICE_SAME)
        return;
    struct agent_event event = {.kind = AGENT_NOTICED, .notice = is};
    text_copy(event.text, sizeof event.text, l->pool);
    l->tells = is != NULL;
    if (is)
        l->told = *is;
    l->options.happened(l->options.ctx, &event);
}

/* What may come is logged once for each word; nothing follows from it here. whole: see notices_hear. */
static void hear_notices(struct listener *l, const struct notices *heard, bool whole, bool complete)
{
    struct notices before = l->notices;
    notices_hear(&l->notices, heard, whole);
    const struct notice *was = notices_first(&before), *is = notices_first(&l->notices);
    if (complete && !l->complete)
        log_info("notices are heard", "at=%s", l->at);
    l->complete = l->complete || complete;
    if (is && is->certainty == NOTICE_MAY && (!was || was->source != is->source) &&
        is_to_be_said(l, "may", is))
        log_info("notice", "source=%s cause=%s certainty=may", notice_kind(is->source)->name,
                 notice_cause_name(is->cause));
    if (was && !is && is_to_be_said(l, "withdrawn", was))
        log_info("notice withdrawn", "source=%s", notice_kind(was->source)->name);
    tell_agent(l);
    heed(l);
}

static void metadata_changed(void *ctx)
{
    struct listener *l = ctx;
    const struct watch *watch = metadata_watch_see(l->watch);
    machine_pool_name(&watch->pool, l->pool);
    hear_notices(l, &watch->notices, true,
                 watch->complete); /* the watch is this worker's own: it knows what it told */
}

/* ---- the machine's agent ---- */

static void trouble(struct listener *l, const char *why)
{
    rm_time pause = rm_backoff(again_first, again_most, l->failures++);
    l->revision = -1;
    loop_timer_set(l->ask_timer, loop_now(l->loop) + pause);
    if (!strcmp(l->trouble, why))
        return;
    text_copy(l->trouble, sizeof l->trouble, why);
    char line[RM_WHY_MAX + 64];
    text_copy(line, sizeof line, why);
    repeats_thin(&l->troubles, loop_now(l->loop), line, sizeof line);
    if (line[0])
        log_warn("no notices are heard", "at=%s why=\"%s\"", l->at, line);
}

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    struct listener *l = ctx;
    (void)status;
    str_add(&l->body, bytes, count);
    return l->body.truncated ? -1 : 0;
}

static void read_page(struct listener *l)
{
    struct notice_page page;
    struct error err;
    if (notice_page_read(str_text(&l->body), l->body.length, loop_now(l->loop), &page, &err) < 0) {
        trouble(l, err.text);
        return;
    }
    rm_time now = loop_now(l->loop);
    rm_time pause = notice_page_pause(&l->pace, page.revision != l->revision, now - l->asked_at);
    l->revision = page.revision;
    l->failures = 0;
    l->trouble[0] = 0;
    loop_timer_set(l->ask_timer, now + pause);
    text_copy(l->pool, sizeof l->pool, page.pool);
    hear_notices(l, &page.notices, page.complete, page.complete);
}

static void page_done(void *ctx, const struct http_answer *answer)
{
    struct listener *l = ctx;
    char why[80];
    l->call = NULL;
    snprintf(why, sizeof why, "the answer has status %d", answer->status);
    if (l->body.truncated)
        trouble(l, "the answer has more than 64 KiB: no agent of a machine answers there");
    else if (answer->outcome != HTTP_ANSWERED)
        trouble(l, answer->why);
    else if (answer->status != 200)
        trouble(l, why);
    else
        read_page(l);
}

static void ask_node(void *ctx)
{
    struct listener *l = ctx;
    char url[RM_ADDRESS_MAX + 64], after[40] = "";
    struct error err;
    if (l->revision >= 0)
        snprintf(after, sizeof after, "?after=%" PRId64, l->revision);
    snprintf(url, sizeof url, "http://%s/v1/notices%s", l->at, after);
    str_reset(&l->body);
    l->body.truncated = false;
    l->asked_at = loop_now(l->loop);
    struct http_request request = {.method = "GET",
                                   .url = url,
                                   .connect_within = 5 * RM_S,
                                   .within = answer_within,
                                   .buffer = 4 << 10,
                                   .body_came = body_came,
                                   .done = page_done,
                                   .ctx = l};
    if (http_start(l->http, &l->call, &request, &err) < 0)
        trouble(l, err.text);
}

/* ---- the machine may go ---- */

static void machine_was_told(void *ctx)
{
    *(bool *)ctx = true;
}

void listener_let_machine_go(struct listener *l)
{
    bool told = false;
    if (!l || !l->starts || !metadata_watch_start(l->watch, machine_was_told, &told))
        return;
    while (!told)
        loop_turn(l->loop, true);
}

/* ---- start and end ---- */

static int read_starts(struct listener *l, struct error *err)
{
    const char *says = config_get(CONFIG_METADATA_START);
    if (!says || !*says || !strcmp(says, "false"))
        return 0;
    if (strcmp(says, "true") != 0)
        return err_set(err, ERR_USAGE, "%s is true or false, not \"%.40s\"",
                       config_name(CONFIG_METADATA_START), says);
    if (!config_get(CONFIG_METADATA))
        return err_set(err, ERR_USAGE, "%s wants %s, by which this worker asks the metadata itself",
                       config_name(CONFIG_METADATA_START), config_name(CONFIG_METADATA));
    l->starts = true;
    return 0;
}

static int open_node(struct listener *l, const char *host, const char *port, struct error *err)
{
    char *end, joined[RM_ADDRESS_MAX];
    long number = strtol(port, &end, 10);
    if (!resolve_is_address(host))
        return err_set(err, ERR_USAGE, "%s wants an IP address, not \"%.60s\"",
                       config_name(CONFIG_POD_HOST_IP), host);
    if (*end || number < 1 || number > 65535)
        return err_set(err, ERR_USAGE, "%s wants a port, not \"%.40s\"", config_name(CONFIG_POD_NODE_PORT),
                       port);
    address_join(joined, sizeof joined, host, (int)number);
    text_copy(l->at, sizeof l->at, joined);
    if (loop_timer_open(&l->ask_timer, l->loop, ask_node, l, err) < 0)
        return -1;
    loop_timer_set(l->ask_timer, loop_now(l->loop));
    return 0;
}

static int open_parts(struct listener *l, struct error *err)
{
    const char *host = config_get(CONFIG_POD_HOST_IP), *port = config_get(CONFIG_POD_NODE_PORT);
    struct metadata_watch_options watch = {
        .base = config_get(CONFIG_METADATA), .changed = metadata_changed, .ctx = l};
    if (read_starts(l, err) < 0 || loop_timer_open(&l->heed_timer, l->loop, heed, l, err) < 0 ||
        http_open(&l->http, l->loop, err) < 0)
        return -1;
    if (host && port && !l->starts) /* who starts asks by itself */
        return open_node(l, host, port, err);
    if (!watch.base)
        return 0;
    watch.http = l->http;
    text_copy(l->at, sizeof l->at, watch.base);
    return metadata_watch_open(&l->watch, l->loop, &watch, err);
}

static bool has_whom_to_ask(void)
{
    return (config_get(CONFIG_POD_HOST_IP) && config_get(CONFIG_POD_NODE_PORT)) ||
           config_get(CONFIG_METADATA) || config_get(CONFIG_METADATA_START);
}

int listener_open(struct listener **ret, struct loop *loop, const struct listener_options *options,
                  struct error *err)
{
    *ret = NULL;
    if (!has_whom_to_ask())
        return 0;
    struct listener *l = calloc(1, sizeof *l);
    if (!l)
        return err_set(err, ERR_MACHINE, "no memory to listen for notices");
    l->loop = loop;
    l->options = *options;
    l->revision = -1;
    l->body = str_init(NOTICE_PAGE_MAX);
    heed_init(&l->heed);
    if (open_parts(l, err) < 0) {
        listener_free(l);
        return -1;
    }
    *ret = l;
    return 0;
}

void listener_free(struct listener *l)
{
    if (!l)
        return;
    http_cancel(l->call);
    metadata_watch_free(l->watch);
    http_free(l->http);
    loop_timer_free(l->ask_timer);
    loop_timer_free(l->heed_timer);
    str_clear(&l->body);
    free(l);
}
