#include "tests/unit/common/storage/checkpoint/bucket.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/common/net/stub.h"

enum { OBJECTS_MAX = 32, KEY_MAX = 128, BODY_MAX = 2048 };

static const char base[] = "/bucket/base/";

struct kept {
    char name[KEY_MAX], body[BODY_MAX];
    int version;
};

struct bucket {
    struct stub *stub;
    char endpoint[64];
    pthread_mutex_t mutex;
    pthread_cond_t listed;
    struct kept object[OBJECTS_MAX]; /* in order of the names */
    int count, versions, listings;
    const char *no_heads;
};

static struct kept *find(struct bucket *b, const char *name)
{
    for (int i = 0; i < b->count; i++)
        if (!strcmp(b->object[i].name, name))
            return &b->object[i];
    return NULL;
}

static struct kept *make(struct bucket *b, const char *name)
{
    int at = b->count;
    cr_assert(b->count < OBJECTS_MAX);
    for (; at > 0 && strcmp(b->object[at - 1].name, name) > 0; at--)
        b->object[at] = b->object[at - 1];
    b->count++;
    snprintf(b->object[at].name, KEY_MAX, "%s", name);
    return &b->object[at];
}

static void put(struct bucket *b, const char *name, const char *text, size_t length)
{
    struct kept *o = find(b, name);
    cr_assert(length < BODY_MAX);
    o = o ? o : make(b, name);
    memcpy(o->body, text, length);
    o->body[length] = 0;
    o->version = ++b->versions;
}

static void drop(struct bucket *b, struct kept *o)
{
    memmove(o, o + 1, (size_t)(b->object + b->count - o - 1) * sizeof *o);
    b->count--;
}

static void refuse(struct str *answer, int status, const char *code)
{
    char body[256];
    int n = snprintf(body, sizeof body, "<?xml version=\"1.0\"?><Error><Code>%s</Code></Error>", code);
    stub_say(answer, status, "", body, (size_t)n);
}

static void list(struct bucket *b, struct str *answer)
{
    struct str page = str_init(1 << 20);
    str_adds(&page, "<?xml version=\"1.0\"?><ListBucketResult><IsTruncated>false</IsTruncated>");
    for (int i = 0; i < b->count; i++)
        str_addf(&page,
                 "<Contents><Key>base/%s</Key><LastModified>2026-11-25T10:00:00.000Z</LastModified>"
                 "<ETag>&quot;v%d&quot;</ETag><Size>%zu</Size></Contents>",
                 b->object[i].name, b->object[i].version, strlen(b->object[i].body));
    str_adds(&page, "</ListBucketResult>");
    stub_say(answer, 200, "Content-Type: application/xml\r\n", page.data, page.length);
    str_clear(&page);
    b->listings++;
    pthread_cond_broadcast(&b->listed);
}

static bool ends(const char *name, const char *end)
{
    return end && strlen(name) >= strlen(end) && !strcmp(name + strlen(name) - strlen(end), end);
}

static void take(struct bucket *b, const struct stub_request *r, const char *name, struct str *answer)
{
    char tag[64];
    if (*stub_header(r, "If-None-Match") && find(b, name)) {
        refuse(answer, 412, "PreconditionFailed");
    } else {
        put(b, name, r->body, r->body_length);
        snprintf(tag, sizeof tag, "ETag: \"v%d\"\r\n", b->versions);
        stub_say(answer, 200, tag, "", 0);
    }
}

static void give(struct bucket *b, const struct stub_request *r, const char *name, struct str *answer)
{
    struct kept *o = find(b, name);
    char headers[128];
    bool head = !strcmp(r->method, "HEAD");
    if (head && ends(name, b->no_heads)) {
        str_adds(answer, "HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n");
    } else if (!o) {
        if (head)
            str_adds(answer, "HTTP/1.1 404 no\r\nContent-Length: 0\r\n\r\n");
        else
            refuse(answer, 404, "NoSuchKey");
    } else if (head) {
        str_addf(answer, "HTTP/1.1 200 yes\r\nETag: \"v%d\"\r\nContent-Length: %zu\r\n\r\n", o->version,
                 strlen(o->body));
    } else {
        snprintf(headers, sizeof headers, "ETag: \"v%d\"\r\n", o->version);
        stub_say(answer, 200, headers, o->body, strlen(o->body));
    }
}

static enum stub_then serve(void *ctx, const struct stub_request *r, struct str *answer)
{
    struct bucket *b = ctx;
    pthread_mutex_lock(&b->mutex);
    const char *name = strncmp(r->target, base, sizeof base - 1) == 0 ? r->target + sizeof base - 1 : "";
    if (strstr(r->target, "list-type="))
        list(b, answer);
    else if (!strcmp(r->method, "PUT"))
        take(b, r, name, answer);
    else if (!strcmp(r->method, "DELETE")) {
        struct kept *o = find(b, name);
        if (o)
            drop(b, o);
        str_adds(answer, "HTTP/1.1 204 gone\r\nContent-Length: 0\r\n\r\n");
    } else
        give(b, r, name, answer);
    pthread_mutex_unlock(&b->mutex);
    return STUB_KEEP;
}

struct bucket *bucket_open(void)
{
    struct bucket *b = calloc(1, sizeof *b);
    cr_assert(b);
    pthread_mutex_init(&b->mutex, NULL);
    pthread_cond_init(&b->listed, NULL);
    b->stub = stub_open(serve, b);
    snprintf(b->endpoint, sizeof b->endpoint, "http://127.0.0.1:%d", stub_port(b->stub));
    setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE", 1);
    setenv("AWS_SECRET_ACCESS_KEY", "secret", 1);
    setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null", 1);
    setenv("AWS_CONFIG_FILE", "/dev/null", 1);
    unsetenv("RINGMASTER_POD_CREDENTIALS");
    return b;
}

void bucket_free(struct bucket *b)
{
    stub_free(b->stub);
    pthread_cond_destroy(&b->listed);
    pthread_mutex_destroy(&b->mutex);
    free(b);
}

const char *bucket_endpoint(const struct bucket *b)
{
    return b->endpoint;
}

void bucket_put(struct bucket *b, const char *name, const char *text)
{
    pthread_mutex_lock(&b->mutex);
    put(b, name, text, strlen(text));
    pthread_mutex_unlock(&b->mutex);
}

bool bucket_has(struct bucket *b, const char *name)
{
    pthread_mutex_lock(&b->mutex);
    bool has = find(b, name) != NULL;
    pthread_mutex_unlock(&b->mutex);
    return has;
}

void bucket_get(struct bucket *b, const char *name, char *out, size_t size)
{
    pthread_mutex_lock(&b->mutex);
    const struct kept *o = find(b, name);
    snprintf(out, size, "%s", o ? o->body : "");
    pthread_mutex_unlock(&b->mutex);
}

bool bucket_await_listings(struct bucket *b, int more)
{
    struct timespec end;
    int result = 0;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += 30;
    pthread_mutex_lock(&b->mutex);
    int until = b->listings + more;
    while (b->listings < until && result == 0)
        result = pthread_cond_timedwait(&b->listed, &b->mutex, &end);
    pthread_mutex_unlock(&b->mutex);
    return result == 0;
}

void bucket_refuse_heads(struct bucket *b, const char *end)
{
    pthread_mutex_lock(&b->mutex);
    b->no_heads = end;
    pthread_mutex_unlock(&b->mutex);
}
