#include "common/storage/object/fetch.h"

#include <string.h>
#include <strings.h>

#include "common/base/str.h"

struct fetching {
    const struct fetch_request *request;
    struct fetch_answer *answer;
    enum http_outcome outcome;
    bool done;
    char why[256];
};

static int body_came(void *ctx, int status, const void *bytes, size_t count)
{
    (void)status;
    struct fetch_answer *answer = ((struct fetching *)ctx)->answer;
    if (count >= sizeof answer->bytes - answer->length)
        return -1;
    memcpy(answer->bytes + answer->length, bytes, count);
    answer->length += count;
    return 0;
}

static void header_came(void *ctx, int status, const char *name, const char *value)
{
    (void)status;
    struct fetching *fetching = ctx;
    if (fetching->request->wanted && !strcasecmp(name, fetching->request->wanted))
        text_copy(fetching->answer->wanted, sizeof fetching->answer->wanted, value);
}

static void fetch_done(void *ctx, const struct http_answer *answer)
{
    struct fetching *fetching = ctx;
    fetching->outcome = answer->outcome;
    fetching->answer->status = answer->status;
    fetching->answer->bytes[fetching->answer->length] = 0;
    text_copy(fetching->why, sizeof fetching->why, answer->why);
    fetching->done = true;
}

static int fetch_once(struct waiter *waiter, const struct fetch_request *request, struct fetch_answer *ret,
                      struct error *err)
{
    struct fetching fetching = {.request = request, .answer = ret};
    struct http_request http = {.method = request->method,
                                .url = request->url,
                                .header = request->header,
                                .headers = request->headers,
                                .body = &request->body,
                                .runs = request->body.count ? 1 : 0,
                                .connect_within = request->connect_within,
                                .within = request->within,
                                .ca_file = request->ca_file,
                                .proxy = request->proxy,
                                .secret = true,
                                .header_came = header_came,
                                .body_came = body_came,
                                .done = fetch_done,
                                .ctx = &fetching};
    struct http_call *call;
    ret->length = 0;
    ret->wanted[0] = 0;
    if (http_start(waiter->http, &call, &http, err) < 0)
        return -1;
    while (!fetching.done)
        if (waiter_turn(waiter, RM_NEVER, err) < 0) {
            http_cancel(call);
            return -1;
        }
    if (fetching.outcome != HTTP_ANSWERED) {
        err_set(err, ERR_MACHINE, "%s", fetching.why);
        return err_class(err, CLASS_PASSING);
    }
    return 0;
}

static bool is_busy(const struct fetch_request *request, const struct fetch_answer *answer)
{
    return answer->status >= 500 || answer->status == 429 || (request->busy && request->busy(answer));
}

int fetch(struct waiter *waiter, const struct fetch_request *request, struct fetch_answer *ret,
          struct error *err)
{
    rm_time pause = 100 * RM_MS;
    for (int left = request->tries; left > 0; left--, pause *= 3) {
        struct error failed = {0};
        int result = fetch_once(waiter, request, ret, &failed);
        if (result == 0 && (left == 1 || !is_busy(request, ret)))
            return 0;
        if (result < 0 && (failed.code == ERR_ABORTED || left == 1))
            return err_from(err, &failed, "%s", failed.text);
        if (waiter_sleep(waiter, pause, err) < 0)
            return -1;
    }
    return err_set(err, ERR_MACHINE, "no try was allowed");
}
