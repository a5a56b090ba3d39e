/* Private to the log: how its lines read. */
#ifndef RM_OS_LOG_TEXT_H
#define RM_OS_LOG_TEXT_H

#include <stdint.h>

#include "common/base/str.h"

struct log_entry {
    int64_t wall_ms;
    const char *level, *program, *message;
    const char *pairs; /* key=value key="a value with spaces" */
    int worker;        /* -1: not said */
    int64_t term;      /* 0: not said */
};

/* One line with its newline. */
void log_text_plain(const struct log_entry *entry, struct str *out);
void log_text_json(const struct log_entry *entry, struct str *out);

#endif
