/* One small request, waited for: where credentials come from. Its answer lies in memory for secrets. */
#ifndef RM_OBJECT_FETCH_H
#define RM_OBJECT_FETCH_H

#include "common/storage/object/waiter.h"

enum { FETCH_MAX = 64 << 10 }; /* bytes of an answer, with a NUL behind */

struct fetch_answer;

struct fetch_request {
    const char *method, *url;
    const char *const *header; /* (headers) */
    int headers;
    struct http_run body;
    const char *ca_file;
    rm_time connect_within, within; /* of one try */
    int tries;
    bool proxy;
    bool (*busy)(const struct fetch_answer *answer); /* NULL, or: is it a refusal for now? */
    const char *wanted;                              /* NULL, or the name of a header of the answer */
};

struct fetch_answer {
    int status;
    size_t length;
    char wanted[64]; /* the value of that header; "": it has none */
    char bytes[FETCH_MAX];
};

/* 0 with an answer of whatever status (tried again where it is 500 or more, 429, or `busy`); ERR_MACHINE
 * where none came. */
int fetch(struct waiter *waiter, const struct fetch_request *request, struct fetch_answer *ret,
          struct error *err);

#endif
