#include "far_memory.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/base/assert.h"

struct far_memory {
    struct memory base;
    char *nothing; /* (bytes) addresses without memory */
    char *inside;  // (bytes)
    size_t bytes;
    atomic_int reads, writes, left;
};

static struct far_memory *of(struct memory *m)
{
    return (struct far_memory *)(void *)m;
}

static char *inside(const struct far_memory *f, struct far at, size_t bytes)
{
    uint64_t place = at.at - (uint64_t)(uintptr_t)f->nothing;
    RM_ASSERT(place <= f->bytes && bytes <= f->bytes - place,
              "%zu bytes at %llx of a far memory of %zu bytes at %p", bytes, (unsigned long long)at.at,
              f->bytes, (void *)f->nothing);
    return f->inside + place;
}

static void check_near(const struct far_memory *f, const void *p)
{
    const char *at = p;
    RM_ASSERT(at < f->nothing || at >= f->nothing + f->bytes, "a far address, %p, is given as a pointer", p);
}

static int reach(struct far_memory *f, struct error *err)
{
    return atomic_fetch_sub(&f->left, 1) > 0 ? 0 : err_set(err, ERR_MACHINE, "the device is lost");
}

static int far_read(struct memory *m, void *to, struct far from, size_t bytes, struct error *err)
{
    struct far_memory *f = of(m);
    const char *bytes_there = inside(f, from, bytes);
    check_near(f, to);
    atomic_fetch_add(&f->reads, 1);
    if (reach(f, err) < 0)
        return -1;
    memcpy(to, bytes_there, bytes);
    return 0;
}

static int far_write(struct memory *m, struct far to, const void *from, size_t bytes, struct error *err)
{
    struct far_memory *f = of(m);
    char *bytes_there = inside(f, to, bytes);
    check_near(f, from);
    atomic_fetch_add(&f->writes, 1);
    if (reach(f, err) < 0)
        return -1;
    memcpy(bytes_there, from, bytes);
    return 0;
}

static void *far_near(struct memory *m, struct far at)
{
    inside(of(m), at, 0);
    return NULL;
}

static const struct memory_ops far_ops = {far_read, far_write, far_near};

struct far_memory *far_memory_open(size_t bytes)
{
    struct far_memory *f = calloc(1, sizeof *f);
    void *nothing = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    char *there = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);
    RM_ASSERT(f && nothing != MAP_FAILED && there, "no memory for %zu far bytes", bytes);
    memset(there, 0xA5, bytes);
    *f = (struct far_memory){.base = {&far_ops}, .nothing = nothing, .inside = there, .bytes = bytes};
    atomic_init(&f->left, 1 << 30);
    return f;
}

void far_memory_free(struct far_memory *f)
{
    if (!f)
        return;
    munmap(f->nothing, f->bytes);
    free(f->inside);
    free(f);
}

struct memory *far_memory_of(struct far_memory *f)
{
    return &f->base;
}

struct far far_memory_base(const struct far_memory *f)
{
    return far_here(f->nothing);
}

void *far_memory_inside(const struct far_memory *f, struct far at)
{
    return inside(f, at, 0);
}

int far_memory_reads(const struct far_memory *f)
{
    return atomic_load(&f->reads);
}

int far_memory_writes(const struct far_memory *f)
{
    return atomic_load(&f->writes);
}

void far_memory_lose_after(struct far_memory *f, int n)
{
    atomic_store(&f->left, n);
}
