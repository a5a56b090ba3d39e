#include "tests/cuda_rig/emulator.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/prng.h"
#include "common/os/cpu.h"
#include "tests/cuda_rig/fiber.h"

enum { WARP_THREADS = 32, SHARED_MAX = 64, VALUES = 10 };
enum { COPIES_MAX = 32 /* of a thread, under way */ };

enum waits { RUNS, AT_BARRIER, AT_EXCHANGE, OVER };

struct copy {
    void *to;
    const void *from; /* NULL: zeros */
    size_t bytes;
};

struct thread {
    struct fiber *fiber;
    struct block *block;
    struct emulated_thread self;
    enum waits waits;
    struct emulated_site at; /* where it waits */
    int ready;               /* its index among those that can run */
    unsigned exchanges;      /* that it has come to */
    struct copy *copy;       // (COPIES_MAX) NULL: it never asked for one
    int copies;
};

/* What a warp's threads give each other. */
struct given {
    uint64_t value[WARP_THREADS][VALUES];
    bool read; /* what all of them need is read: a and b of a product, the matrices */
    float a[16][16], b[8][16];
    uint16_t matrix[4][8][8];
};

/* Exchanges have their places in turn: who comes to the next one has read what it got in this one, and all
 * of them come before any comes to the one after that. */
struct warp {
    int waiting;
    struct given given[2];
};

struct block {
    bool runs;
    int number, threads, waiting, over;
    struct thread *thread; // (threads) of those that run here, one block after the other
    struct warp *warp;     // (threads / WARP_THREADS)
    void *shared[SHARED_MAX];
};

/* What the order is unfair to, for a while: a fair one would hardly ever let a thread stay far behind the
 * others, where what its barriers are for shows. */
struct whim {
    enum { FAIR, THREAD_WAITS, WARP_WAITS, WARP_GOES, WHIMS } kind;
    int thread; /* that one, or its warp, in each block */
    int turns;  /* that it lasts */
};

/* The device. All that is under way lies here: kernels reach it by calls without a handle, as on a GPU. */
static struct {
    struct emulation *e;
    const struct emulated_kernel *kernel;
    const void *args;
    uint64_t random;
    struct thread *now;
    struct whim whim;
    struct thread **ready; /* those that can run */
    int readies;
    int *to_come; /* blocks that have not begun */
    int blocks_to_come;
    bool ends;
} device;

/* Stacks outlive a run: they are asked for by the thousand. */
static struct fiber **stacks;
static int stacks_free, stacks_room;

struct emulated_thread emulated_self;

bool (*emulate_elsewhere)(struct emulation *e, const struct emulated_kernel *kernel, const void *args);

/* In [0, bound), by a product and not by a division: it is asked for at each turn. */
static int draw(int bound)
{
    return (int)((splitmix64(&device.random) >> 32) * (uint64_t)bound >> 32);
}

static struct fiber *take_stack(void)
{
    return stacks_free ? stacks[--stacks_free] : fiber_open();
}

static void give_stack(struct fiber *f)
{
    if (stacks_free == stacks_room) {
        stacks_room = 2 * stacks_room + 64;
        stacks = realloc(stacks, (size_t)stacks_room * sizeof(struct fiber *));
        if (!stacks)
            abort();
    }
    stacks[stacks_free++] = f;
}

void emulator_free(void)
{
    while (stacks_free)
        fiber_free(stacks[--stacks_free]);
    free(stacks);
    stacks = NULL;
    stacks_room = 0;
}

static void *zeroed(size_t count, size_t bytes)
{
    void *at = calloc(count ? count : 1, bytes ? bytes : 1);
    if (!at)
        abort();
    return at;
}

/* ---- who runs ---- */

static void make_ready(struct thread *t)
{
    t->waits = RUNS;
    t->ready = device.readies;
    device.ready[device.readies++] = t;
}

