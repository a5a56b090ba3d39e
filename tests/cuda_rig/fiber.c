#include "tests/cuda_rig/fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if (!defined(__x86_64__) && !defined(__aarch64__)) || defined(RM_FIBER_UCONTEXT)
#define BY_UCONTEXT 1
#include <ucontext.h>
#else
#define BY_UCONTEXT 0
#endif

enum { STACK = 128 << 10, GUARD = 64 << 10 }; /* as large as any machine's page */
/* Where a stack begins differs by lines of a cache, over a page: all hundreds of them at one place of theirs
 * would be in each other's way in the few lines that a cache has for that place. */
enum { CACHE_LINE = 64, COLOURS = 64 };

#if BY_UCONTEXT
typedef ucontext_t place;
#else
typedef void *place; /* the stack's end: all else lies on it */
#endif

struct fiber {
    char *map, *stack;
    size_t size; /* of the stack: its end is not the map's */
    void (*run)(void *arg);
    void *arg;
    bool over;
    place at;
    void *fake; /* the sanitizer's */
};

static struct fiber *current;
static place outside;
static bool from_outside; /* how who runs now was entered: not by a fiber that passed on to it */
static int fibers_opened;

static const void *outside_stack; /* of who enters, for the sanitizer */
static size_t outside_size;

/* ---- what the sanitizer is told ---- */

static void tell_begin(void **fake, const void *stack, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_start_switch_fiber(fake, stack, size);
#else
    (void)fake;
    (void)stack;
    (void)size;
#endif
}

static void tell_end(void *fake, const void **stack, size_t *size)
{
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(fake, stack, size);
#else
    (void)fake;
    (void)stack;
    (void)size;
#endif
}

/* To who was entered or passed to. The stack that the sanitizer says was left is the outside's only where
 * nobody passed. */
static void tell_arrived(void *fake)
{
    if (from_outside)
        tell_end(fake, &outside_stack, &outside_size);
    else
        tell_end(fake, NULL, NULL);
}

static void tell_fresh(void *stack, size_t size)
{
#ifdef __SANITIZE_ADDRESS__
    ASAN_UNPOISON_MEMORY_REGION(stack, size);
#else
    (void)stack;
    (void)size;
#endif
}

/* ---- the change itself ---- */

#if BY_UCONTEXT

static void change(place *from, place *to)
{
    if (swapcontext(from, to))
        abort();
}

static void place_start(struct fiber *f, void (*begin)(void))
{
    if (getcontext(&f->at))
        abort();
    f->at.uc_stack.ss_sp = f->stack;
    f->at.uc_stack.ss_size = f->size;
    f->at.uc_link = NULL;
    makecontext(&f->at, begin, 0);
}

#else

/* What a function must leave as it was goes onto the old stack and comes off the new one. */
void fiber_change_stacks(void **from, void *to);
#ifdef __x86_64__
__asm__(".text\n"
        ".globl fiber_change_stacks\n"
        ".type fiber_change_stacks, @function\n"
        "fiber_change_stacks:\n"
        "    pushq %rbp\n    pushq %rbx\n    pushq %r12\n    pushq %r13\n    pushq %r14\n    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n    popq %r14\n    popq %r13\n    popq %r12\n    popq %rbx\n    popq %rbp\n"
        "    ret\n"
        ".size fiber_change_stacks, . - fiber_change_stacks\n");
enum { FRAME = 8, RETURN = 6 /* words of a fresh stack: what is popped, where to, and what a call leaves */ };
#else
__asm__(".text\n"
        ".globl fiber_change_stacks\n"
        ".type fiber_change_stacks, %function\n"
        "fiber_change_stacks:\n"
        "    stp x19, x20, [sp, #-160]!\n    stp x21, x22, [sp, #16]\n    stp x23, x24, [sp, #32]\n"
        "    stp x25, x26, [sp, #48]\n    stp x27, x28, [sp, #64]\n    stp x29, x30, [sp, #80]\n"
        "    stp d8, d9, [sp, #96]\n    stp d10, d11, [sp, #112]\n    stp d12, d13, [sp, #128]\n"
        "    stp d14, d15, [sp, #144]\n"
        "    mov x9, sp\n    str x9, [x0]\n    mov sp, x1\n"
        "    ldp x21, x22, [sp, #16]\n    ldp x23, x24, [sp, #32]\n    ldp x25, x26, [sp, #48]\n"
        "    ldp x27, x28, [sp, #64]\n    ldp x29, x30, [sp, #80]\n    ldp d8, d9, [sp, #96]\n"
        "    ldp d10, d11, [sp, #112]\n    ldp d12, d13, [sp, #128]\n    ldp d14, d15, [sp, #144]\n"
        "    ldp x19, x20, [sp], #160\n"
        "    ret\n"
        ".size fiber_change_stacks, . - fiber_change_stacks\n");
enum { FRAME = 20, RETURN = 11 /* words of a fresh stack: all of them registers, one of them where to */ };
#endif

static void change(place *from, place *to)
{
    fiber_change_stacks(from, *to);
}

/* So that `begin` finds its stack as a call would leave it. */
static void place_start(struct fiber *f, void (*begin)(void))
{
    uint64_t *frame = (uint64_t *)(f->stack + f->size) - FRAME;
    memset(frame, 0, FRAME * sizeof *frame);
    frame[RETURN] = (uint64_t)(uintptr_t)begin;
    f->at = frame;
}

#endif

/* ---- fibers ---- */

static void begin(void)
{
    struct fiber *f = current;
    tell_arrived(NULL);
    f->run(f->arg);
    f->over = true;
    tell_begin(NULL, outside_stack, outside_size);
    change(&f->at, &outside);
    abort(); /* nobody enters a fiber that is over */
}

struct fiber *fiber_open(void)
{
    struct fiber *f = calloc(1, sizeof *f);
    char *map =
        mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!f || map == MAP_FAILED || mprotect(map, GUARD, PROT_NONE)) {
        perror("the emulator's stacks");
        abort();
    }
    f->map = map;
    f->stack = map + GUARD;
    f->size = STACK - (size_t)(fibers_opened++ % COLOURS * CACHE_LINE);
    f->over = true;
    return f;
}

void fiber_free(struct fiber *f)
{
    if (!f)
        return;
    tell_fresh(f->stack, STACK);
    munmap(f->map, STACK + GUARD);
    free(f);
}

void fiber_start(struct fiber *f, void (*run)(void *arg), void *arg)
{
    if (!f->over) /* it was left somewhere, with frames that the sanitizer still knows */
        tell_fresh(f->stack, STACK);
    f->run = run;
    f->arg = arg;
    f->over = false;
    f->fake = NULL;
    place_start(f, begin);
}

bool fiber_enter(struct fiber *f)
{
    void *fake = NULL;
    current = f;
    from_outside = true;
    tell_begin(&fake, f->stack, f->size);
    change(&outside, &f->at);
    tell_end(fake, NULL, NULL);
    f = current; /* perhaps another one */
    current = NULL;
    return f->over;
}

void fiber_leave(void)
{
    struct fiber *f = current;
    tell_begin(&f->fake, outside_stack, outside_size);
    change(&f->at, &outside);
    tell_arrived(f->fake);
}

void fiber_pass(struct fiber *to)
{
    struct fiber *f = current;
    current = to;
    from_outside = false;
    tell_begin(&f->fake, to->stack, to->size);
    change(&f->at, &to->at);
    tell_arrived(f->fake);
}
