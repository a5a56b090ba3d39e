/* The portable loops under names of their own, beside those that the build takes for this processor. */
#define kernels_best    plain_best
#define kernels_variant plain_variant
#define kernels_name    plain_name

#define kernel_add_fixed plain_add_fixed
#define kernel_add_float plain_add_float
#define kernel_adamw_to  plain_adamw_to
#define kernel_prove     plain_prove

/* Structures and functions share these two names; who calls plain_sums and plain_adamw sees the structures as
 * they are. */
#define kernel_sums  plain_sums
#define kernel_adamw plain_adamw

#include "trainer/backend/cpu/sums/kernels_portable.c"
