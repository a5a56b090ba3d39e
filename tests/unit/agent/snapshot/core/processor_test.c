#include "agent/snapshot/core/processor.h"

#include <criterion/criterion.h>
#include <stdio.h>

Test(processor, of_x86_what_programs_ask_for_is_kept_and_what_the_kernel_says_of_itself_is_not)
{
    char out[200];
    cr_assert(
        processor_features("processor\t: 0\nvendor_id\t: GenuineIntel\nflags\t\t: fpu sse4_1 ibrs avx2 aes "
                           "aes_kl avx512f constant_tsc amx_tile\nbugs\t\t: spectre_v1\n\nprocessor\t: "
                           "1\nflags\t\t: xop\n",
                           out, sizeof out));
    cr_assert_str_eq(out, "sse4_1 avx2 aes avx512f amx_tile");
}

Test(processor, of_others_all_is_kept)
{
    char out[200];
    cr_assert(processor_features(
        "processor\t: 0\nBogoMIPS\t: 50.00\nFeatures\t: fp asimd sve\nCPU part\t: 0xd0c\n", out, sizeof out));
    cr_assert_str_eq(out, "fp asimd sve");
}

Test(processor, what_says_nothing_or_has_no_room_is_no_answer)
{
    char out[200], little[8];
    cr_assert_not(processor_features("", out, sizeof out));
    cr_assert_not(processor_features("processor\t: 0\nflags_of_all\t: avx\n", out, sizeof out));
    cr_assert_not(processor_features("flags\t:\nbugs\t: avx\n", out, sizeof out));
    cr_assert_not(processor_features("flags\t: avx avx2", little, sizeof little));
    cr_assert(processor_features("flags\t: avx sse", little, sizeof little));
    cr_assert_str_eq(little, "avx sse");
}

Test(processor, this_machine_has_some)
{
    static char text[1 << 20], out[1024];
    FILE *file = fopen("/proc/cpuinfo", "r");
    cr_assert(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    cr_assert(processor_features(text, out, sizeof out));
}
