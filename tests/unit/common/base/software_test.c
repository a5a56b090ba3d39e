/* Which programs a fingerprint is of. */
#include "common/base/software.h"

#include <criterion/criterion.h>

static const char of_a_cpu[] =
    "numerics 1f00, fp32, avx2, a cpu (6/1/2), caches 32K 512K 4096K, oneDNN 3.1.5";
static const char of_a_gpu[] = "numerics 1f00, bf16, sm_90, 132 processors, algorithms 00ff, cuBLASLt 13.1.0";

static char a[RM_FINGERPRINT_MAX], b[RM_FINGERPRINT_MAX];

Test(software, it_stands_at_both_ends_of_a_fingerprint)
{
    software_of(of_a_cpu, a);
    cr_assert_str_eq(a, "numerics 1f00, oneDNN 3.1.5");
    software_of("torch 2.9.0, 4 threads", a);
    cr_assert_str_eq(a, "", "a user's program has none");
    software_of("numerics 1f00", a);
    cr_assert_str_eq(a, "");
}

Test(software, another_machine_or_precision_is_no_other_software)
{
    cr_assert_not(software_differs(of_a_cpu, "numerics 1f00, bf16, sse41, another, oneDNN 3.1.5", a, b));
}

Test(software, another_id_or_library_is_and_both_are_named)
{
    cr_assert(software_differs(of_a_cpu, "numerics 2e00, fp32, avx2, a cpu (6/1/2), oneDNN 3.1.5", a, b));
    cr_assert_str_eq(a, "numerics 1f00, oneDNN 3.1.5");
    cr_assert_str_eq(b, "numerics 2e00, oneDNN 3.1.5");
    cr_assert(software_differs(of_a_cpu, "numerics 1f00, fp32, avx2, a cpu (6/1/2), oneDNN 3.2.0", a, b));
}

Test(software, a_gpu_and_a_cpu_differ_in_any_build_which_says_nothing_of_the_build)
{
    cr_assert_not(software_differs(of_a_cpu, of_a_gpu, a, b));
    cr_assert_not(software_differs(of_a_cpu, "torch 2.9.0, 4 threads", a, b));
}
