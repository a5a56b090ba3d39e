/* Writes and reads the lines that `ringmaster run` sends to its coordinator, by one table of each
 * command's members. cli/core/supervisor.c and cli/local_run_process.c write them,
 * coordinator/status/rdzv_text.c reads. */
#include "common/wire/command.h"

#include <inttypes.h>
#include <string.h>

#include "common/base/str.h"
#include "common/wire/json.h"

enum member_kind {
    MEMBER_INT,  /* 0 to highest */
    MEMBER_LONG, /* 0 to INT64_MAX */
    MEMBER_FLAG, /* absent where it is false */
    MEMBER_CAUSE,
};

struct member {
    const char *key;
    enum member_kind kind;
    size_t at;
    int64_t highest;
};

static const struct member worker_members[] = {
    {"worker", MEMBER_INT, offsetof(struct command_worker, worker), RM_WORKERS_MAX - 1},
    {"attempt", MEMBER_INT, offsetof(struct command_worker, attempt), INT32_MAX},
    {"next", MEMBER_FLAG, offsetof(struct command_worker, next), 0},
    {0},
};

static const struct member act_members[] = {
    {"cause", MEMBER_CAUSE, offsetof(struct command_act, cause), 0},
    {"worker", MEMBER_INT, offsetof(struct command_act, worker), RM_WORKERS_MAX - 1},
    {"at", MEMBER_LONG, offsetof(struct command_act, at), INT64_MAX},
    {0},
};

static const char *const names[COMMAND_KINDS] = {
    [COMMAND_EXPECT] = "expect",
    [COMMAND_ACT] = "act",
    [COMMAND_INTERRUPT] = "interrupt",
};

/* ---- writing ---- */

static void print_members(struct js *o, const struct member *members, const void *from)
{
    for (const struct member *m = members; m->key; m++) {
        const void *at = (const char *)from + m->at;
        switch (m->kind) {
        case MEMBER_INT:
            js_set_int(o, m->key, *(const int *)at);
            break;
        case MEMBER_LONG:
            js_set_int(o, m->key, *(const int64_t *)at);
            break;
        case MEMBER_FLAG:
            if (*(const bool *)at)
                js_set_bool(o, m->key, true);
            break;
        case MEMBER_CAUSE:
            js_set_string(o, m->key, cause_name(*(const enum cause *)at));
            break;
        }
    }
}

static void print_expect(struct js *o, const struct command_expect *expect)
{
    struct js *list = js_array();
    for (int i = 0; i < expect->count; i++) {
        struct js *one = js_object();
        print_members(one, worker_members, &expect->worker[i]);
        js_push(list, one);
    }
    js_set(o, "workers", list);
}

void command_print(const struct command *command, struct str *out)
{
    struct js *o = js_object();
    js_set_string(o, "command", names[command->kind]);
    if (command->kind == COMMAND_EXPECT)
        print_expect(o, &command->expect);
    if (command->kind == COMMAND_ACT)
        print_members(o, act_members, &command->act);
    js_print(o, out);
    str_adds(out, "\n");
    js_free(o);
}

/* ---- reading ---- */

static int read_int(const struct js *o, const struct member *m, int64_t *ret, struct error *err)
{
    return js_need_int(o, m->key, 0, m->highest, ret, err);
}

static int read_cause(const struct js *o, const struct member *m, enum cause *ret, struct error *err)
{
    char text[32];
    if (js_need_string(o, m->key, text, sizeof text, err) < 0)
        return -1;
    *ret = cause_of_name(text);
    return *ret == CAUSE_NONE || *ret == CAUSES ? err_set(err, ERR_PROTOCOL, "act: '%s' is no cause", text)
                                                : 0;
}

static int read_member(void *at, const struct js *o, const struct member *m, struct error *err)
{
    int64_t value;
    switch (m->kind) {
    case MEMBER_INT:
        if (read_int(o, m, &value, err) < 0)
            return -1;
        *(int *)at = (int)value;
        return 0;
    case MEMBER_LONG:
        return read_int(o, m, at, err);
    case MEMBER_FLAG:
        js_as_bool(js_get(o, m->key), at);
        return 0;
    case MEMBER_CAUSE:
        return read_cause(o, m, at, err);
    }
    return 0;
}

static int read_members(void *to, const struct js *o, const struct member *members, struct error *err)
{
    for (const struct member *m = members; m->key; m++)
        if (read_member((char *)to + m->at, o, m, err) < 0)
            return -1;
    return 0;
}

static int read_expect(struct command_expect *ret, const struct js *o, struct error *err)
{
    const struct js *list;
    if (js_need(o, "workers", JS_ARRAY, &list, err) < 0)
        return -1;
    if (js_size(list) > RM_WORKERS_MAX)
        return err_set(err, ERR_PROTOCOL, "expect names %zu workers, at most %d are allowed", js_size(list),
                       RM_WORKERS_MAX);
    for (size_t i = 0; i < js_size(list); i++)
        if (read_members(&ret->worker[i], js_at(list, i), worker_members, err) < 0)
            return err_wrap(err, "workers[%zu]", i);
    ret->count = (int)js_size(list);
    return 0;
}

static int read_command(struct command *ret, const struct js *o, struct error *err)
{
    char name[32];
    int kind = 0;
    if (js_need_string(o, "command", name, sizeof name, err) < 0)
        return -1;
    while (kind < COMMAND_KINDS && strcmp(names[kind], name) != 0)
        kind++;
    ret->kind = (enum command_kind)kind;
    switch (ret->kind) {
    case COMMAND_EXPECT:
        return read_expect(&ret->expect, o, err);
    case COMMAND_ACT:
        return read_members(&ret->act, o, act_members, err);
    case COMMAND_INTERRUPT:
        return 0;
    default:
        return err_set(err, ERR_PROTOCOL, "'%s' is no command", name);
    }
}

int command_read(struct command *ret, const char *text, size_t length, struct error *err)
{
    struct command command = {0};
    struct js *o = js_parse(text, length, "command", err);
    if (!o)
        return -1;
    int rc = js_kind(o) == JS_OBJECT ? read_command(&command, o, err)
                                     : err_set(err, ERR_PROTOCOL, "a command is a JSON object");
    js_free(o);
    if (rc == 0)
        *ret = command;
    return rc;
}
