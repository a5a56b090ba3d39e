#include "trainer/backend/cpu/model/cpu_name.h"

#include <stdio.h>
#include <string.h>

struct cpu {
    char name[64], implementer[16], part[16];
    int family, model, stepping;
};

/* "model name\t: AMD EPYC 9655" -> the text behind the colon where the line has that key. */
static const char *value_of(const char *line, const char *key)
{
    size_t length = strlen(key);
    if (strncmp(line, key, length) != 0 ||
        (line[length] != '\t' && line[length] != ' ' && line[length] != ':'))
        return NULL;
    const char *colon = strchr(line, ':');
    return colon && colon[1] == ' ' ? colon + 2 : NULL;
}

static void read_text(const char *line, const char *key, char *out, size_t size)
{
    const char *value = value_of(line, key);
    if (value)
        snprintf(out, size, "%.*s", (int)strcspn(value, "\n"), value);
}

/* %i, for arm64 has 0x in front of some. */
static void read_number(const char *line, const char *key, int *out)
{
    const char *value = value_of(line, key);
    if (value)
        sscanf(value, "%i", out);
}

static void read_line(struct cpu *cpu, const char *line)
{
    read_text(line, "model name", cpu->name, sizeof cpu->name);
    read_number(line, "cpu family", &cpu->family);
    if (!value_of(line, "model name"))
        read_number(line, "model", &cpu->model);
    read_number(line, "stepping", &cpu->stepping);

    read_text(line, "CPU implementer", cpu->implementer, sizeof cpu->implementer);
    read_text(line, "CPU part", cpu->part, sizeof cpu->part);
    read_number(line, "CPU architecture", &cpu->family);
    read_number(line, "CPU variant", &cpu->model);
    read_number(line, "CPU revision", &cpu->stepping);
}

static void read_first(struct cpu *cpu, FILE *file)
{
    char line[4096];
    while (fgets(line, sizeof line, file) && line[0] != '\n')
        read_line(cpu, line);
}

void cpu_name(const char *cpuinfo, char out[CPU_NAME_MAX])
{
    struct cpu cpu = {.name = "unknown CPU"};
    FILE *file = fopen(cpuinfo, "re");
    if (file) {
        read_first(&cpu, file);
        fclose(file);
    }
    if (*cpu.implementer)
        snprintf(cpu.name, sizeof cpu.name, "implementer %s part %s", cpu.implementer, cpu.part);
    snprintf(out, CPU_NAME_MAX, "%s (%d/%d/%d)", cpu.name, cpu.family, cpu.model, cpu.stepping);
}
