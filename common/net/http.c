/* HTTP requests over libcurl's multi interface, whose sockets and timers are those of the project's loop. */
#include "common/net/http.h"

#include <curl/curl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>

#include "common/base/str.h"
#include "common/net/trust.h"
#include "common/os/clock.h"

enum {
    IDLE_MAX = 64,            /* curl's handles that wait for the next request, with their buffers */
    BUFFER_BYTES = 256 << 10, /* of a request, each way: small enough for the processor's cache */
    HEADER_MAX = 2048,
    RUNS_MAX = 8,
    CONNECTIONS_MAX =
        1 << 20, /* that are kept, idle: as many as there may be. Each has its age, and its peer */
};

struct http_call {
    struct http *http;
    struct http_call *next, **link; /* list of those under way; link points at what points here */
    CURL *curl;
    struct http_request request; /* without the strings, which curl has copied */
    struct curl_slist *headers;
    struct http_run run[RUNS_MAX];
    int64_t sent;
    struct http_get get; /* done: what http_get is for, with the bytes that came */
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
    struct http_call *first;
    CURL *idle[IDLE_MAX];
    int idles;
};

/* --- one request, as curl sees it --- */

static int status_of(CURL *curl)
{
    long status = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    return (int)status;
}

static size_t body_came(char *bytes, size_t one, size_t length, void *ctx)
{
    struct http_call *call = ctx;
    const struct http_request *request = &call->request;
    size_t count = one * length;
    int ok = 0;
    if (request->body_came)
        ok = request->body_came(request->ctx, status_of(call->curl), bytes, count);
    if (request->secret)
        explicit_bzero(bytes, count);
    return ok < 0 ? CURL_WRITEFUNC_ERROR : count;
}

/* Cuts a header line at its colon, without the white space around the value. */
static size_t header_came(char *bytes, size_t one, size_t length, void *ctx)
{
    struct http_call *call = ctx;
    char line[HEADER_MAX];
    size_t count = one * length, end = count;
    while (end && (bytes[end - 1] == '\r' || bytes[end - 1] == '\n' || bytes[end - 1] == ' '))
        end--;
    const char *colon = memchr(bytes, ':', end);
    if (!colon || end >= sizeof line)
        return count;
    memcpy(line, bytes, end);
    line[end] = 0;
    line[colon - bytes] = 0;
    const char *value = line + (colon - bytes) + 1;
    value += strspn(value, " \t");
    call->request.header_came(call->request.ctx, status_of(call->curl), line, value);
    return count;
}

static size_t body_wanted(char *out, size_t one, size_t most, void *ctx)
{
    struct http_call *call = ctx;
    size_t room = one * most, given = 0;
    int64_t skip = call->sent;
    for (int i = 0; i < call->request.runs && given < room; i++) {
        size_t count = call->run[i].count;
        if (skip >= (int64_t)count) {
            skip -= (int64_t)count;
            continue;
        }
        size_t left = count - (size_t)skip, take = left < room - given ? left : room - given;
        memcpy(out + given, (const char *)call->run[i].bytes + skip, take);
        given += take;
        skip = 0;
    }
    call->sent += (int64_t)given;
    return given;
}

/* A kept connection that turns out to be dead makes curl send the body again on a fresh one. */
static int body_again(void *ctx, curl_off_t offset, int origin)
{
    struct http_call *call = ctx;
    if (origin != SEEK_SET)
        return CURL_SEEKFUNC_CANTSEEK;
    call->sent = offset;
    return CURL_SEEKFUNC_OK;
}

static long buffer_of(const struct http_request *request)
{
    return request->buffer ? request->buffer : BUFFER_BYTES;
}

static void describe_body(struct http_call *call)
{
    int64_t bytes = 0;
    for (int i = 0; i < call->request.runs; i++)
        bytes += (int64_t)call->run[i].count;
    curl_easy_setopt(call->curl, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(call->curl, CURLOPT_INFILESIZE_LARGE, (curl_off_t)bytes);
    curl_easy_setopt(call->curl, CURLOPT_READFUNCTION, body_wanted);
    curl_easy_setopt(call->curl, CURLOPT_READDATA, call);
    curl_easy_setopt(call->curl, CURLOPT_SEEKFUNCTION, body_again);
    curl_easy_setopt(call->curl, CURLOPT_SEEKDATA, call);
    curl_easy_setopt(call->curl, CURLOPT_UPLOAD_BUFFERSIZE, buffer_of(&call->request));
}

static void describe_method(struct http_call *call, const char *method)
{
    if (!strcmp(method, "PUT") || !strcmp(method, "POST") || call->request.runs)
        describe_body(call);
    if (!strcmp(method, "HEAD"))
        curl_easy_setopt(call->curl, CURLOPT_NOBODY, 1L);
    else if (strcmp(method, "GET") != 0)
        curl_easy_setopt(call->curl, CURLOPT_CUSTOMREQUEST, method);
}

/* curl leaves a header with nothing behind the colon out; with a semicolon it sends it empty. */
static int add_header(struct http_call *call, const char *line)
{
    char empty[HEADER_MAX];
    size_t length = strlen(line), end = length;
    while (end && line[end - 1] == ' ')
        end--;
    if (end && line[end - 1] == ':' && end < sizeof empty) {
        snprintf(empty, sizeof empty, "%.*s;", (int)(end - 1), line);
        line = empty;
    }
    struct curl_slist *grown = curl_slist_append(call->headers, line);
    if (!grown)
        return -1;
    call->headers = grown;
    return 0;
}

static int describe_headers(struct http_call *call, const struct http_request *request)
{
    /* What curl would add by itself: nobody has signed it, and waiting for a 100 costs a round trip. */
    static const char *const none[] = {"Expect:", "Content-Type:", "Accept:"};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        struct curl_slist *grown = curl_slist_append(call->headers, none[i]);
        if (!grown)
            return -1;
        call->headers = grown;
    }
    for (int i = 0; i < request->headers; i++)
        if (add_header(call, request->header[i]) < 0)
            return -1;
    curl_easy_setopt(call->curl, CURLOPT_HTTPHEADER, call->headers);
    return 0;
}