static void make_wait(struct thread *t, enum waits why, struct emulated_site at)
{
    struct thread *last = device.ready[--device.readies];
    device.ready[t->ready] = last;
    last->ready = t->ready;
    t->waits = why;
    t->at = at;
}

static struct thread *choose(void);

/* Another thread goes on, or this one. */
static void leave(void)
{
    if (device.ends || !device.readies) {
        fiber_leave();
        return;
    }
    const struct thread *self = device.now;
    device.now = choose();
    emulated_self = device.now->self;
    if (device.now != self)
        fiber_pass(device.now->fiber);
}

/* A sentence for the test; nothing runs after it. */
static void refuse(const char *what, const struct thread *t, struct emulated_site a, struct emulated_site b)
{
    if (!device.e->wrong[0])
        snprintf(device.e->wrong, sizeof device.e->wrong, "%s: block %d, thread %d: %s: %s:%d and %s:%d",
                 device.kernel->name, t->self.block, t->self.thread, what, a.file, a.line, b.file, b.line);
    device.ends = true;
}

/* A moment at which all may end. */
static void moment(void)
{
    if (++device.e->moments == device.e->stop)
        device.e->stopped = device.ends = true;
}

static void end_here(void)
{
    if (device.ends)
        leave(); /* for good */
}

void emulated_point(void)
{
    moment();
    if (device.ends || draw(4) == 0)
        leave();
}

void emulated_fence(void)
{
    struct emulation *e = device.e;
    if (e->fences < EMULATED_FENCES_MAX)
        e->fence[e->fences++] = e->moments + 1;
    emulated_point();
}

/* ---- barriers ---- */

static bool same_site(struct emulated_site a, struct emulated_site b)
{
    return a.line == b.line && a.file && b.file && (a.file == b.file || !strcmp(a.file, b.file));
}

static void note_barrier(struct emulation *e, struct emulated_site at)
{
    for (int i = 0; i < e->barriers; i++)
        if (same_site(e->barrier[i], at))
            return;
    if (e->barriers == EMULATED_SITES_MAX)
        abort();
    e->barrier[e->barriers++] = at;
}

static void meet_block(struct block *b)
{
    struct emulated_site at = b->thread[0].at;
    for (int i = 1; i < b->threads; i++)
        if (!same_site(b->thread[i].at, at)) {
            refuse("threads of a block are at two barriers", &b->thread[i], at, b->thread[i].at);
            return;
        }
    for (int i = 0; i < b->threads; i++)
        make_ready(&b->thread[i]);
    b->waiting = 0;
}

void emulated_barrier(const char *file, int line)
{
    struct emulated_site at = {file, line};
    struct thread *t = device.now;
    note_barrier(device.e, at);
    emulated_point();
    if (same_site(at, device.e->without))
        return;
    make_wait(t, AT_BARRIER, at);
    if (++t->block->waiting == t->block->threads)
        meet_block(t->block);
    leave();
}

/* ---- warps ---- */

static struct warp *own_warp(int *ret_lane)
{
    int thread = device.now->self.thread;
    *ret_lane = thread % WARP_THREADS;
    return &device.now->block->warp[thread / WARP_THREADS];
}

static void meet_warp(struct thread *first)
{
    for (int i = 1; i < WARP_THREADS; i++)
        if (!same_site(first[i].at, first->at)) {
            refuse("threads of a warp are at two exchanges", &first[i], first->at, first[i].at);
            return;
        }
    for (int i = 0; i < WARP_THREADS; i++)
        make_ready(&first[i]);
}

static void wait_for_warp(struct emulated_site at)
{
    int lane;
    struct thread *t = device.now;
    struct warp *w = own_warp(&lane);
    make_wait(t, AT_EXCHANGE, at);
    if (++w->waiting == WARP_THREADS) {
        w->waiting = 0;
        meet_warp(t - lane);
    }
    leave();
    end_here();
}

/* Where this thread's warp exchanges next. */
static struct given *next_exchange(int *ret_lane)
{
    return &own_warp(ret_lane)->given[device.now->exchanges++ % 2];
}

