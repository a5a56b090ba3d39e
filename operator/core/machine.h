/* What kind of machine a node is, as its cloud labels it: by that it has its price. Pure. */
#ifndef RM_OPERATOR_CORE_MACHINE_H
#define RM_OPERATOR_CORE_MACHINE_H

#include "operator/core/prices.h"

struct js;

/* How the known clouds mark their spot nodes. */
enum { MACHINE_POOLS = 4 };
extern const struct machine_pool {
    const char *label, *spot, *on_demand; /* on_demand NULL: the label is only on spot nodes */
} machine_pools[MACHINE_POOLS];

/* Reads a Node object; one that has none of those labels is on demand. */
void machine_read(const struct js *node, struct price_machine *ret);

/* "m5.large, spot, in eu-west-1a" */
enum { MACHINE_TEXT_MAX = 192 };
void machine_text(const struct price_machine *machine, char out[MACHINE_TEXT_MAX]);

#endif
