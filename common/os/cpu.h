/* What this project says to the processor itself. cpu_x86.c says it to x86-64, cpu_portable.c to others: the
 * build takes one of each such pair (rm_library in cmake/RingmasterTargets.cmake).
 *
 * A float mode is the calling thread's: how results are rounded, whether denormals are flushed. It is the
 * processor's own word (MXCSR, FPCR) and means nothing on another kind. */
#ifndef RM_COMMON_CPU_H
#define RM_COMMON_CPU_H

#include <stdbool.h>
#include <stdint.h>

uint32_t cpu_float_mode(void);
void cpu_float_mode_set(uint32_t mode);

/* Round to nearest even, denormals are zero as operands and as results, no exceptions. */
extern const uint32_t cpu_float_mode_fixed;

/* From now on denormals are zero, as operands and as results; the rest of the mode stays. */
void cpu_flush_denormals(void);
bool cpu_flushes_denormals(void);

/* One turn of a loop that waits for another thread. */
void cpu_pause(void);

#endif
