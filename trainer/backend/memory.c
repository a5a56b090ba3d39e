#include "trainer/backend/memory.h"

#include <stdlib.h>
#include <string.h>

static void *pointer(struct far at)
{
    return (void *)(uintptr_t)at.at;
}

static int here_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err)
{
    (void)m;
    (void)err;
    memcpy(to, pointer(from), bytes);
    return 0;
}

static int here_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err)
{
    (void)m;
    (void)err;
    memcpy(pointer(to), from, bytes);
    return 0;
}

static void *here_near(struct memory *m, struct far at)
{
    (void)m;
    return pointer(at);
}

struct memory *memory_here(void)
{
    static const struct memory_ops ops = {here_read, here_write, here_near};
    static struct memory here = {&ops};
    return &here;
}

void *memory_near(struct memory *m, struct far at)
{
    return m->ops->near(m, at);
}

int memory_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err)
{
    return bytes ? m->ops->read(m, to, from, bytes, err) : 0;
}

int memory_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err)
{
    return bytes ? m->ops->write(m, to, from, bytes, err) : 0;
}

static size_t window_of(size_t left)
{
    return left < MEMORY_WINDOW ? left : MEMORY_WINDOW;
}

static void *take_window(size_t bytes, struct error *err)
{
    void *window = calloc(1, window_of(bytes));
    if (!window)
        err_set(err, ERR_MACHINE, "no memory for a window of %zu bytes", window_of(bytes));
    return window;
}

int memory_zero(struct memory *m, struct far to, size_t bytes, struct error *err)
{
    void *near = bytes ? memory_near(m, to) : NULL;
    if (near || !bytes) {
        if (near)
            memset(near, 0, bytes);
        return 0;
    }
    void *window = take_window(bytes, err);
    int result = window ? 0 : -1;
    for (size_t done = 0; done < bytes && result == 0; done += window_of(bytes - done))
        result = memory_write(m, far_add(to, (int64_t)done), window, window_of(bytes - done), err);
    free(window);
    return result;
}

int memory_visit(struct memory *m, struct far from, size_t bytes,
                 void (*visit)(void *ctx, const void *at, size_t bytes), void *ctx, struct error *err)
{
    const void *near = bytes ? memory_near(m, from) : NULL;
    if (near || !bytes) {
        if (near)
            visit(ctx, near, bytes);
        return 0;
    }
    void *window = take_window(bytes, err);
    int result = window ? 0 : -1;
    for (size_t done = 0; done < bytes && result == 0; done += window_of(bytes - done)) {
        result = memory_read(m, window, far_add(from, (int64_t)done), window_of(bytes - done), err);
        if (result == 0)
            visit(ctx, window, window_of(bytes - done));
    }
    free(window);
    return result;
}
