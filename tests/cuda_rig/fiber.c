#include "tests/cuda_rig/fiber.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#if !defined(__x86_64__) || defined(RM_FIBER_UCONTEXT)
#define BY_UCONTEXT 1
#include <ucontext.h>
#else
#define BY_UCONTEXT 0
#endif

enum { STACK = 128 << 10, GUARD = 64 << 10 }; /* as large as any machine's page */

#if BY_UCONTEXT
typedef ucontext_t place;
#else
typedef void *place; /* the stack's end: all else lies on it */
#endif

struct fiber {
    char *map, *stack;
    void (*run)(void *arg);
    void *arg;
    bool over;
    place at;
    void *fake; /* the sanitizer's */
};

static struct fiber *current;
static place outside;

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
    f->at.uc_stack.ss_size = STACK;
    f->at.uc_link = NULL;
    makecontext(&f->at, begin, 0);
}

#else

/* What a function must leave as it was goes onto the old stack and comes off the new one. */
void fiber_change_stacks(void **from, void *to);
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

static void change(place *from, place *to)
{
    fiber_change_stacks(from, *to);
}

static void place_start(struct fiber *f, void (*begin)(void))
{
    uint64_t *top = (uint64_t *)(f->stack + STACK);
    *--top = 0; /* so that `begin` finds its stack as a call would leave it */
    *--top = (uint64_t)(uintptr_t)begin;
    for (int i = 0; i < 6; i++)
        *--top = 0;
    f->at = top;
}

#endif

/* ---- fibers ---- */

static void begin(void)
{
    struct fiber *f = current;
    tell_end(NULL, &outside_stack, &outside_size);
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
    tell_begin(&fake, f->stack, STACK);
    change(&outside, &f->at);
    tell_end(fake, NULL, NULL);
    current = NULL;
    return f->over;
}

void fiber_leave(void)
{
    struct fiber *f = current;
    tell_begin(&f->fake, outside_stack, outside_size);
    change(&f->at, &outside);
    tell_end(f->fake, &outside_stack, &outside_size);
}
