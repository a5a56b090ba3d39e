#include "common/kube/answer.h"

#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

const char *kube_outcome_name(enum kube_outcome outcome)
{
    static const char *const names[] = {"ok",        "unreachable", "untrusted", "denied",
                                        "not found", "exists",      "conflict",  "gone",
                                        "invalid",   "busy",        "broken"};
    return names[outcome];
}

static enum kube_outcome outcome_of(int status, const char *reason)
{
    switch (status) {
    case 401:
    case 403:
        return KUBE_DENIED;
    case 404:
        return KUBE_NOT_FOUND;
    case 409:
        return strcmp(reason, "AlreadyExists") ? KUBE_CONFLICT : KUBE_EXISTS;
    case 410:
        return KUBE_GONE;
    case 400:
    case 413:
    case 415:
    case 422:
        return KUBE_INVALID;
    case 429:
    case 503:
    case 504:
        return KUBE_BUSY;
    default:
        return KUBE_BROKEN;
    }
}

/* What is not text for a log or a status becomes a space: a tenant's webhook may have chosen the words. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = ' ';
}

static void read_status(struct kube_answer *ret, const struct js *tree)
{
    int64_t seconds;
    const char *reason = js_as_string(js_get(tree, "reason"));
    const char *message = js_as_string(js_get(tree, "message"));
    if (reason)
        text_copy(ret->reason, sizeof ret->reason, reason);
    if (message)
        text_copy(ret->message, sizeof ret->message, message);
    if (js_as_int(js_get(js_get(tree, "details"), "retryAfterSeconds"), &seconds) && seconds > 0)
        ret->retry_after = (seconds < 300 ? seconds : 300) * RM_S;
}

void kube_answer_read(struct kube_answer *ret, struct js **ret_tree, int status, const char *body,
                      size_t length)
{
    struct error err = {0};
    struct js *tree = js_parse(body, length, "the API server's answer", &err);
    *ret = (struct kube_answer){.status = status};
    *ret_tree = NULL;
    if (status >= 200 && status < 300) {
        ret->outcome = tree ? KUBE_OK : KUBE_BROKEN;
        ret->object = *ret_tree = tree;
        text_copy(ret->message, sizeof ret->message, err.text);
        return;
    }
    if (tree)
        read_status(ret, tree);
    if (!ret->message[0]) /* a proxy on the way, or an API server that gave up */
        snprintf(ret->message, sizeof ret->message, "%.200s", length ? body : "an empty answer");
    make_printable(ret->message);
    make_printable(ret->reason);
    ret->outcome = outcome_of(status, ret->reason);
    js_free(tree);
}

int kube_answer_error(const struct kube_answer *answer, struct error *err)
{
    enum error_code code = answer->outcome == KUBE_NOT_FOUND                                   ? ERR_NOT_FOUND
                           : answer->outcome == KUBE_EXISTS                                    ? ERR_EXISTS
                           : answer->outcome == KUBE_DENIED || answer->outcome == KUBE_INVALID ? ERR_USAGE
                                                                                               : ERR_PEER;
    if (!answer->status)
        return err_set(err, code, "%s: %s", kube_outcome_name(answer->outcome), answer->message);
    return err_set(err, code, "%d %s: %s", answer->status, answer->reason, answer->message);
}
