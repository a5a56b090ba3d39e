/* Pointers by name: a hash table of strings. It copies the names and owns nothing else. */
#ifndef RM_OPERATOR_TABLE_H
#define RM_OPERATOR_TABLE_H

#include <stddef.h>

struct table_place;

struct table {
    struct table_place **place;
    size_t places, count;
};

void table_clear(struct table *table);                        /* a table of zeros is an empty one */
void *table_get(const struct table *table, const char *name); /* NULL where there is none */
/* Puts it there, over what was there. value is never NULL. */
void table_put(struct table *table, const char *name, void *value);
void *table_remove(struct table *table, const char *name); /* what was there */

/* Each value once, in no order. `visit` may remove its own entry and change nothing else. */
void table_each(struct table *table, void (*visit)(void *ctx, const char *name, void *value), void *ctx);

#endif