/* The value of lane `from`, the own one where there is none. */
static uint64_t exchange(struct emulated_site at, uint64_t value, int from)
{
    int lane;
    struct given *g = next_exchange(&lane);
    g->value[lane][0] = value;
    wait_for_warp(at);
    return from < WARP_THREADS ? g->value[from][0] : value;
}

uint64_t emulated_down(const char *file, int line, uint64_t value, int n)
{
    return exchange((struct emulated_site){file, line}, value, emulated_self.thread % WARP_THREADS + n);
}

uint64_t emulated_xor(const char *file, int line, uint64_t value, int n)
{
    return exchange((struct emulated_site){file, line}, value, emulated_self.thread % WARP_THREADS ^ n);
}

/* ---- functions: rounded once, as nearly as the host's library knows them ---- */

float emulated_two_to(float x)
{
    return (float)exp2((double)x);
}

float emulated_log_of(float x)
{
    return (float)log((double)x);
}

/* ---- the matrix unit: parts of A, B and C as the PTX manual lays them out for m16n8k16 ---- */

static float bf16_part(uint64_t pair, int high)
{
    return float_of(high ? (uint32_t)pair & 0xffff0000u : (uint32_t)pair << 16);
}

/* A, 16 x 16: register (row / 8) + 2 * (column / 8) of lane 4 * (row % 8) + column % 8 / 2. B, 16 x 8, here
 * turned: register row / 8 of lane 4 * column + row % 8 / 2. */
static void read_parts(struct given *g)
{
    for (int row = 0; row < 16; row++)
        for (int k = 0; k < 16; k++)
            g->a[row][k] = bf16_part(g->value[4 * (row % 8) + k % 8 / 2][row / 8 + 2 * (k / 8)], k % 2);
    for (int column = 0; column < 8; column++)
        for (int k = 0; k < 16; k++)
            g->b[column][k] = bf16_part(g->value[4 * column + k % 8 / 2][4 + k / 8], k % 2);
    g->read = true;
}

/* Products of bf16 are exact in a float; their sum is rounded once. */
static float row_by_column(const float *a, const float *b, float c)
{
    double sum = (double)c;
    for (int k = 0; k < 16; k++)
        sum += (double)a[k] * (double)b[k];
    return (float)sum;
}

void emulated_mma_bf16(const char *file, int line, float d[4], const uint32_t a[4], const uint32_t b[2],
                       const float c[4])
{
    int lane;
    struct given *g = next_exchange(&lane);
    for (int i = 0; i < 4; i++)
        g->value[lane][i] = a[i];
    for (int i = 0; i < 2; i++)
        g->value[lane][4 + i] = b[i];
    g->read = false;
    wait_for_warp((struct emulated_site){file, line});
    if (!g->read) /* who comes first does it for all */
        read_parts(g);
    for (int i = 0; i < 4; i++) /* C and D, 16 x 8: this thread has two columns of two rows */
        d[i] = row_by_column(g->a[lane / 4 + 8 * (i / 2)], g->b[2 * (lane % 4) + i % 2], c[i]);
}

/* ---- from shared memory to parts, and into it ---- */

static void read_matrices(struct given *g)
{
    for (int i = 0; i < 4; i++)
        for (int row = 0; row < 8; row++)
            memcpy(g->matrix[i][row], (const void *)(uintptr_t)g->value[8 * i + row][0], 8 * 2);
    g->read = true;
}

/* Register i of lane l: of matrix i row l / 4, columns 2 (l % 4) and the next; turned, row and column change
 * places. All is read in one moment, as by a GPU: whoever writes there next is no danger to slower lanes. */
