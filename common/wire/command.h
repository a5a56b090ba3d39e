/* What `run` tells its coordinator, a JSON object a line (docs/exit-codes-and-events.md): formed and read by
 * one table of members. */
#ifndef RM_WIRE_COMMAND_H
#define RM_WIRE_COMMAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/wire/event.h"

struct str;

enum command_kind {
    COMMAND_EXPECT,    /* who lives or is on the way */
    COMMAND_ACT,       /* a drill is about to be done */
    COMMAND_INTERRUPT, /* a person wants it saved and ended */
    COMMAND_KINDS
};

struct command_worker {
    int worker, attempt;
    bool next; /* another process follows under this index as soon as this one, which leaves, has ended */
};

struct command_expect {
    int count;
    struct command_worker worker[RM_WORKERS_MAX];
};

struct command_act {
    enum cause cause;
    int worker;
    int64_t at; /* ns of the monotonic clock */
};

struct command {
    enum command_kind kind;
    struct command_expect expect; /* of COMMAND_EXPECT */
    struct command_act act;       /* of COMMAND_ACT */
};

/* The line, with its newline. */
void command_print(const struct command *command, struct str *out);

/* One line. Anything unknown is ERR_PROTOCOL with a sentence; *ret is not touched then. */
int command_read(struct command *ret, const char *text, size_t length, struct error *err);

#endif
