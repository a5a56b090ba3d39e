/* Without AVX-512's instruction for pairs of bf16 there is no product of our own: oneDNN's, or through fp32.
 */
#include "trainer/backend/cpu/model/matmul_bf16.h"

bool matmul_bf16_here(void)
{
    return false;
}

int matmul_bf16(const struct product *p)
{
    (void)p;
    return -1;
}
