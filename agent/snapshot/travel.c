/* One walk over all that travels: for its bytes before anything is touched, and to copy it into the folder
 * while the tree stands still. And the way back. */
#include "agent/snapshot/travel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/snapshot/process_tree.h"
#include "common/os/file.h"

static const char archive_name[] = "ringmaster-files";
enum { OPEN_MAX_FILES = 4096, INFO_MAX = 1 << 16, MOUNTS_MAX = 4 << 20 };

/* What is done with each that travels, a folder before what lies in it and once more behind it. info: as
 * lstat has it. */
struct traveller {
    int (*each)(struct traveller *self, const char *path, const struct stat *info, struct error *err);
    int archive;
    int64_t named, open; /* bytes */
    bool is_open;        /* those that come now are open and not named */
};

/* Files that were met already: one that is open twice travels once. */
struct met {
    int count;
    struct {
        dev_t device;
        ino_t inode;
    } all[OPEN_MAX_FILES];
};

/* ---- which ones ---- */

/* A folder is sealed as it was only behind what lies in it: who puts that back has no right to pass over. */
static int meet_entry(struct traveller *t, const FTSENT *entry, struct error *err)
{
    struct stat info = *entry->fts_statp;
    if (entry->fts_info == FTS_D)
        info.st_mode |= S_IRWXU;
    return t->each(t, entry->fts_path, &info, err);
}

static int walk_named(struct traveller *t, const char *path, struct error *err)
{
    char *const roots[] = {(char *)(uintptr_t)path, NULL};
    FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int result = tree ? 0 : err_errno(err, ERR_MACHINE, "can't read %.100s", path);
    for (FTSENT *entry; tree && !result && (entry = fts_read(tree));) {
        int kind = entry->fts_info;
        bool folder = kind == FTS_D || kind == FTS_DP;
        bool goes = folder || kind == FTS_F || kind == FTS_SL || kind == FTS_SLNONE;
        bool failed = (kind == FTS_DNR || kind == FTS_ERR || kind == FTS_NS) && entry->fts_errno != ENOENT;
        errno = entry->fts_errno;
        if (failed)
            result = err_errno(err, ERR_MACHINE, "can't read %.100s, which is to travel", entry->fts_path);
        else if (goes)
            result = meet_entry(t, entry, err);
    }
    if (tree)
        fts_close(tree);
    return result;
}

static bool is_new(struct met *met, const struct stat *info)
{
    for (int i = 0; i < met->count; i++)
        if (met->all[i].device == info->st_dev && met->all[i].inode == info->st_ino)
            return false;
    met->all[met->count].device = info->st_dev;
    met->all[met->count++].inode = info->st_ino;
    return true;
}

static bool is_named(const struct travel *travel, const char *path)
{
    for (int i = 0; i < travel->named_count; i++)
        if (travel_lies_in(path, travel->named[i]))
            return true;
    return false;
}

/* Open for writing, where the next pod has nothing, and still at the path that it has. */
static bool is_own(const struct travel *travel, long pid, const char *number,
                   char path[static TRAVEL_PATH_MAX], struct stat *ret)
{
    char link[64], info[64];
    struct stat opened;
    struct str text = str_init(INFO_MAX);
    bool written = false;
    long mount = -1;
    snprintf(link, sizeof link, "/proc/%ld/fd/%s", pid, number);
    snprintf(info, sizeof info, "/proc/%ld/fdinfo/%s", pid, number);
    bool told = file_read(info, &text, NULL) == 0 && travel_descriptor(str_text(&text), &written, &mount);
    str_clear(&text);
    if (!told || !written || !travel_is_own(&travel->mounts, mount) || stat(link, &opened) < 0 ||
        !S_ISREG(opened.st_mode))
        return false;
    ssize_t length = readlink(link, path, TRAVEL_PATH_MAX - 1);
    path[length > 0 ? length : 0] = 0;
    return *path == '/' && lstat(path, ret) == 0 && ret->st_dev == opened.st_dev &&
           ret->st_ino == opened.st_ino;
}

static int meet_open(struct traveller *t, const char *path, const struct stat *info, struct met *met,
                     struct error *err)
{
    if (met->count == OPEN_MAX_FILES)
        return err_set(
            err, ERR_MACHINE,
            "the program has more than %d files open for writing, and no more travel by themselves; "
            "name their folders in checkpoint.processPaths",
            OPEN_MAX_FILES - 1);
    return is_new(met, info) ? t->each(t, path, info, err) : 0;
}

