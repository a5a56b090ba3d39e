#include "agent/launch/standstill.h"

#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/snapshot/process_tree.h"
#include "common/os/process.h"

enum { LOOKS_MOST = 1000 };

struct standstill {
    struct process_tree now; /* the newest look */
    int count;
    struct stood {
        long pid;
        bool before; /* it had stopped by itself */
    } all[PROCESS_TREE_MAX];
};

static bool is_known(const struct standstill *s, long pid)
{
    for (int i = 0; i < s->count; i++)
        if (s->all[i].pid == pid)
            return true;
    return false;
}

/* By a signal: whom a debugger holds is told like any other. */
static bool has_stopped(long pid)
{
    struct process_stat stat;
    return process_read_number(pid, &stat) && stat.state == 'T';
}

static void stop_process(struct standstill *s, long pid)
{
    struct stood *one = &s->all[s->count];
    if (s->count == PROCESS_TREE_MAX)
        return;
    *one = (struct stood){.pid = pid, .before = has_stopped(pid)};
    s->count++;
    if (!one->before)
        kill((pid_t)pid, SIGSTOP);
}

/* How many it had not seen before; -1: they can't be told. */
static int look_once(struct standstill *s, const struct process_tree *spared)
{
    int news = 0;
    if (process_tree_read(getpid(), &s->now, NULL) < 0)
        return -1;
    for (int i = 1; i < s->now.count; i++) {
        bool ours = true;
        for (int k = 0; k < spared->count; k++)
            ours = ours && spared->pids[k] != s->now.pids[i];
        if (!ours || is_known(s, s->now.pids[i]))
            continue;
        stop_process(s, s->now.pids[i]);
        news++;
    }
    return news;
}

struct standstill *standstill_begin(long spared, struct error *err)
{
    struct standstill *s = calloc(1, sizeof *s);
    struct process_tree *apart = calloc(1, sizeof *apart);
    if (!s || !apart) {
        free(s);
        free(apart);
        err_set(err, ERR_MACHINE, "no memory for a list of processes");
        return NULL;
    }
    if (!spared || process_tree_read(spared, apart, NULL) < 0)
        apart->count = 0;
    int news = 1;
    for (int looks = 0; news > 0 && looks < LOOKS_MOST; looks++)
        news = look_once(s, apart);
    free(apart);
    if (news != 0) {
        standstill_end(s);
        err_set(err, ERR_MACHINE, "its processes can't be told, or go on starting others");
        return NULL;
    }
    return s;
}

void standstill_end(struct standstill *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->count; i++)
        if (!s->all[i].before)
            kill((pid_t)s->all[i].pid, SIGCONT);
    free(s);
}
