#include "agent/snapshot/core/processor.h"

#include <stdio.h>
#include <string.h>

/* Beginnings of names, or whole names with a space behind them. What the kernel says of itself and of what it
 * guards against differs between machines of one kind, and no program asks for it. */
static const char *const asked_for[] = {
    "avx",    "amx_",  "sse",     "ssse3",     "pni ",    "bmi",     "xsave",     "fma",     "f16c ",
    "aes ",   "vaes ", "pclmulq", "vpclmulq",  "sha_ni ", "sha512",  "sm3 ",      "sm4 ",    "gfni ",
    "popcnt", "abm ",  "movbe ",  "rdrand ",   "rdseed ", "adx ",    "cx16 ",     "lahf_lm", "fsgsbase ",
    "rdpid ", "rtm ",  "hle ",    "pku ",      "ospke ",  "erms ",   "fsrm ",     "xop ",    "tbm ",
    "clwb ",  "clflu", "rdtscp ", "serialize", "movdir",  "waitpkg", "user_shstk"};

static bool is_asked_for(const char *word, size_t length)
{
    char whole[64];
    snprintf(whole, sizeof whole, "%.*s ", (int)length, word);
    for (size_t i = 0; i < sizeof asked_for / sizeof *asked_for; i++)
        if (!strncmp(whole, asked_for[i], strlen(asked_for[i])))
            return true;
    return false;
}

/* What stands behind the colon of the first line that begins so; NULL: there is none. */
static const char *line_of(const char *cpuinfo, const char *key)
{
    for (const char *line = cpuinfo; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        size_t length = strlen(key);
        if (!strncmp(line, key, length) && strchr("\t :", line[length]))
            return line + length + strspn(line + length, "\t :");
    }
    return NULL;
}

bool processor_features(const char *cpuinfo, char *out, size_t size)
{
    const char *x86 = line_of(cpuinfo, "flags"), *words = x86 ? x86 : line_of(cpuinfo, "Features");
    size_t used = 0;
    *out = 0;
    while (words && *words && *words != '\n') {
        size_t length = strcspn(words, " \n");
        bool wanted = length && (!x86 || is_asked_for(words, length));
        if (wanted && used + length + 2 > size)
            return false;
        if (wanted)
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? " " : "", (int)length, words);
        words += length;
        words += strspn(words, " ");
    }
    return used > 0;
}
