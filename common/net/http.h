/* HTTP GETs on a loop (libcurl stays inside http.c). For small answers: status pages and metadata. */
#ifndef RM_NET_HTTP_H
#define RM_NET_HTTP_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

struct http;

int http_open(struct http **ret, struct loop *loop, struct error *err);
/* Gives up what is under way, without callbacks. Not from a callback. */
void http_free(struct http *http);

struct http_get {
    const char *url; /* http:// only; redirects are not followed */
    rm_time within;  /* ns for all of it */
    size_t body_max; /* a longer answer is an error */
    /* Exactly once, in a later turn. status 0: nothing came, why says what happened. Otherwise the answer's
     * status and its body, NUL-terminated, borrowed for the call; why is "". */
    void (*done)(void *ctx, int status, const char *body, size_t length, const char *why);
    void *ctx;
};
int http_get(struct http *http, const struct http_get *request, struct error *err);

#endif
