#include "common/os/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "common/base/near.h"
#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/log_text.h"

enum { PAIRS_MAX = 1024, LINE_MAX_BYTES = 8 * PAIRS_MAX };

static char name[48] = "ringmaster";
static int worker_index = -1;
static int64_t term_number;

void log_name(const char *program)
{
    text_copy(name, sizeof name, program);
}

void log_worker(int worker)
{
    worker_index = worker;
}

void log_term(int64_t term)
{
    term_number = term;
}

void log_as_json(void)
{
    config_set(CONFIG_LOG_FORMAT, "json");
}

static int check_word(enum config_key key, const char *const *known, const char *all, struct error *err)
{
    const char *word = config_get(key);
    if (!word)
        return 0;
    struct near near = near_to(word);
    for (; *known; known++) {
        if (!strcmp(*known, word))
            return 0;
        near_try(&near, *known, strlen(*known));
    }
    return err_set(err, ERR_USAGE, "%s is \"%.40s\"; write %s%s", config_name(key), word, all, near.question);
}

int log_check(struct error *err)
{
    static const char *const levels[] = {"debug", "info", "warn", NULL}, *const formats[] = {"text", "json",
                                                                                             NULL};
    if (check_word(CONFIG_LOG, levels, "debug, info or warn", err) < 0)
        return -1;
    return check_word(CONFIG_LOG_FORMAT, formats, "text or json", err);
}

static bool as_json(void)
{
    const char *shape = config_get(CONFIG_LOG_FORMAT);
    return shape && !strcmp(shape, "json");
}

static enum log_level threshold(void)
{
    const char *level = config_get(CONFIG_LOG);
    if (level && !strcmp(level, "debug"))
        return LOG_DEBUG;
    if (!level && as_json())
        return LOG_INFO;
    return level && !strcmp(level, "info") ? LOG_INFO : LOG_WARN;
}

bool log_shows(enum log_level level)
{
    return level >= threshold();
}

void log_line(enum log_level level, const char *message, const char *format, ...)
{
    static const char *const words[] = {"debug", "info", "warn"};
    if (level < threshold())
        return;
    char pairs[PAIRS_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(pairs, sizeof pairs, format, args);
    va_end(args);
    struct log_entry entry = {.wall_ms = clock_wall_ms(),
                              .level = words[level],
                              .program = name,
                              .message = message,
                              .pairs = pairs,
                              .worker = worker_index,
                              .term = term_number};
    struct str line = str_init(LINE_MAX_BYTES);
    if (as_json())
        log_text_json(&entry, &line);
    else
        log_text_plain(&entry, &line);
    /* One write per line, so that lines of several processes on one stderr do not mix. */
    fwrite(str_text(&line), 1, line.length, stderr);
    fflush(stderr);
    str_clear(&line);
}
