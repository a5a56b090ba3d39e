/* Cuts the API server's two long answers into objects while they arrive, so that neither a whole list nor a
 * whole tree of it is ever held, and an object that can't be parsed spoils no other. Pure.
 *
 * A list: each element of the top-level "items" is handed out as text; the rest of the answer (kind,
 * metadata) is kept and handed out at the end. A watch: one object a line. */
#ifndef RM_KUBE_SPLIT_H
#define RM_KUBE_SPLIT_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/str.h"

enum { SPLIT_OBJECT_MAX = 8 << 20 /* bytes of one object; the API server stores 1.5 MiB at most */ };

struct split {
    bool lines;
    /* Text of one object, NUL-terminated, may be changed in place. */
    void (*object)(void *ctx, char *text, size_t length);
    void *ctx;
    struct str text; /* of the object under way */
    struct str rest; /* of a list: everything around its items, "items":[] standing in for them */
    int depth;       /* of brackets around the next byte */
    bool in_string, escaped, in_items, in_item;
};

struct split split_init(bool lines, void (*object)(void *ctx, char *text, size_t length), void *ctx);
/* -1 where an object, or what is around a list's items, passes its ceiling. */
int split_add(struct split *split, const char *bytes, size_t count);
void split_reset(struct split *split); /* ready for the next answer */
void split_clear(struct split *split);

#endif
