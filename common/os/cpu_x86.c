#include <immintrin.h>

#include "common/os/cpu.h"

/* MXCSR. */
enum { FLUSH = 0x8040, MASKED = 0x1f80 };

const uint32_t cpu_float_mode_fixed = FLUSH | MASKED;

uint32_t cpu_float_mode(void)
{
    return _mm_getcsr();
}

void cpu_float_mode_set(uint32_t mode)
{
    _mm_setcsr(mode);
}

bool cpu_flushes_denormals(void)
{
    return (_mm_getcsr() & FLUSH) == FLUSH;
}

void cpu_flush_denormals(void)
{
    if (!cpu_flushes_denormals())
        _mm_setcsr(_mm_getcsr() | FLUSH);
}

void cpu_pause(void)
{
    _mm_pause();
}
