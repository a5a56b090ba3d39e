/* An HTTP server that says what a test wants said, also what no good server says. Threads of its own: the
 * code under test may block. */
#ifndef RM_TESTS_STUB_H
#define RM_TESTS_STUB_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/str.h"

struct stub;

struct stub_request {
    int number; /* of this server, from 0 */
    char method[16];
    char target[8192];
    const char *head; /* all header lines, NUL-terminated */
    const char *body;
    size_t body_length;
};

enum stub_then {
    STUB_KEEP,  /* keep the connection */
    STUB_CLOSE, /* close it in peace */
    STUB_RESET, /* break it */
    STUB_HANG,  /* say no more, and read no more */
};

/* Puts the answer's bytes, status line and all, into *answer. One call at a time, on a thread of the server.
 */
typedef enum stub_then (*stub_reply)(void *ctx, const struct stub_request *request, struct str *answer);

struct stub *stub_open(stub_reply reply, void *ctx);
void stub_free(struct stub *stub);
int stub_port(const struct stub *stub);
int stub_requests(struct stub *stub);    /* how many came */
int stub_connections(struct stub *stub); /* over how many connections */

/* The value of a header of the request, "" where it has none; borrowed until the next call of this thread. */
const char *stub_header(const struct stub_request *request, const char *name);
/* A plain answer: status, header lines ("A: b\r\n" or ""), body. Content-Length is added. */
void stub_say(struct str *answer, int status, const char *headers, const void *body, size_t length);

#endif
