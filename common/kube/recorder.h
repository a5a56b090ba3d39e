/* Events (events.k8s.io/v1) beside an object, for `kubectl describe` and `kubectl events`.
 *
 * Best effort: what can't be written is told to whoever opened this, counted and forgotten. The same words
 * about the same object within 6 minutes are one event with a series: the first repeat is written at once
 * (once the event is there), later ones are counted and written once a minute. One object gets at most 25
 * events at once and then one each 10 s, so that a loop that goes wrong fills no etcd; the same again of
 * warnings, which no number of other events crowds out. */
#ifndef RM_KUBE_RECORDER_H
#define RM_KUBE_RECORDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/kube/client.h"
#include "common/loop/loop.h"

struct kube_note {
    const struct kube_resource *resource; /* what it is about */
    const char *namespace, *name, *uid;
    bool warning;       /* else Normal */
    const char *reason; /* "RingFormed": CamelCase, up to 128 bytes */
    const char *action; /* "Forming": what was done; "" is "Reconcile" */
    const char *text;   /* one sentence; cut at 1024 bytes */
};

struct recorder_options {
    struct kube *kube;
    const char *controller; /* "ringmaster.dev/operator" */
    const char *instance;   /* the pod's name; both are copied */
    /* The server's answer to an event that it did not take, the nth in a row. NULL: nobody asks. */
    void (*trouble)(void *ctx, const struct kube_answer *answer, int n);
    void *ctx;
};

struct recorder;
int recorder_open(struct recorder **ret, struct loop *loop, const struct recorder_options *options,
                  struct error *err);
void recorder_free(struct recorder *recorder);
void recorder_tell(struct recorder *recorder, const struct kube_note *note);
int64_t recorder_lost(const struct recorder *recorder); /* events that were not written */

#endif