void emulated_matrix(const char *file, int line, uint32_t x[4], const void *at, bool turned)
{
    int lane;
    const struct emulated_site site = {file, line};
    struct given *g = next_exchange(&lane);
    if ((uintptr_t)at % 16)
        refuse("a matrix's row does not begin at 16 bytes", device.now, site, site);
    g->value[lane][0] = (uint64_t)(uintptr_t)at;
    g->read = false;
    wait_for_warp(site);
    if (!g->read)
        read_matrices(g);
    for (int i = 0; i < 4; i++) {
        const int line_of = lane / 4, pair = lane % 4 * 2;
        x[i] = turned ? g->matrix[i][pair][line_of] | (uint32_t)g->matrix[i][pair + 1][line_of] << 16
                      : g->matrix[i][line_of][pair] | (uint32_t)g->matrix[i][line_of][pair + 1] << 16;
    }
}

void emulated_copy(const char *file, int line, void *to, const void *from, int bytes, bool there)
{
    const struct emulated_site site = {file, line};
    struct thread *t = device.now;
    if ((uintptr_t)to % (unsigned)bytes || (there && (uintptr_t)from % (unsigned)bytes))
        refuse("a copy does not begin at a multiple of its size", t, site, site);
    if (t->copies == COPIES_MAX)
        abort();
    if (!t->copy)
        t->copy = zeroed(COPIES_MAX, sizeof *t->copy);
    memset(to, 0xff, (size_t)bytes);
    t->copy[t->copies++] = (struct copy){to, there ? from : NULL, (size_t)bytes};
    emulated_point();
}

void emulated_copies_wait(void)
{
    struct thread *t = device.now;
    emulated_point();
    end_here();
    for (int i = 0; i < t->copies; i++)
        if (t->copy[i].from)
            memcpy(t->copy[i].to, t->copy[i].from, t->copy[i].bytes);
        else
            memset(t->copy[i].to, 0, t->copy[i].bytes);
    t->copies = 0;
}

/* ---- blocks ---- */

void *emulated_shared(int key, size_t bytes)
{
    struct block *b = device.now->block;
    if (key < 0 || key >= SHARED_MAX)
        abort();
    if (!b->shared[key]) {
        b->shared[key] = malloc(bytes);
        if (!b->shared[key])
            abort();
        memset(b->shared[key], 0xa5, bytes); /* a GPU clears it no more than this */
    }
    return b->shared[key];
}

static void run_thread(void *arg)
{
    (void)arg;
    emulated_self = device.now->self;
    device.kernel->run(device.args);
    const struct emulated_site end = {"the end", 0};
    if (device.now->copies)
        refuse("nobody waited for a copy", device.now, end, end);
}

static void block_begin(struct block *b, int number)
{
    b->runs = true;
    b->number = number;
    b->waiting = b->over = 0;
    for (int i = 0; i < b->threads / WARP_THREADS; i++)
        b->warp[i].waiting = 0;
    for (int i = 0; i < b->threads; i++) {
        struct thread *t = &b->thread[i];
        *t = (struct thread){
            .fiber = take_stack(), .block = b, .self = {i, number, device.e->blocks}, .copy = t->copy};
        fiber_start(t->fiber, run_thread, NULL);
        make_ready(t);
    }
}

static void block_end(struct block *b)
{
    for (int i = 0; i < b->threads; i++)
        give_stack(b->thread[i].fiber);
    for (int i = 0; i < SHARED_MAX; i++) {
        free(b->shared[i]);
        b->shared[i] = NULL;
    }
    b->runs = false;
}

static void blocks_open(struct block *block, int resident)
{
    for (int i = 0; i < resident; i++) {
        struct block *b = &block[i];
        b->threads = device.kernel->threads;
        b->thread = zeroed((size_t)b->threads, sizeof *b->thread);
        b->warp = zeroed((size_t)b->threads / WARP_THREADS, sizeof *b->warp);
    }
}

static void blocks_free(struct block *block, int resident)
{
    for (int i = 0; i < resident; i++) {
        for (int j = 0; j < block[i].threads; j++)
            free(block[i].thread[j].copy);
        free(block[i].thread);
        free(block[i].warp);
    }
    free(block);
}

