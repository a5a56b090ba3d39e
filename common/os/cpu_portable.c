#include "common/os/cpu.h"

#ifndef __aarch64__
#error "say here how this processor's float mode is read and set"
#endif

/* FPCR. Nothing traps unless a bit asks for it. FZ is for operands and results alike; a result that is below
 * the normal numbers before it is rounded counts as one that flushes, where x86-64 looks after rounding. */
enum { FLUSH = 1 << 24 };

const uint32_t cpu_float_mode_fixed = FLUSH;

uint32_t cpu_float_mode(void)
{
    return (uint32_t)__builtin_aarch64_get_fpcr();
}

void cpu_float_mode_set(uint32_t mode)
{
    __builtin_aarch64_set_fpcr(mode);
}

bool cpu_flushes_denormals(void)
{
    return cpu_float_mode() & FLUSH;
}

void cpu_flush_denormals(void)
{
    if (!cpu_flushes_denormals())
        cpu_float_mode_set(cpu_float_mode() | FLUSH);
}

void cpu_pause(void)
{
    __asm__ volatile("yield" ::: "memory");
}
