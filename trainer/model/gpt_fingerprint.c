#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "trainer/model/gpt.h"
#include "trainer/model/matmul.h"
#include "trainer/model/numerics_id.h"

struct cpu {
    char name[64];
    int family, model, stepping;
};

/* "model name\t: AMD EPYC 9655" -> the text behind the colon where the line has that key. */
static const char *value_of(const char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 || (line[length] != '\t' && line[length] != ' '))
        return NULL;
    const char *colon = strchr(line, ':');
    return colon && colon[1] == ' ' ? colon + 2 : NULL;
}

static void read_line(struct cpu *cpu, const char *line)
{
    const char *value = value_of(line, "model name");
    if (value)
        snprintf(cpu->name, sizeof cpu->name, "%.*s", (int)strcspn(value, "\n"), value);
    else if ((value = value_of(line, "cpu family")))
        sscanf(value, "%d", &cpu->family);
    else if ((value = value_of(line, "model")))
        sscanf(value, "%d", &cpu->model);
    else if ((value = value_of(line, "stepping")))
        sscanf(value, "%d", &cpu->stepping);
}

/* The first CPU of /proc/cpuinfo; a machine's cores are taken to be alike. */
static struct cpu read_cpu(void)
{
    struct cpu cpu = {.name = "unknown CPU"};
    char line[4096];
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file)
        return cpu;
    while (fgets(line, sizeof line, file) && line[0] != '\n')
        read_line(&cpu, line);
    fclose(file);
    return cpu;
}

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
    struct cpu cpu = read_cpu();
    snprintf(out, RM_FINGERPRINT_MAX, "numerics %s, %s, %s, %s (%d/%d/%d), caches %ldK %ldK %ldK, %s",
             numerics_id, precisions[precision], matmul_isa(), cpu.name, cpu.family, cpu.model, cpu.stepping,
             sysconf(_SC_LEVEL1_DCACHE_SIZE) >> 10, sysconf(_SC_LEVEL2_CACHE_SIZE) >> 10,
             sysconf(_SC_LEVEL3_CACHE_SIZE) >> 10, matmul_library());
}