/* Any of those that have not begun. */
static bool next_block(struct block *b)
{
    if (!device.blocks_to_come)
        return false;
    int i = draw(device.blocks_to_come);
    int number = device.to_come[i];
    device.to_come[i] = device.to_come[--device.blocks_to_come];
    block_begin(b, number);
    return true;
}

static void thread_ended(struct thread *t)
{
    struct block *b = t->block;
    make_wait(t, OVER, (struct emulated_site){"the end", 0});
    if (++b->over == b->threads) {
        block_end(b);
        next_block(b);
    }
}

/* Half of the time about thread 0, who often does something for all. */
static void draw_whim(struct whim *w)
{
    w->kind = (unsigned)draw(WHIMS);
    w->thread = draw(2) ? 0 : draw(device.kernel->threads);
    w->turns = 1 << (4 + draw(10));
}

static bool has_to_wait(const struct whim *w, const struct thread *t)
{
    bool same_warp = t->self.thread / WARP_THREADS == w->thread / WARP_THREADS;
    return w->kind == THREAD_WAITS ? t->self.thread == w->thread
           : w->kind == WARP_WAITS ? same_warp
                                   : w->kind == WARP_GOES && !same_warp;
}

static struct thread *choose(void)
{
    struct thread *t;
    int tries = 12;
    if (device.whim.turns-- <= 0)
        draw_whim(&device.whim);
    do
        t = device.ready[draw(device.readies)];
    while (has_to_wait(&device.whim, t) && --tries);
    return t;
}

static void run_all(struct block *block, int resident)
{
    for (int i = 0; i < resident; i++)
        next_block(&block[i]);
    while (device.readies && !device.ends) {
        device.now = choose();
        emulated_self = device.now->self;
        if (fiber_enter(device.now->fiber))
            thread_ended(device.now);
    }
}

/* Those that still wait although nobody can run wait for threads that have ended, or are elsewhere. */
static void tell_stuck(const struct block *b)
{
    for (int i = 0; i < b->threads; i++)
        for (int j = 0; b->thread[i].waits != OVER && j < b->threads; j++)
            if (!same_site(b->thread[j].at, b->thread[i].at)) {
                refuse("a thread waits for one that does not come", &b->thread[i], b->thread[i].at,
                       b->thread[j].at);
                return;
            }
}

bool emulate(struct emulation *e, const struct emulated_kernel *kernel, const void *args)
{
    if (emulate_elsewhere)
        return emulate_elsewhere(e, kernel, args);
    int resident = e->resident && e->resident < e->blocks ? e->resident : e->blocks;
    struct block *block = zeroed((size_t)resident, sizeof *block);
    uint32_t mode = cpu_float_mode();
    if (kernel->threads < 1 || kernel->threads > EMULATED_THREADS_MAX || kernel->threads % WARP_THREADS)
        abort();
    e->barriers = 0;
    e->moments = 0;
    e->fences = 0;
    e->stopped = false;
    e->wrong[0] = 0;
    memset(&device, 0, sizeof device);
    device.e = e;
    device.kernel = kernel;
    device.args = args;
    device.random = e->seed;
    device.ready = zeroed((size_t)resident * (size_t)kernel->threads, sizeof(struct thread *));
    device.to_come = zeroed((size_t)e->blocks, sizeof *device.to_come);
    for (device.blocks_to_come = 0; device.blocks_to_come < e->blocks; device.blocks_to_come++)
        device.to_come[device.blocks_to_come] = device.blocks_to_come;
    blocks_open(block, resident);
    cpu_float_mode_set(cpu_float_mode_fixed);
    run_all(block, resident);
    cpu_float_mode_set(mode);
    for (int i = 0; i < resident; i++)
        if (block[i].runs) {
            if (!e->stopped)
                tell_stuck(&block[i]);
            block_end(&block[i]);
        }
    free(device.ready);
    free(device.to_come);
    blocks_free(block, resident);
    return !e->wrong[0];
}
