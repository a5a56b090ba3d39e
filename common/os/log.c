#include "common/os/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/config.h"

static char name[48] = "ringmaster";

void log_name(const char *program)
{
    text_copy(name, sizeof name, program);
}

static enum log_level threshold(void)
{
    const char *level = config_get(CONFIG_LOG);
    if (level && !strcmp(level, "debug"))
        return LOG_DEBUG;
    return level && !strcmp(level, "info") ? LOG_INFO : LOG_WARN;
}

void log_line(enum log_level level, const char *message, const char *format, ...)
{
    static const char *const words[] = {"debug", "info", "warn"};
    if (level < threshold())
        return;
    char pairs[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(pairs, sizeof pairs, format, args);
    va_end(args);
    /* One write per line, so that lines of several processes on one stderr do not mix. */
    char line[1400];
    int n = snprintf(line, sizeof line, "%lld %s %s: %s %s\n", (long long)clock_wall_ms(), words[level], name,
                     message, pairs);
    if (n > 0)
        fwrite(line, 1, (size_t)n < sizeof line ? (size_t)n : sizeof line - 1, stderr);
    fflush(stderr);
}
