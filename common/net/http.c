#include "common/net/http.h"

#include <curl/curl.h>
#include <stdlib.h>

#include "common/base/str.h"
#include "common/os/clock.h"

struct request {
    struct http *http;
    struct request *next, **link; /* list of those under way; link points at what points here */
    CURL *curl;
    struct http_get get;
    struct str body;
    char why[CURL_ERROR_SIZE];
};

struct socket {
    struct http *http;
    struct loop_watch *watch;
    curl_socket_t fd;
};

struct http {
    struct loop *loop;
    struct loop_timer *timer;
    CURLM *multi;
    struct request *first;
};

static size_t body_came(char *bytes, size_t one, size_t length, void *ctx)
{
    struct request *request = ctx;
    str_add(&request->body, bytes, one * length);
    return request->body.truncated ? 0 : one * length; /* fewer than given ends the transfer */
}

static void request_free(struct request *request)
{
    *request->link = request->next;
    if (request->next)
        request->next->link = request->link;
    curl_multi_remove_handle(request->http->multi, request->curl);
    curl_easy_cleanup(request->curl);
    str_clear(&request->body);
    free(request);
}

static void request_done(struct request *request, CURLcode code)
{
    long status = 0;
    struct http_get get = request->get;
    struct str body = request->body;
    char why[CURL_ERROR_SIZE];
    request->body = str_init(0);
    if (code == CURLE_OK)
        curl_easy_getinfo(request->curl, CURLINFO_RESPONSE_CODE, &status);
    text_copy(why, sizeof why, request->why[0] ? request->why : curl_easy_strerror(code));
    request_free(request);
    if (status)
        get.done(get.ctx, (int)status, str_text(&body), body.length, "");
    else
        get.done(get.ctx, 0, "", 0, why);
    str_clear(&body);
}

static void collect(struct http *http)
{
    int left;
    CURLMsg *message;
    while ((message = curl_multi_info_read(http->multi, &left)))
        if (message->msg == CURLMSG_DONE) {
            struct request *request = NULL;
            CURLcode code = message->data.result;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&request);
            request_done(request, code);
        }
}

static void socket_ready(void *ctx, int events)
{
    struct socket *socket = ctx;
    struct http *http = socket->http; /* the socket may be gone after the next line */
    int running, mask = (events & LOOP_READABLE ? CURL_CSELECT_IN : 0) |
                        (events & LOOP_WRITABLE ? CURL_CSELECT_OUT : 0);
    curl_multi_socket_action(http->multi, socket->fd, mask, &running);
    collect(http);
}

static void timer_fired(void *ctx)
{
    struct http *http = ctx;
    int running;
    curl_multi_socket_action(http->multi, CURL_SOCKET_TIMEOUT, 0, &running);
    collect(http);
}

static int timer_wanted(CURLM *multi, long ms, void *ctx)
{
    (void)multi;
    struct http *http = ctx;
    loop_timer_set(http->timer, ms < 0 ? RM_NEVER : clock_now() + ms * RM_MS);
    return 0;
}

static struct socket *socket_new(struct http *http, curl_socket_t fd)
{
    struct socket *socket = calloc(1, sizeof *socket);
    if (!socket)
        return NULL;
    socket->http = http;
    socket->fd = fd;
    if (loop_watch_open(&socket->watch, http->loop, fd, socket_ready, socket, NULL) < 0) {
        free(socket);
        return NULL;
    }
    curl_multi_assign(http->multi, fd, socket);
    return socket;
}

static int socket_wanted(CURL *curl, curl_socket_t fd, int what, void *ctx, void *assigned)
{
    (void)curl;
    struct socket *socket = assigned;
    if (what == CURL_POLL_REMOVE) {
        if (socket)
            loop_watch_free(socket->watch);
        free(socket);
        return 0;
    }
    if (!socket && !(socket = socket_new(ctx, fd)))
        return -1;
    loop_watch_set(socket->watch,
                   (what & CURL_POLL_IN ? LOOP_READABLE : 0) | (what & CURL_POLL_OUT ? LOOP_WRITABLE : 0));
    return 0;
}

int http_open(struct http **ret, struct loop *loop, struct error *err)
{
    struct http *http = calloc(1, sizeof *http);
    if (!http)
        return err_set(err, ERR_MACHINE, "no memory for HTTP");
    http->loop = loop;
    curl_global_init(CURL_GLOBAL_DEFAULT);
    http->multi = curl_multi_init();
    if (!http->multi || loop_timer_open(&http->timer, loop, timer_fired, http, err) < 0) {
        http_free(http);
        return err_set(err, ERR_MACHINE, "no memory for HTTP");
    }
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, socket_wanted);
    curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, timer_wanted);
    curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http);
    *ret = http;
    return 0;
}

void http_free(struct http *http)
{
    if (!http)
        return;
    for (struct request *request = http->first, *next; request; request = next) {
        next = request->next;
        request_free(request);
    }
    curl_multi_cleanup(http->multi);
    loop_timer_free(http->timer);
    curl_global_cleanup();
    free(http);
}

static void describe(struct request *request)
{
    CURL *curl = request->curl;
    curl_easy_setopt(curl, CURLOPT_URL, request->get.url);
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http");
    curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says: these are our own programs */
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)(request->get.within / RM_MS));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, request->why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_came);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, request);
    curl_easy_setopt(curl, CURLOPT_PRIVATE, request);
}

int http_get(struct http *http, const struct http_get *get, struct error *err)
{
    struct request *request = calloc(1, sizeof *request);
    CURL *curl = curl_easy_init();
    if (!request || !curl) {
        free(request);
        curl_easy_cleanup(curl);
        return err_set(err, ERR_MACHINE, "no memory for a request");
    }
    *request = (struct request){.http = http,
                                .next = http->first,
                                .link = &http->first,
                                .curl = curl,
                                .get = *get,
                                .body = str_init(get->body_max + 1)};
    if (http->first)
        http->first->link = &request->next;
    http->first = request;
    describe(request);
    curl_multi_add_handle(http->multi, curl);
    return 0;
}
