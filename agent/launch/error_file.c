/* The folder in which Python programs of torch's leave their tracebacks: made and locked before the first
 * process starts, and removed at the end (processes.c, pair.c), with those of launchers that were killed;
 * read when a process has ended with an error (processes.c). */
#include "agent/launch/error_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/config.h"
#include "common/os/file.h"
#include "common/os/log.h"
#include "common/wire/json.h"

#define FOLDER_PREFIX "ringmaster-"
#define ERROR_NAME    "error-%d.json"
#define LOCK_NAME     "lock"
#define OTHERWISE     "/tmp" /* where TMPDIR is not set, or of no use */

enum { FILE_MAX_BYTES = 256 * 1024, ERROR_FILES = 64, ERROR_NAME_MAX = 32 };

/* ---- the folder ---- */

/* Files of ours alone, so that a folder with anything else in it stays. */
static void empty(int folder)
{
    char name[ERROR_NAME_MAX];
    for (int i = 0; i < ERROR_FILES; i++) {
        snprintf(name, sizeof name, ERROR_NAME, i);
        unlinkat(folder, name, 0);
    }
    unlinkat(folder, "report", 0);
    unlinkat(folder, "program", 0);
    unlinkat(folder, LOCK_NAME, 0); /* the last: whoever holds it is the only one that does this */
}

/* Anybody may put anything at such a name in /tmp: neither a link nor another user's folder is followed. */
static int open_own(int base, const char *name)
{
    struct stat found;
    int folder = openat(base, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder >= 0 && fstat(folder, &found) == 0 && found.st_uid == geteuid() &&
        (found.st_mode & 0777) == 0700)
        return folder;
    if (folder >= 0)
        close(folder);
    return -1;
}

/* A launcher that lives holds the lock, however still it stands; the kernel lets go of a dead one's. */
static void remove_if_dead(int base, const char *name)
{
    int folder = open_own(base, name);
    int lock = folder < 0 ? -1 : openat(folder, LOCK_NAME, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0) {
        empty(folder);
        if (unlinkat(base, name, AT_REMOVEDIR) == 0)
            log_info("what a launcher that was killed has left is removed", "folder=%s", name);
    }
    if (lock >= 0)
        close(lock);
    if (folder >= 0)
        close(folder);
}

static void remove_dead(const char *base)
{
    DIR *entries = opendir(base);
    if (!entries)
        return;
    for (struct dirent *entry; (entry = readdir(entries));)
        if (!strncmp(entry->d_name, FOLDER_PREFIX, sizeof FOLDER_PREFIX - 1) &&
            strlen(entry->d_name) == sizeof FOLDER_PREFIX - 1 + 6)
            remove_if_dead(dirfd(entries), entry->d_name);
    closedir(entries);
}

/* -1: somebody has taken it for a dead one's before it was held. */
static int hold_folder(const char *folder)
{
    char path[ERROR_PATH_MAX];
    struct stat held, there;
    snprintf(path, sizeof path, "%s/" LOCK_NAME, folder);
    int lock = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool ours = lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0 && fstat(lock, &held) == 0 &&
                stat(path, &there) == 0 && held.st_ino == there.st_ino;
    if (ours)
        return lock;
    if (lock >= 0)
        close(lock);
    return -1;
}

/* Sockets of a program lie in it, too, whose paths are short. */
static int make_folder(const char *base, char *ret, size_t size, int *ret_lock, struct error *err)
{
    static const size_t most = sizeof((struct sockaddr_un *)NULL)->sun_path - sizeof "/program";
    RM_ASSERT(size > most, "there is room for a path of %zu characters", size);
    remove_dead(base);
    for (int tries = 0; *ret_lock < 0 && tries < 10; tries++) {
        int length = snprintf(ret, size, "%s/" FOLDER_PREFIX "XXXXXX", base);
        if (length > (int)most)
            return err_set(err, ERR_USAGE, "%.32s... is longer than %zu characters", base,
                           most - (sizeof "/" FOLDER_PREFIX "XXXXXX" - 1));
        if (!mkdtemp(ret))
            return err_errno(err, ERR_MACHINE, "%s", base);
        *ret_lock = hold_folder(ret);
        if (*ret_lock < 0)
            rmdir(ret);
    }
    return *ret_lock < 0 ? err_set(err, ERR_MACHINE, "%s: no file can be locked there", base) : 0;
}

