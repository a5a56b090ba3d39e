/* Threads of an emulated GPU: each with a stack of its own, changed by a call, never by a clock.
 *
 * On x86-64 and arm64 a change is some twenty instructions; elsewhere it is ucontext's, ten times slower. The
 * address sanitizer is told of each change. Fibers keep the float mode of who enters them. */
#ifndef RM_TESTS_CUDA_FIBER_H
#define RM_TESTS_CUDA_FIBER_H

#include <stdbool.h>

struct fiber;

/* Ends the program where there is no memory. */
struct fiber *fiber_open(void);
void fiber_free(struct fiber *f);

/* The next fiber_enter begins with run(arg), wherever this fiber was before. */
void fiber_start(struct fiber *f, void (*run)(void *arg), void *arg);
/* Goes on in f until it, or who it was passed on to, leaves or ends; true where that one has ended. Not from
 * within a fiber. */
bool fiber_enter(struct fiber *f);
/* From within a fiber: back to who entered. */
void fiber_leave(void);
/* From within a fiber: goes on in another one, as if this one left and that one was entered, in half as many
 * changes. */
void fiber_pass(struct fiber *to);

#endif