static long whole_ms(rm_time t)
{
    return (long)((t + RM_MS - 1) / RM_MS);
}

static void describe_limits(CURL *curl, const struct http_request *request)
{
    char room[TRUST_PATH_MAX];
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     request->connect_within ? whole_ms(request->connect_within) : 10000L);
    if (request->within)
        curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, whole_ms(request->within));
    if (request->silent_within) {
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
        curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)((request->silent_within + RM_S - 1) / RM_S));
    }
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION,
                     (long)(request->http2 ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_1_1));
    curl_easy_setopt(curl, CURLOPT_PIPEWAIT, request->http2 ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    const char *trusted = request->ca_file ? request->ca_file : trust_file(room, sizeof room);
    if (trusted)
        curl_easy_setopt(curl, CURLOPT_CAINFO, trusted);
    if (request->fresh) {
        curl_easy_setopt(curl, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L); /* the next one is on a new one as well */
    }
    /* curl would keep addresses as if they had been looked up, and goes through what it keeps with each
     * request: with thousands of peers that is all that it does. */
    if (request->fresh || request->address)
        curl_easy_setopt(curl, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    if (!request->proxy)
        curl_easy_setopt(curl, CURLOPT_PROXY, ""); /* whatever the environment says */
}

bool http_is_own_machine(const char *host)
{
    size_t length = 0;
    if (!strncmp(host, "127.", 4))
        length = strspn(host, "0123456789.");
    else if (!strncasecmp(host, "localhost", 9))
        length = 9;
    else if (!strncmp(host, "[::1]", 5))
        length = 5;
    return length && (!host[length] || host[length] == ':' || host[length] == '/');
}

static int add_blob(CURL *curl, CURLoption option, const char *text)
{
    struct curl_blob blob = {(void *)(uintptr_t)text, text ? strlen(text) : 0, CURL_BLOB_NOCOPY};
    return !text || curl_easy_setopt(curl, option, &blob) == CURLE_OK ? 0 : -1;
}

static int describe_identity(CURL *curl, const struct http_identity *identity)
{
    return add_blob(curl, CURLOPT_CAINFO_BLOB, identity->ca) < 0 ||
                   add_blob(curl, CURLOPT_SSLCERT_BLOB, identity->cert) < 0 ||
                   add_blob(curl, CURLOPT_SSLKEY_BLOB, identity->key) < 0
               ? -1
               : 0;
}

/* Bytes that nobody acknowledges end the connection as well as probes do; without this, 15 minutes. */
static int socket_made(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
    struct http_call *call = ctx;
    unsigned ms = (unsigned)whole_ms(call->request.lost_within);
    (void)purpose;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
    return CURL_SOCKOPT_OK;
}

static void describe_probes(struct http_call *call, rm_time lost_within)
{
    long third = (long)((lost_within / 3 + RM_S - 1) / RM_S);
    curl_easy_setopt(call->curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(call->curl, CURLOPT_TCP_KEEPIDLE, third);
    curl_easy_setopt(call->curl, CURLOPT_TCP_KEEPINTVL, third);
    curl_easy_setopt(call->curl, CURLOPT_SOCKOPTFUNCTION, socket_made);
    curl_easy_setopt(call->curl, CURLOPT_SOCKOPTDATA, call);
}

static int describe_call(struct http_call *call, const struct http_request *request)
{
    CURL *curl = call->curl;
    if (curl_easy_setopt(curl, CURLOPT_URL, request->url) != CURLE_OK || describe_headers(call, request) < 0)
        return -1;
    describe_method(call, request->method);
    describe_limits(curl, request);
    if (request->identity && describe_identity(curl, request->identity) < 0)
        return -1;
    if (request->lost_within)
        describe_probes(call, request->lost_within);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "ringmaster");
    curl_easy_setopt(curl, CURLOPT_BUFFERSIZE, buffer_of(request));
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, call->why);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, body_came);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, call);
    if (request->header_came) {
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, header_came);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, call);
    }
    curl_easy_setopt(curl, CURLOPT_PRIVATE, call);
    return 0;
}

