#include "coordinator/successor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/net/http.h"
#include "common/os/log.h"
#include "common/wire/json.h"
#include "common/wire/status.h"

enum { STATUS_MAX = 256 * 1024, URL_MAX = 512 };

static const rm_time look_every = 500 * RM_MS;
static const rm_time look_within = 3 * RM_S;

struct successor {
    struct successor_options options;
    char url[URL_MAX];
    struct loop *loop;
    struct http *http;
    struct loop_timer *timer;
};

bool successor_answers(const char *text, size_t length, const char *job, int64_t term)
{
    struct status_page page = {.preparing = true};
    struct js *root = js_parse(text, length, "its status", NULL);
    status_read_page(&page, root);
    bool is = !strcmp(page.job, job) && page.term > term && !page.preparing;
    js_free(root);
    return is;
}

static void look_again(struct successor *s)
{
    loop_timer_set(s->timer, loop_now(s->loop) + look_every);
}

static void answered(void *ctx, int status, const char *body, size_t length, const char *why)
{
    struct successor *s = ctx;
    if (status != 200 || !successor_answers(body, length, s->options.job, s->options.term)) {
        log_debug("no successor yet", "status=%d why=\"%s\"", status, why);
        look_again(s);
        return;
    }
    log_info("the successor is there", "address=%s", s->options.address);
    s->options.there(s->options.ctx);
}

/* A kept connection would lead to whoever answered last, which is this program. */
static void look_at_page(void *ctx)
{
    struct successor *s = ctx;
    struct error err;
    struct http_get get = {.url = s->url,
                           .within = look_within,
                           .body_max = STATUS_MAX,
                           .fresh = true,
                           .done = answered,
                           .ctx = s};
    if (http_get(s->http, &get, &err) == 0)
        return;
    log_warn("the successor can't be looked for", "why=\"%s\"", err.text);
    look_again(s);
}

int successor_watch(struct successor **ret, struct loop *loop, const struct successor_options *options,
                    struct error *err)
{
    struct successor *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MACHINE, "no memory to look for a successor");
    s->options = *options;
    s->loop = loop;
    if (snprintf(s->url, sizeof s->url, "http://%s/v1/status", options->address) >= URL_MAX) {
        successor_free(s);
        return err_set(err, ERR_USAGE, "a coordinator's name is not that long: %.100s", options->address);
    }
    if (http_open(&s->http, loop, err) < 0 || loop_timer_open(&s->timer, loop, look_at_page, s, err) < 0) {
        successor_free(s);
        return -1;
    }
    look_at_page(s);
    *ret = s;
    return 0;
}

void successor_free(struct successor *s)
{
    if (!s)
        return;
    http_free(s->http);
    loop_timer_free(s->timer);
    free(s);
}
