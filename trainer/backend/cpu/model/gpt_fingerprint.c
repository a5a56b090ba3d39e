#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/backend/cpu/model/cpu_name.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/model/matmul.h"
#include "trainer/backend/cpu/model/numerics_id.h"

static const char *const precisions[] = {[GPT_FP32] = "fp32", [GPT_BF16] = "bf16"};

int gpt_precision_read(const char *word, enum gpt_precision *ret)
{
    for (int i = GPT_FP32; i <= GPT_BF16; i++) {
        if (strcmp(word, precisions[i]) != 0)
            continue;
        *ret = (enum gpt_precision)i;
        return 0;
    }
    return -1;
}

void gpt_fingerprint(const char *isa, enum gpt_precision precision, char out[RM_FINGERPRINT_MAX])
{
    matmul_use_isa(isa, NULL); /* a wrong name is gpt_open's to report; what is in use is what counts */
    char cpu[CPU_NAME_MAX];
    cpu_name("/proc/cpuinfo", cpu);
    snprintf(out, RM_FINGERPRINT_MAX, "numerics %s, %s, %s, %s, caches %ldK %ldK %ldK, %s", numerics_id,
             precisions[precision], matmul_isa(), cpu, sysconf(_SC_LEVEL1_DCACHE_SIZE) >> 10,
             sysconf(_SC_LEVEL2_CACHE_SIZE) >> 10, sysconf(_SC_LEVEL3_CACHE_SIZE) >> 10, matmul_library());
}