/* --- requests under way --- */

/* A handle with its buffers is kept for the next request: taking them anew costs a page fault each 4 KiB. */
static CURL *handle_take(struct http *http)
{
    return http->idles ? http->idle[--http->idles] : curl_easy_init();
}

static void handle_give(struct http *http, CURL *curl)
{
    if (http->idles == IDLE_MAX) {
        curl_easy_cleanup(curl);
        return;
    }
    curl_easy_reset(curl);
    http->idle[http->idles++] = curl;
}

static void call_free(struct http_call *call)
{
    *call->link = call->next;
    if (call->next)
        call->next->link = call->link;
    curl_multi_remove_handle(call->http->multi, call->curl);
    handle_give(call->http, call->curl);
    curl_slist_free_all(call->headers);
    str_clear(&call->body);
    free(call);
}

int http_start(struct http *http, struct http_call **ret, const struct http_request *request,
               struct error *err)
{
    struct http_call *call = calloc(1, sizeof *call);
    CURL *curl = handle_take(http);
    if (!call || !curl || request->runs > RUNS_MAX) {
        free(call);
        curl_easy_cleanup(curl);
        return err_set(err, ERR_MACHINE, "no memory for a request");
    }
    *call = (struct http_call){
        .http = http, .next = http->first, .link = &http->first, .curl = curl, .request = *request};
    for (int i = 0; i < request->runs; i++)
        call->run[i] = request->body[i];
    if (http->first)
        http->first->link = &call->next;
    http->first = call;
    if (describe_call(call, request) < 0 || curl_multi_add_handle(http->multi, curl) != CURLM_OK) {
        call_free(call);
        return err_set(err, ERR_MACHINE, "no memory for a request");
    }
    if (ret)
        *ret = call;
    return 0;
}

void http_cancel(struct http_call *call)
{
    if (call)
        call_free(call);
}

int64_t http_sent(const struct http_call *call)
{
    return call->sent;
}

static enum http_outcome outcome_of(CURLcode code)
{
    switch (code) {
    case CURLE_OK:
        return HTTP_ANSWERED;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        return HTTP_NO_CONNECTION;
    case CURLE_OPERATION_TIMEDOUT:
        return HTTP_SILENT;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_CERTPROBLEM:
        return HTTP_UNTRUSTED;
    case CURLE_WRITE_ERROR:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return HTTP_DECLINED;
    default:
        return HTTP_BROKEN;
    }
}

static void call_done(struct http_call *call, CURLcode code)
{
    struct http_request request = call->request;
    struct http_get get = call->get;
    struct str body = call->body;
    char why[CURL_ERROR_SIZE] = "";
    struct http_answer answer = {.outcome = outcome_of(code), .status = status_of(call->curl), .why = why};
    if (code != CURLE_OK)
        text_copy(why, sizeof why, call->why[0] ? call->why : curl_easy_strerror(code));
    call->body = str_init(0);
    call_free(call);
    if (!get.done)
        request.done(request.ctx, &answer);
    else if (code == CURLE_OK)
        get.done(get.ctx, answer.status, str_text(&body), body.length, "");
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
            struct http_call *call = NULL;
            CURLcode code = message->data.result;
            curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&call);
            call_done(call, code);
        }
}

/* --- the loop's side --- */

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

/* By itself curl closes those over four times as many as there are requests at this moment, and looks
 * through all of them for the oldest each time: of thousands of peers that are asked by turns few would be
 * found again. */
void http_keep_all(struct http *http)
{
    curl_multi_setopt(http->multi, CURLMOPT_MAXCONNECTS, (long)CONNECTIONS_MAX);
}

void http_free(struct http *http)
{
    if (!http)
        return;
    for (struct http_call *call = http->first, *next; call; call = next) {
        next = call->next;
        call_free(call);
    }
    while (http->idles)
        curl_easy_cleanup(http->idle[--http->idles]);
    curl_multi_cleanup(http->multi);
    loop_timer_free(http->timer);
    curl_global_cleanup();
    free(http);
}

/* --- small answers --- */

static int small_came(void *ctx, int status, const void *bytes, size_t count)
{
    (void)status;
    struct http_call *call = ctx;
    str_add(&call->body, bytes, count);
    return call->body.truncated ? -1 : 0;
}

int http_get(struct http *http, const struct http_get *get, struct error *err)
{
    struct http_request request = {.method = "GET",
                                   .url = get->url,
                                   .within = get->within,
                                   .fresh = get->fresh,
                                   .body_came = small_came};
    struct http_call *call;
    if (http_start(http, &call, &request, err) < 0)
        return -1;
    call->request.ctx = call;
    call->get = *get;
    call->body = str_init(get->body_max + 1);
    return 0;
}
