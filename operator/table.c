#include "operator/table.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct table_place {
    struct table_place *next;
    uint64_t hash;
    void *value;
    char name[];
};

/* FNV-1a: names are the cluster's, of bounded length, and a user who chose them to collide would slow down
 * the look-up of his own jobs. */
static uint64_t hash_of(const char *name)
{
    uint64_t hash = 0xcbf29ce484222325;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 0x100000001b3;
    return hash;
}

static struct table_place **find_place(const struct table *table, const char *name, uint64_t hash)
{
    struct table_place **at = &table->place[hash % table->places];
    while (*at && ((*at)->hash != hash || strcmp((*at)->name, name) != 0))
        at = &(*at)->next;
    return at;
}

static void grow(struct table *table)
{
    struct table grown = {.places = table->places ? 2 * table->places : 16, .count = table->count};
    grown.place = calloc(grown.places, sizeof *grown.place);
    if (!grown.place)
        abort();
    for (size_t i = 0; i < table->places; i++)
        for (struct table_place *at = table->place[i], *next; at; at = next) {
            next = at->next;
            at->next = grown.place[at->hash % grown.places];
            grown.place[at->hash % grown.places] = at;
        }
    free(table->place);
    *table = grown;
}

void *table_get(const struct table *table, const char *name)
{
    if (!table->count)
        return NULL;
    struct table_place *found = *find_place(table, name, hash_of(name));
    return found ? found->value : NULL;
}

void table_put(struct table *table, const char *name, void *value)
{
    uint64_t hash = hash_of(name);
    if (table->count >= table->places)
        grow(table);
    struct table_place **at = find_place(table, name, hash);
    if (!*at) {
        size_t bytes = strlen(name) + 1;
        *at = calloc(1, sizeof **at + bytes);
        if (!*at)
            abort();
        memcpy((*at)->name, name, bytes);
        (*at)->hash = hash;
        table->count++;
    }
    (*at)->value = value;
}

void *table_remove(struct table *table, const char *name)
{
    if (!table->count)
        return NULL;
    struct table_place **at = find_place(table, name, hash_of(name)), *found = *at;
    if (!found)
        return NULL;
    void *value = found->value;
    *at = found->next;
    free(found);
    table->count--;
    return value;
}

void table_each(struct table *table, void (*visit)(void *ctx, const char *name, void *value), void *ctx)
{
    for (size_t i = 0; i < table->places; i++)
        for (struct table_place *at = table->place[i], *next; at; at = next) {
            next = at->next;
            visit(ctx, at->name, at->value);
        }
}

void table_clear(struct table *table)
{
    for (size_t i = 0; i < table->places; i++)
        for (struct table_place *at = table->place[i], *next; at; at = next) {
            next = at->next;
            free(at);
        }
    free(table->place);
    *table = (struct table){0};
}
