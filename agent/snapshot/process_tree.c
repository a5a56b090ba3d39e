#include "agent/snapshot/process_tree.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/snapshot/core/words.h"
#include "common/os/process.h"

/* Everybody of /proc with its parent. */
struct census {
    int count;
    struct person {
        long pid, parent;
        bool ended;
    } all[1 << 15];
};

static int take_census(struct census *census, struct error *err)
{
    DIR *proc = opendir("/proc");
    if (!proc)
        return err_errno(err, ERR_MACHINE, "can't read /proc");
    census->count = 0;
    for (struct dirent *entry; (entry = readdir(proc));) {
        long pid = strtol(entry->d_name, NULL, 10);
        struct process_stat stat;
        if (pid > 0 && process_read(entry->d_name, &stat) &&
            census->count < (int)(sizeof census->all / sizeof *census->all))
            census->all[census->count++] = (struct person){pid, stat.parent, stat.state == 'Z'};
    }
    closedir(proc);
    return 0;
}

static int add_process(struct process_tree *tree, long pid, struct error *err)
{
    if (tree->count == PROCESS_TREE_MAX)
        return err_set(err, ERR_MACHINE, "process %ld has more than %d below it: a snapshot takes no more",
                       tree->pids[0], PROCESS_TREE_MAX - 1);
    tree->pids[tree->count++] = pid;
    return 0;
}

static int refuse_root(const struct census *census, long root, struct error *err)
{
    for (int i = 0; i < census->count; i++)
        if (census->all[i].pid == root)
            return census->all[i].ended ? err_set(err, ERR_NOT_FOUND, "process %ld has ended", root) : 0;
    return err_set(err, ERR_NOT_FOUND, "there is no process %ld", root);
}

static int gather_children(const struct census *census, struct process_tree *tree, struct error *err)
{
    for (int at = 0; at < tree->count; at++)
        for (int i = 0; i < census->count; i++)
            if (census->all[i].parent == tree->pids[at] && add_process(tree, census->all[i].pid, err) < 0)
                return -1;
    return 0;
}

int process_tree_read(long root, struct process_tree *ret, struct error *err)
{
    struct census *census = malloc(sizeof *census);
    int result = -1;
    *ret = (struct process_tree){.count = 0};
    if (!census)
        return err_set(err, ERR_MACHINE, "no memory for a list of processes");
    if (take_census(census, err) == 0 && refuse_root(census, root, err) == 0 &&
        add_process(ret, root, err) == 0)
        result = gather_children(census, ret, err);
    free(census);
    return result;
}

static int refuse_process(long pid, struct error *err)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/fd", pid);
    DIR *folder = opendir(path);
    int result = 0;
    for (struct dirent *entry; folder && !result && (entry = readdir(folder));) {
        char target[256];
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1);
        if (length <= 0)
            continue;
        target[length] = 0;
        result = snapshot_refuse_descriptor(pid, target, err);
    }
    if (folder)
        closedir(folder);
    return result;
}

int process_tree_refuse(const struct process_tree *tree, struct error *err)
{
    for (int i = 0; i < tree->count; i++)
        if (refuse_process(tree->pids[i], err) < 0)
            return -1;
    return 0;
}
