#include "agent/snapshot/criu/freezer.h"

#include <criu/criu.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"

static const char dump_log[] = "dump.log", restore_log[] = "restore.log";
enum { GHOST_MOST = 1 << 30, LOG_MOST = 64 << 20 }; /* a deleted file that is still open travels along */

/* libcriu waits for the child that it makes, which nobody else may reap first. */
static void hold_child_signal(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
}

static int set_common(const char *binary, int folder, const char *log, struct error *err)
{
    hold_child_signal();
    if (criu_init_opts() < 0 || (binary && criu_set_service_binary(binary) < 0))
        return err_set(err, ERR_MACHINE, "no memory for CRIU's options");
    if (folder >= 0) {
        criu_set_images_dir_fd(folder);
        if (criu_set_log_file(log) < 0)
            return err_set(err, ERR_MACHINE, "no memory for CRIU's options");
        criu_set_log_level(CRIU_LOG_INFO);
    }
    criu_set_unprivileged(true);
    criu_set_manage_cgroups_mode(CRIU_CG_MODE_IGNORE);
    criu_set_tcp_close(true);
    criu_set_file_locks(true);
    criu_set_ext_unix_sk(true);
    criu_set_ghost_limit(GHOST_MOST);
    return 0;
}

int freezer_version(const char *binary)
{
    if (set_common(binary, -1, NULL, NULL) < 0)
        return -1;
    int version = criu_get_version();
    return version > 0 ? version : -1;
}

/* What CRIU's log in the folder says, or by its number that it failed. */
static int tell_failure(int folder, const char *log, const char *what, int code, struct error *err)
{
    struct str text = str_init(LOG_MOST);
    char part[1 << 16], cause[SNAPSHOT_CAUSE_MAX];
    int fd = openat(folder, log, O_RDONLY | O_CLOEXEC);
    for (ssize_t n; fd >= 0 && (n = read(fd, part, sizeof part)) > 0;)
        str_add(&text, part, (size_t)n);
    if (fd >= 0)
        close(fd);
    if (snapshot_cause(str_text(&text), cause))
        err_set(err, ERR_MACHINE, "%s: criu: %s", what, cause);
    else
        err_set(err, ERR_MACHINE, "%s: criu failed without a word (%s)", what,
                strerror(code < 0 ? -code : 0));
    str_clear(&text);
    return -1;
}

/* libcriu hands nothing of ours to whom it calls. */
static struct {
    const struct snapshot *wish;
    freezer_still *still;
    struct error why;
    bool failed;
} dump_at_hand;

/* CRIU's own word for the moment behind the last image, at which nothing runs yet. */
static int hear_criu(char *action, criu_notify_arg_t more)
{
    (void)more;
    if (strcmp(action, "post-dump") != 0)
        return 0;
    dump_at_hand.failed = dump_at_hand.still(dump_at_hand.wish, &dump_at_hand.why) < 0;
    return dump_at_hand.failed ? -1 : 0;
}

int freezer_dump(const struct snapshot *wish, freezer_still *still, struct error *err)
{
    if (set_common(wish->binary, wish->folder, dump_log, err) < 0)
        return -1;
    dump_at_hand.wish = wish;
    dump_at_hand.still = still;
    dump_at_hand.failed = false;
    criu_set_notify_cb(hear_criu);
    criu_set_pid((int)wish->pid);
    criu_set_leave_running(wish->leave_running);
    int code = criu_dump();
    if (dump_at_hand.failed)
        return err_set(err, dump_at_hand.why.code, "%s", dump_at_hand.why.text);
    return code < 0 ? tell_failure(wish->folder, dump_log, "the dump failed", code, err) : 0;
}

static int inherit_stream(int fd, const char *key, struct error *err)
{
    if (!*key || fd < 0)
        return 0;
    return criu_add_inherit_fd(fd, key) < 0 ? err_set(err, ERR_MACHINE, "no memory for CRIU's options") : 0;
}

/* CRIU closes each descriptor once it has given it away: one that is to be both is given twice. */
static int own_descriptor(int fd, int other)
{
    return fd >= 0 && fd == other ? dup(fd) : fd;
}

long freezer_restore(const struct snapshot *wish, const struct program_streams *had, struct error *err)
{
    if (set_common(wish->binary, wish->folder, restore_log, err) < 0 ||
        inherit_stream(wish->out, had->out, err) < 0 ||
        (strcmp(had->out, had->err) != 0 &&
         inherit_stream(own_descriptor(wish->err, wish->out), had->err, err) < 0))
        return -1;
    int pid = criu_restore_child();
    return pid <= 0 ? tell_failure(wish->folder, restore_log, "the restore failed", pid, err) : pid;
}
