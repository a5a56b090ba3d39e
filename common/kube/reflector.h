/* One kind of object, as it is and as it changes: a paged list, then a watch from there on, for ever.
 *
 * A watch that ends or breaks goes on where it was; where the server no longer knows that version (410) all
 * is listed anew. Bookmarks keep the version young, so that this is rare. What fails is tried again after a
 * back-off of 0.2 to 30 s with jitter, or when the server wished. An object that can't be parsed is told as
 * trouble and skipped.
 *
 * Objects come as borrowed JSON, one at a time; whoever gets them projects what it needs and keeps no tree.
 * From `listing` to `listed` every object there is comes as KUBE_ADDED: what doesn't come by then is gone.
 * Callbacks must not free the reflector or its client. */
#ifndef RM_KUBE_REFLECTOR_H
#define RM_KUBE_REFLECTOR_H

#include <stdbool.h>
#include <stdint.h>

#include "common/kube/client.h"
#include "common/loop/loop.h"

enum kube_change { KUBE_ADDED, KUBE_MODIFIED, KUBE_DELETED };

struct reflector_options {
    struct kube *kube;
    const struct kube_resource *resource;
    const char *namespace; /* NULL: all; must stay */
    const char *labels;    /* selector, NULL: all; must stay */
    int page;              /* objects of one page; 0: 500 */
    uint64_t seed;         /* of the jitter */
    rm_time silent_within; /* 0: 150 s; the server sends a bookmark each minute */
    void (*listing)(void *ctx);
    void (*object)(void *ctx, enum kube_change change, const struct js *object);
    void (*listed)(void *ctx);
    void (*heard)(void *ctx); /* a watch has said its first word: it goes on; NULL: nobody asks */
    /* Each failure; it is tried again after `again_in`. */
    void (*trouble)(void *ctx, const struct kube_answer *answer, rm_time again_in);
    void *ctx;
};

struct reflector;

/* Starts at once. */
int reflector_open(struct reflector **ret, struct loop *loop, const struct reflector_options *options,
                   struct error *err);
void reflector_free(struct reflector *reflector);

/* Has a whole list come once? */
bool reflector_synced(const struct reflector *reflector);

#endif
