/* What the API server answered, for branching and for a person: its own reason and sentence are kept. */
#ifndef RM_KUBE_ANSWER_H
#define RM_KUBE_ANSWER_H

#include <stddef.h>

#include "common/base/error.h"
#include "common/base/time.h"
#include "common/wire/json.h"

enum kube_outcome {
    KUBE_OK,
    KUBE_UNREACHABLE, /* no whole answer came: a write may have happened or not */
    KUBE_UNTRUSTED,   /* its certificate doesn't hold, or ours can't be used */
    KUBE_DENIED,      /* 401, 403: who we are, what we may, a quota, an admission policy */
    KUBE_NOT_FOUND,   /* 404 */
    KUBE_EXISTS,      /* 409 on a create */
    KUBE_CONFLICT,    /* 409: another resourceVersion, uid or field owner */
    KUBE_GONE,        /* 410: the version asked for is too old */
    KUBE_INVALID,     /* 400, 413, 415, 422: as it is, it will never be taken */
    KUBE_BUSY,        /* 429, 503, 504: later; see retry_after */
    KUBE_BROKEN,      /* any other status, or an answer that isn't what it should be */
};

struct kube_answer {
    enum kube_outcome outcome;
    int status;              /* of HTTP; 0 where none came */
    char reason[64];         /* "AlreadyExists", "Forbidden"...; "" where the server gave none */
    char message[1024];      /* the server's sentence, or what happened instead; "" where all is well */
    rm_time retry_after;     /* the server's wish; 0: none */
    rm_time sent;            /* clock_now() when the request was given to its connection; 0: never */
    const struct js *object; /* what it sent, borrowed for the call; NULL: nothing, or a Status */
};

/* "unreachable", "not found"... */
const char *kube_outcome_name(enum kube_outcome outcome);

/* Reads the answer of a status and a body. On KUBE_OK *ret_tree is the parsed body, owned by the caller and
 * pointed to by ret->object; else NULL. */
void kube_answer_read(struct kube_answer *ret, struct js **ret_tree, int status, const char *body,
                      size_t length);

/* Makes an error of it, with a code to branch on: "403 Forbidden: pods is forbidden: ...". Returns -1. */
int kube_answer_error(const struct kube_answer *answer, struct error *err);

#endif