static int walk_process(struct traveller *t, const struct travel *travel, long pid, struct met *met,
                        struct error *err)
{
    char folder[64], path[TRAVEL_PATH_MAX];
    struct stat info;
    int result = 0;
    snprintf(folder, sizeof folder, "/proc/%ld/fd", pid);
    DIR *open = opendir(folder);
    for (struct dirent *entry; open && !result && (entry = readdir(open));)
        if (entry->d_name[0] != '.' && is_own(travel, pid, entry->d_name, path, &info) &&
            !is_named(travel, path))
            result = meet_open(t, path, &info, met, err);
    if (open)
        closedir(open);
    return result;
}

static int walk_open(struct traveller *t, const struct travel *travel, struct error *err)
{
    struct process_tree *tree = malloc(sizeof *tree);
    struct met *met = calloc(1, sizeof *met);
    int result = tree && met ? process_tree_read(travel->root, tree, err)
                             : err_set(err, ERR_MACHINE, "no memory for a list of files");
    for (int i = 0; !result && i < tree->count; i++)
        result = walk_process(t, travel, tree->pids[i], met, err);
    free(tree);
    free(met);
    return result;
}

static int walk_all(struct traveller *t, const struct travel *travel, struct error *err)
{
    for (int i = 0; i < travel->named_count; i++)
        if (walk_named(t, travel->named[i], err) < 0)
            return -1;
    t->is_open = true;
    return travel->root && travel->mounts.count ? walk_open(t, travel, err) : 0;
}

void travel_own(struct travel_mounts *ret)
{
    struct str text = str_init(MOUNTS_MAX);
    bool told = file_read("/proc/self/mountinfo", &text, NULL) == 0;
    travel_own_mounts(told ? str_text(&text) : "", ret);
    str_clear(&text);
}

/* ---- how much ---- */

static int count_bytes(struct traveller *t, const char *path, const struct stat *info, struct error *err)
{
    (void)path, (void)err;
    if (S_ISREG(info->st_mode))
        *(t->is_open ? &t->open : &t->named) += info->st_size;
    return 0;
}

int travel_refuse(const struct travel *travel, struct error *err)
{
    struct traveller t = {.each = count_bytes, .archive = -1};
    if (walk_all(&t, travel, err) < 0)
        return -1;
    return travel_refuse_bytes(t.named, t.open, travel->room, err);
}

/* ---- into the folder ---- */

static int write_whole(int fd, const void *bytes, size_t length, struct error *err)
{
    ssize_t written = write(fd, bytes, length);
    if (written == (ssize_t)length)
        return 0;
    errno = written < 0 ? errno : ENOSPC;
    return err_errno(err, ERR_MACHINE, "can't write %s", archive_name);
}

static int write_head(int fd, const struct travel_head *head, const char *path, struct error *err)
{
    return write_whole(fd, head, sizeof *head, err) < 0 ? -1 : write_whole(fd, path, head->path_length, err);
}

/* `size` bytes from one file to the other; false with errno, which is 0 where there are fewer. */
static bool send_bytes(int to, int from, uint64_t size)
{
    while (size) {
        ssize_t n = sendfile(to, from, NULL, size < 1 << 30 ? (size_t)size : 1 << 30);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) {
            errno = n < 0 ? errno : 0;
            return false;
        }
        size -= (uint64_t)n;
    }
    return true;
}

static int pack_file(int archive, struct travel_head *head, const char *path, struct error *err)
{
    struct stat info;
    int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && errno == ENOENT)
        return 0;
    if (fd < 0 || fstat(fd, &info) < 0) {
        err_errno(err, ERR_MACHINE, "can't read %.100s, which is to travel", path);
        if (fd >= 0)
            close(fd);
        return -1;
    }
    head->size = (uint64_t)info.st_size;
    int result = write_head(archive, head, path, err);
    if (result == 0 && !send_bytes(archive, fd, head->size))
        result =
            errno ? err_errno(err, ERR_MACHINE, "can't copy %.100s, which is to travel", path)
                  : err_set(err, ERR_MACHINE, "%.100s, which is to travel, shrinks while it is read", path);
    close(fd);
    return result;
}

static int pack_link(int archive, struct travel_head *head, const char *path, struct error *err)
{
    char target[TRAVEL_PATH_MAX];
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return 0; /* it is gone */
    head->size = (uint64_t)length;
    return write_head(archive, head, path, err) < 0 ? -1 : write_whole(archive, target, (size_t)length, err);
}

