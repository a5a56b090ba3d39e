/* RINGMASTER_STANDIN_CUDA: words, with commas between them.
 *
 *     seed=7              of the order of work (0)
 *     devices=2           (1)
 *     version=12080       of CUDA, that the driver is for (13000)
 *     memory=4G           of each device (1G); K, M, G
 *     taken=3G            of it by other processes (0)
 *     sms=132             processors (4)
 *     capability=9.0      (9.0)
 *     name=NVIDIA H200    (Stand-in GPU)
 *     prohibited          compute mode
 *     no-export           a driver without descriptors of memory
 *     fail:CALL@N=CODE    the N-th call of that name fails: fail:cuMemCreate@3=OUT_OF_MEMORY
 *     lost:CALL@N=CODE    and so does every call after it. CALL may be kernel: the N-th one that is run,
 * whose error comes out of whatever call comes next
 *     hang:kernel@N       the N-th kernel never ends
 *     skip:KERNEL@N       the N-th run of the kernel of that name does nothing, and nobody is told
 *     die:KERNEL@N=M      the N-th run of the kernel of that name ends at its M-th moment (emulator.h), and
 * the process by SIGKILL empty               no kernel does anything: what is left is the host's own time */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda_rig/standin_driver/standin.h"

#define RESULT_ROW(name, number) {#name, number},
static const struct {
    const char *name;
    int code;
} results[] = {CUDA_RESULTS(RESULT_ROW)};

const char *result_name(CUresult code)
{
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].code == (int)code)
            return results[i].name;
    return NULL;
}

static CUresult result_read(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    if (*text && !*end)
        return (CUresult)number;
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (!strcmp(results[i].name + strlen("CUDA_ERROR_"), text))
            return (CUresult)results[i].code;
    misuse("RINGMASTER_STANDIN_CUDA: \"%s\" is no error of the driver", text);
}

static size_t bytes_read(const char *text)
{
    char *end;
    size_t number = (size_t)strtoull(text, &end, 10);
    int shift = *end == 'K' ? 10 : *end == 'M' ? 20 : *end == 'G' ? 30 : 0;
    return number << shift;
}

static void rule_read(struct script *s, int kind, const char *text)
{
    struct rule *r = &s->rule[s->rules++];
    char code[48] = "";
    long long turn = 0;
    const bool has_code = kind < HANGS;
    if (s->rules == RULES_MAX ||
        sscanf(text, "%47[^@]@%lld=%47s", r->name, &turn, code) < (has_code || kind == DIES ? 3 : 2))
        misuse("RINGMASTER_STANDIN_CUDA: \"%s\" is not CALL@N=CODE", text);
    r->kind = (unsigned)kind;
    r->turn = turn;
    r->code = has_code ? result_read(code) : CUDA_SUCCESS;
    r->moment = kind == DIES ? strtoll(code, NULL, 10) : 0;
}

struct number {
    const char *name;
    int *to;
};

static bool number_read(struct script *s, const char *name, const char *value)
{
    const struct number numbers[] = {
        {"devices", &s->devices}, {"version", &s->version}, {"sms", &s->processors}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (!strcmp(numbers[i].name, name)) {
            *numbers[i].to = (int)strtol(value, NULL, 10);
            return true;
        }
    return false;
}

static void setting_read(struct script *s, const char *name, const char *value)
{
    if (number_read(s, name, value))
        return;
    if (!strcmp(name, "seed"))
        s->seed = strtoull(value, NULL, 10);
    else if (!strcmp(name, "memory"))
        s->memory = bytes_read(value);
    else if (!strcmp(name, "taken"))
        s->taken = bytes_read(value);
    else if (!strcmp(name, "name"))
        snprintf(s->name, sizeof s->name, "%s", value);
    else if (!strcmp(name, "capability"))
        sscanf(value, "%d.%d", &s->major, &s->minor);
    else if (!strcmp(name, "prohibited"))
        s->prohibited = true;
    else if (!strcmp(name, "no-export"))
        s->no_export = true;
    else if (!strcmp(name, "empty"))
        s->empty = true;
    else
        misuse("RINGMASTER_STANDIN_CUDA: nobody knows \"%s\"", name);
}

static void word_read(struct script *s, char *word)
{
    static const char *const kinds[] = {
        [FAILS] = "fail:", [LOST] = "lost:", [HANGS] = "hang:", [SKIPS] = "skip:", [DIES] = "die:"};
    for (int i = 0; i <= DIES; i++)
        if (!strncmp(word, kinds[i], strlen(kinds[i]))) {
            rule_read(s, i, word + strlen(kinds[i]));
            return;
        }
    char *value = strchr(word, '=');
    if (value)
        *value++ = 0;
    setting_read(s, word, value ? value : "");
}

void script_read(struct script *s, const char *text)
{
    char copy[1024], *rest = copy;
    *s = (struct script){.devices = 1, .version = 13000, .processors = 4, .major = 9, .memory = 1u << 30};
    snprintf(s->name, sizeof s->name, "Stand-in GPU");
    snprintf(copy, sizeof copy, "%s", text ? text : "");
    for (char *word; (word = strsep(&rest, ","));)
        if (*word)
            word_read(s, word);
    if (s->devices > DEVICES_MAX)
        misuse("RINGMASTER_STANDIN_CUDA: %d devices at most", DEVICES_MAX);
}

/* Calls are named without the _v2 that some have. */
static bool same_call(const char *rule, const char *call)
{
    size_t length = strlen(rule);
    return !strncmp(rule, call, length) && (!call[length] || !strcmp(call + length, "_v2"));
}

struct rule *script_turn(struct script *s, const char *name)
{
    struct rule *found = NULL;
    for (int i = 0; i < s->rules; i++)
        if (same_call(s->rule[i].name, name) && ++s->rule[i].seen == s->rule[i].turn && !found)
            found = &s->rule[i];
    return found;
}
