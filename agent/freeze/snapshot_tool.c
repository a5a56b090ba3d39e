#include "agent/freeze/snapshot_tool.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/config.h"
#include "common/os/file.h"
#include "common/os/log.h"
#include "common/wire/json.h"

enum { SAID_MAX = 4096 };

static const char tool_name[] = "ringmaster-snapshot";

struct snapshot_tool {
    struct loop *loop;
    void (*ended)(void *ctx, const struct snapshot_said *said);
    void *ctx;
    char path[PATH_MAX];
    struct loop_child *child; /* NULL: none runs */
    int line, sentence;       /* memory files that it writes to */
};

static void close_said(struct snapshot_tool *t)
{
    if (t->line >= 0)
        close(t->line);
    if (t->sentence >= 0)
        close(t->sentence);
    t->line = t->sentence = -1;
}

int snapshot_tool_open(struct snapshot_tool **ret, struct loop *loop,
                       void (*ended)(void *ctx, const struct snapshot_said *said), void *ctx,
                       struct error *err)
{
    const char *given = config_get(CONFIG_FREEZER);
    struct snapshot_tool *t = calloc(1, sizeof *t);
    if (!t)
        return err_set(err, ERR_MACHINE, "no memory for a snapshot");
    *t = (struct snapshot_tool){.loop = loop, .ended = ended, .ctx = ctx, .line = -1, .sentence = -1};
    int found = given ? (text_copy(t->path, sizeof t->path, given) ? 0 : -1)
                      : file_sibling(tool_name, t->path, sizeof t->path, err);
    if (found == 0 && access(t->path, X_OK) == 0) {
        *ret = t;
        return 0;
    }
    err_set(err, ERR_MACHINE,
            "checkpoint.process is CRIU, but there is no %s that runs beside this program (%.100s): it is "
            "built where CRIU 4.1 is (Debian 13)",
            tool_name, t->path);
    free(t);
    return -1;
}

/* ---- what it said ---- */

static void read_said(int fd, char out[static SAID_MAX])
{
    ssize_t n = pread(fd, out, SAID_MAX - 1, 0);
    out[n > 0 ? n : 0] = 0;
}

/* Its last line, without its name in front. */
static const char *last_sentence(char *text)
{
    size_t end = strlen(text);
    while (end && text[end - 1] == '\n')
        text[--end] = 0;
    char *line = strrchr(text, '\n');
    line = line ? line + 1 : text;
    size_t own = sizeof tool_name - 1;
    return !strncmp(line, tool_name, own) && !strncmp(line + own, ": ", 2) ? line + own + 2 : line;
}

static void set_why(struct error *err, int code, int signo, char *text)
{
    static const enum error_code of[] = {[EXIT_USAGE] = ERR_USAGE, [EXIT_DATA] = ERR_DATA};
    bool known = code > 0 && code < (int)(sizeof of / sizeof *of) && of[code];
    if (signo)
        err_set(err, ERR_MACHINE, "%s was killed by signal %d", tool_name, signo);
    else
        err_set(err, known ? of[code] : ERR_MACHINE, "%.400s",
                *text ? last_sentence(text) : "ringmaster-snapshot failed without a word");
}

static void read_line(const char *text, struct snapshot_said *said)
{
    int64_t number = 0;
    int major, minor, sublevel;
    const char *version = strstr(text, "(criu ");
    struct js *line = version ? NULL : js_parse(text, strlen(text), "line", NULL);
    if (version && sscanf(version, "(criu %d.%d.%d)", &major, &minor, &sublevel) == 3)
        said->criu = 10000 * major + 100 * minor + sublevel;
    if (line && js_as_int(js_get(line, "pid"), &number))
        said->pid = (long)number;
    if (line && js_as_int(js_get(line, "frozenUs"), &number))
        said->frozen = number * RM_US;
    js_free(line);
}

static void tool_exited(void *ctx, int code, int signo)
{
    struct snapshot_tool *t = ctx;
    char line[SAID_MAX], sentence[SAID_MAX];
    struct error why = {0};
    struct snapshot_said said = {0};
    loop_child_free(t->child);
    t->child = NULL;
    read_said(t->line, line);
    read_said(t->sentence, sentence);
    close_said(t);
    if (code || signo) {
        set_why(&why, code, signo, sentence);
        said.why = &why;
        said.gone = !signo && (strstr(why.text, "there is no process ") || strstr(why.text, " has ended"));
    } else {
        read_line(line, &said);
    }
    t->ended(t->ctx, &said);
}

/* ---- its start ---- */

int snapshot_tool_start(struct snapshot_tool *t, const char *const *words, const int *out, struct error *err)
{
    const char *args[SNAPSHOT_TOOL_WORDS_MAX + 2] = {tool_name};
    for (int n = 0; words[n]; n++) {
        RM_ASSERT(n < SNAPSHOT_TOOL_WORDS_MAX, "more than %d words for %s", n, tool_name);
        args[n + 1] = words[n];
    }
    if (file_memory(&t->line, "snapshot-line", 0, err) < 0 ||
        file_memory(&t->sentence, "snapshot-sentence", 0, err) < 0) {
        close_said(t);
        return -1;
    }
    char **environment = config_without_secrets();
    int fds[] = {-1, t->line, t->sentence, out ? out[0] : -1, out ? out[1] : -1};
    struct loop_child_options child = {.path = t->path,
                                       .args = args,
                                       .environment = environment,
                                       .fds = fds,
                                       .fd_count = out ? 5 : 3,
                                       .exited = tool_exited,
                                       .ctx = t};
    int result = environment ? loop_child_open(&t->child, t->loop, &child, err)
                             : err_set(err, ERR_MACHINE, "no memory for a snapshot");
    free(environment);
    if (result < 0)
        close_said(t);
    return result;
}

void snapshot_tool_kill(struct snapshot_tool *t)
{
    if (t->child)
        loop_child_kill(t->child, SIGKILL);
}

long snapshot_tool_pid(const struct snapshot_tool *t)
{
    return t->child ? loop_child_pid(t->child) : 0;
}

void snapshot_tool_free(struct snapshot_tool *t)
{
    if (!t)
        return;
    snapshot_tool_kill(t);
    loop_child_free(t->child);
    close_said(t);
    free(t);
}
