/* A host's name to an IP address, without holding up the loop: the system's resolver may take seconds. */
#ifndef RM_NET_RESOLVE_H
#define RM_NET_RESOLVE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/loop/loop.h"

struct resolve;

/* An address needs no resolving. */
bool resolve_is_address(const char *host);

/* Asks the system's resolver (hosts file, DNS) afresh. done comes exactly once, in a later turn: address is
 * the first one of either family ("10.0.0.7", "fd00::7"), or NULL, and why then says what happened. Both are
 * borrowed for the call, which may free the resolve. Without memory or a thread: ERR_MACHINE. */
int resolve_start(struct resolve **ret, struct loop *loop, const char *host,
                  void (*done)(void *ctx, const char *address, const char *why), void *ctx,
                  struct error *err);
/* done comes no more. NULL is fine. */
void resolve_free(struct resolve *resolve);

#endif
