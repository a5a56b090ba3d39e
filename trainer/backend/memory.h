/* Memory that may be far away: on a device, say.
 *
 * A `far` is an address that only its memory's functions may follow. They return when the bytes are where
 * they should be, may be called from any thread, and never wait for a collective. ERR_MACHINE: the device is
 * lost. Nothing of them is asked for single elements: a far memory is read and written in large parts.
 *
 * Of a memory either all is near (memory_near gives the bytes themselves, and nothing is copied) or none of
 * it is. The memory of this process is one, too: memory_here. */
#ifndef RM_BACKEND_MEMORY_H
#define RM_BACKEND_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

struct far {
    uint64_t at;
};

static inline struct far far_add(struct far p, int64_t bytes)
{
    return (struct far){p.at + (uint64_t)bytes};
}

struct memory;

struct memory_ops {
    int (*read)(struct memory *m, void *to, struct far from, size_t bytes, struct error *err);
    int (*write)(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err);
    /* The bytes themselves where this process may touch them, else NULL. */
    void *(*near)(struct memory *m, struct far at);
};

struct memory {
    const struct memory_ops *ops;
};

/* This process's own: a far is a pointer's bits there. */
struct memory *memory_here(void);
static inline struct far far_here(const void *at)
{
    return (struct far){(uint64_t)(uintptr_t)at};
}

void *memory_near(struct memory *m, struct far at);
int memory_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err);
int memory_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err);
int memory_zero(struct memory *m, struct far to, size_t bytes, struct error *err);

/* Calls visit(ctx, at, bytes) for all of a range in its order: with the bytes themselves where they are near,
 * else with a copy of a window after the other (MEMORY_WINDOW at most each). */
enum { MEMORY_WINDOW = 1 << 20 };
int memory_visit(struct memory *m, struct far from, size_t bytes,
                 void (*visit)(void *ctx, const void *at, size_t bytes), void *ctx, struct error *err);

#endif
