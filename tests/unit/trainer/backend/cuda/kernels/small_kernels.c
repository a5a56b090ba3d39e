#include "small_kernels.h"

#include "trainer/backend/cuda/kernels/kernel.h"

enum { HALVES = 256 };

KERNEL(halves, HALVES)(const struct halves_args a)
{
    SHARED(float, part, HALVES);
    part[THREAD] = a.from[THREAD];
    BARRIER();
    for (int n = HALVES / 2; n > 0; n /= 2) {
        if (THREAD < n)
            part[THREAD] += part[THREAD + n];
        BARRIER();
    }
    if (THREAD == 0)
        a.to[BLOCK] = part[0];
}

KERNEL(mistake, 64)(const struct mistake_args a)
{
    SHARED(uint32_t, part, 64);
    const int behind = a.mistake == BEHIND_SHARED && THREAD == 63;
    part[THREAD + behind] = 1;
    if (a.mistake == LEAVES_EARLY && THREAD == 5)
        return;
    if (a.mistake == OTHER_BARRIER && THREAD < 32)
        BARRIER();
    else
        BARRIER();
    if (a.mistake == LEAVES_WARP && THREAD == 40)
        return;
    const uint32_t next = warp_down(part[THREAD], 1);
    if (THREAD == 0)
        *a.to = next;
}

KERNEL(swap, 64)(const struct swap_args a)
{
    a.to[THREAD] = warp_xor(a.from[THREAD], a.n);
}

static uint32_t pair(const uint16_t *at, int step)
{
    return (uint32_t)at[0] | (uint32_t)at[step] << 16;
}

/* Parts by the table of the PTX manual: group = lane / 4, in_group = lane % 4. */
KERNEL(product, WARP)(const struct product_args a)
{
    const int group = THREAD / 4, column = THREAD % 4 * 2;
    const uint32_t left[4] = {pair(a.a + group * 16 + column, 1), pair(a.a + (group + 8) * 16 + column, 1),
                              pair(a.a + group * 16 + column + 8, 1),
                              pair(a.a + (group + 8) * 16 + column + 8, 1)};
    const uint32_t right[2] = {pair(a.b + column * 8 + group, 8), pair(a.b + (column + 8) * 8 + group, 8)};
    const int at[4] = {group * 8 + column, group * 8 + column + 1, (group + 8) * 8 + column,
                       (group + 8) * 8 + column + 1};
    float sum[4] = {a.c[at[0]], a.c[at[1]], a.c[at[2]], a.c[at[3]]}, out[4];
    mma_bf16(out, left, right, sum);
    for (int i = 0; i < 4; i++)
        a.d[at[i]] = out[i];
}

KERNEL(matrices, WARP)(const struct matrices_args a)
{
    SHARED(uint16_t, rows, 4 * 8 * 8);
    uint32_t x[4];
    for (int i = THREAD; i < 4 * 8 * 8; i += WARP)
        rows[i] = a.from[i];
    BARRIER();
    if (a.turned)
        matrix_columns(x, rows + 8 * THREAD);
    else
        matrix_rows(x, rows + 8 * THREAD);
    for (int i = 0; i < 4; i++)
        a.to[4 * THREAD + i] = x[i];
}

KERNEL(copies, WARP)(const struct copies_args a)
{
    SHARED(uint32_t, part, 4 * WARP + 4);
    copy_16(part + 4 * THREAD + (a.how == AT_ODD_PLACE), a.from + 4 * THREAD, THREAD % 2 == 0);
    if (a.how == WAITS)
        COPIES_WAIT();
    BARRIER();
    for (int i = 0; i < 4; i++)
        a.to[4 * THREAD + i] = part[4 * ((THREAD + 1) % WARP) + i];
    BARRIER();
    if (a.how == WAITS_LATE)
        COPIES_WAIT();
}