static int pack_one(struct traveller *t, const char *path, const struct stat *info, struct error *err)
{
    struct travel_head head = {.magic = TRAVEL_HEAD_MAGIC,
                               .kind = TRAVEL_FOLDER,
                               .mode = info->st_mode & 07777,
                               .path_length = (uint32_t)strlen(path),
                               .seconds = info->st_mtim.tv_sec,
                               .nanoseconds = info->st_mtim.tv_nsec};
    if (head.path_length >= TRAVEL_PATH_MAX || !travel_path_holds(path, head.path_length))
        return err_set(err, ERR_MACHINE, "%.100s can't travel by that path", path);
    if (S_ISDIR(info->st_mode))
        return write_head(t->archive, &head, path, err);
    head.kind = S_ISLNK(info->st_mode) ? TRAVEL_LINK : TRAVEL_FILE;
    return head.kind == TRAVEL_LINK ? pack_link(t->archive, &head, path, err)
                                    : pack_file(t->archive, &head, path, err);
}

int travel_pack(const struct travel *travel, int folder, struct error *err)
{
    static const struct travel_head end_head = {.magic = TRAVEL_HEAD_MAGIC, .kind = TRAVEL_END};
    struct traveller t = {.each = pack_one};
    t.archive = openat(folder, archive_name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (t.archive < 0)
        return err_errno(err, ERR_MACHINE, "can't write %s", archive_name);
    int result = walk_all(&t, travel, err);
    if (result == 0)
        result = write_head(t.archive, &end_head, "", err);
    close(t.archive);
    return result;
}

/* ---- and back ---- */

static int refuse_archive(struct error *err)
{
    return err_set(err, ERR_DATA, "this folder is no snapshot: %s is not what a dump writes", archive_name);
}

/* The folders above it. */
static void make_parents(const char *path)
{
    char part[TRAVEL_PATH_MAX];
    snprintf(part, sizeof part, "%s", path);
    for (char *slash = part; (slash = strchr(slash + 1, '/'));) {
        *slash = 0;
        mkdir(part, 0755); /* whatever stands in the way is told of by what is put there */
        *slash = '/';
    }
}

static int put_folder(const struct travel_head *head, const char *path)
{
    if (mkdir(path, 0700) < 0 && errno != EEXIST)
        return -1;
    return chmod(path, head->mode);
}

static int put_link(int archive, const struct travel_head *head, const char *path)
{
    char target[TRAVEL_PATH_MAX] = "";
    if (read(archive, target, head->size) != (ssize_t)head->size)
        return errno = 0, -1;
    unlink(path);
    return symlink(target, path);
}

static int put_file(int archive, const struct travel_head *head, const char *path)
{
    enum { HOW = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC };
    const struct timespec times[] = {{.tv_nsec = UTIME_OMIT}, {head->seconds, head->nanoseconds}};
    int fd = open(path, HOW, 0600);
    if (fd < 0 && (errno == ELOOP || errno == EACCES) && unlink(path) == 0)
        fd = open(path, HOW, 0600);
    if (fd < 0)
        return -1;
    int result = send_bytes(fd, archive, head->size) && fchmod(fd, head->mode) == 0 ? 0 : -1;
    int why = errno;
    futimens(fd, times);
    close(fd);
    errno = why;
    return result;
}

static int put_back(int archive, const struct travel_head *head, struct error *err)
{
    char path[TRAVEL_PATH_MAX];
    bool read_it = read(archive, path, head->path_length) == (ssize_t)head->path_length;
    if (!read_it || !travel_path_holds(path, head->path_length))
        return refuse_archive(err);
    path[head->path_length] = 0;
    make_parents(path);
    int result = head->kind == TRAVEL_FOLDER ? put_folder(head, path)
                 : head->kind == TRAVEL_LINK ? put_link(archive, head, path)
                                             : put_file(archive, head, path);
    if (result == 0)
        return 0;
    return errno
               ? err_errno(err, ERR_MACHINE, "can't put %.100s back, which travelled with the snapshot", path)
               : refuse_archive(err);
}

static int put_all_back(int archive, struct error *err)
{
    for (;;) {
        struct travel_head head;
        if (read(archive, &head, sizeof head) != (ssize_t)sizeof head || !travel_head_holds(&head))
            return refuse_archive(err);
        if (head.kind == TRAVEL_END)
            return 0;
        if (put_back(archive, &head, err) < 0)
            return -1;
    }
}

int travel_unpack(int folder, struct error *err)
{
    int archive = openat(folder, archive_name, O_RDONLY | O_CLOEXEC);
    if (archive < 0 && errno == ENOENT)
        return 0; /* by a dump that knew of none */
    if (archive < 0)
        return err_errno(err, ERR_MACHINE, "can't read %s", archive_name);
    int result = put_all_back(archive, err);
    close(archive);
    return result;
}
