#include "agent/snapshot/criu/snapshot.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/snapshot/criu/freezer.h"
#include "agent/snapshot/process_tree.h"
#include "agent/snapshot/program_streams.h"
#include "common/os/file.h"

static int refuse_own_rights(struct error *err)
{
    struct str text = str_init(1 << 14);
    uint64_t effective = 0;
    int result = file_read("/proc/self/status", &text, err);
    if (result == 0 && !snapshot_effective_rights(str_text(&text), &effective))
        result = err_set(err, ERR_MACHINE, "/proc/self/status does not tell the capabilities");
    str_clear(&text);
    return result < 0 ? result : snapshot_refuse_rights(effective, err);
}

int snapshot_refuse_ground(const char *binary, struct error *err)
{
    int version = freezer_version(binary);
    if (version < 0)
        return err_set(
            err, ERR_MACHINE,
            "there is no criu that runs here (%.200s); a snapshot wants 4.1 or later, as Debian 13 "
            "has it",
            binary ? binary : "looked for beside this program and in PATH");
    if (snapshot_refuse_version(version, err) < 0)
        return -1;
    return refuse_own_rights(err);
}

int snapshot_version(const char *binary)
{
    return freezer_version(binary);
}

static void read_stats(int folder, struct snapshot_stats *ret)
{
    char bytes[4096];
    int fd = openat(folder, "stats-dump", O_RDONLY | O_CLOEXEC);
    ssize_t length = fd < 0 ? -1 : read(fd, bytes, sizeof bytes);
    if (fd >= 0)
        close(fd);
    *ret = (struct snapshot_stats){0};
    if (length > 0)
        snapshot_stats_read(bytes, (size_t)length, ret);
}

static int refuse_tree(long pid, struct error *err)
{
    struct process_tree *tree = malloc(sizeof *tree);
    if (!tree)
        return err_set(err, ERR_MACHINE, "no memory for a list of processes");
    int result = process_tree_read(pid, tree, err);
    if (result == 0)
        result = process_tree_refuse(tree, err);
    free(tree);
    return result;
}

/* While the tree stands still: they are of the same moment as its memory. */
static int pack_files(const struct snapshot *wish, struct error *err)
{
    return travel_pack(&wish->travel, wish->folder, err);
}

int snapshot_dump(const struct snapshot *wish, struct snapshot_stats *ret, struct error *err)
{
    struct program_streams streams;
    struct snapshot with = *wish;
    with.travel.root = wish->pid;
    travel_own(&with.travel.mounts);
    if (refuse_tree(wish->pid, err) < 0 || travel_refuse(&with.travel, err) < 0)
        return -1;
    program_streams_read(wish->pid, &streams);
    if (program_streams_save(wish->folder, &streams, err) < 0 || freezer_dump(&with, pack_files, err) < 0)
        return -1;
    read_stats(wish->folder, ret);
    return 0;
}

long snapshot_restore(const struct snapshot *wish, struct error *err)
{
    struct program_streams streams;
    if (program_streams_load(wish->folder, &streams, err) < 0 || travel_unpack(wish->folder, err) < 0)
        return -1;
    return freezer_restore(wish, &streams, err);
}