/* A program keeps the place that it was given, as it stands. */
int error_file_folder(char *ret, size_t size, int *ret_lock, struct error *err)
{
    struct error own, other;
    const char *base = config_get(CONFIG_TMPDIR);
    *ret_lock = -1;
    if (base && make_folder(base, ret, size, ret_lock, &own) == 0)
        return 0;
    if (make_folder(OTHERWISE, ret, size, ret_lock, &other) == 0) {
        if (base)
            log_warn("the program's sockets and error files lie in " OTHERWISE, "why=\"%s: %s\"",
                     config_name(CONFIG_TMPDIR), own.text);
        return 0;
    }
    *ret = 0;
    return err_set(
        err, ERR_MACHINE,
        "no folder for the program's sockets and error files: set %s to one that can be written to (%s%s%s)",
        config_name(CONFIG_TMPDIR), other.text, base ? "; " : "", base ? own.text : "");
}

/* ---- its files ---- */

static void path_of(const char *folder, int local, char *ret, size_t size)
{
    snprintf(ret, size, "%s/" ERROR_NAME, folder, local);
}

void error_file_fresh(const char *folder, int local, char *ret, size_t size)
{
    path_of(folder, local, ret, size);
    unlink(ret);
}

/* What matters of a traceback is its end. */
static void add_end(const char *text, struct str *out)
{
    size_t length = strlen(text), skip = length > out->ceiling ? length - out->ceiling : 0;
    const char *line = skip ? strchr(text + skip, '\n') : NULL;
    str_adds(out, line && line[1] ? line + 1 : text + skip);
}

static bool is_of(int pid, const struct js *more)
{
    int64_t own;
    return js_as_int(js_get(more, "pid"), &own) && own == pid;
}

/* {"message": {"message": "...", "extraInfo": {"py_callstack": "...", "timestamp": "..."}}}, or "message" as
 * a text: as torch.distributed.elastic writes it. Ours has "ringmaster": "refused" and its "pid" in
 * extraInfo. */
bool error_file_read(const char *folder, int local, int pid, struct str *message, struct str *traceback,
                     bool *ret_refused)
{
    char path[ERROR_PATH_MAX];
    struct error err;
    struct str text = str_init(FILE_MAX_BYTES);
    path_of(folder, local, path, sizeof path);
    struct js *root = NULL;
    if (*folder && file_read(path, &text, &err) == 0)
        root = js_parse_foreign(text.data, text.length, "the error file", &err);
    const struct js *outer = js_get(root, "message"), *inner = js_get(outer, "message");
    const char *said = js_as_string(inner ? inner : outer);
    const struct js *more = js_get(outer, "extraInfo");
    const char *stack = js_as_string(js_get(more, "py_callstack")),
               *ours = js_as_string(js_get(more, "ringmaster"));
    bool refusal = said && ours && !strcmp(ours, "refused");
    *ret_refused = refusal && pid && is_of(pid, more);
    if (refusal && !*ret_refused)
        said = NULL;
    if (said) {
        str_adds(message, said);
        add_end(stack && *stack ? stack : said, traceback);
    }
    bool said_any = said != NULL;
    js_free(root);
    str_clear(&text);
    return said_any;
}

void error_file_remove(const char *folder, int lock)
{
    int opened = *folder ? open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (opened >= 0) {
        empty(opened);
        close(opened);
        rmdir(folder);
    }
    if (lock >= 0)
        close(lock);
}
