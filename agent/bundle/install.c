/* Copies the bundle's files below one folder to another, each under a name of its own making first and
 * under its true one when it is whole. agent/main.c calls it for `ringmaster-agent install`, in an image
 * that has nothing of ours. */
#include "agent/bundle/install.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/err_system.h"

enum {
    DEPTH_MAX = 8,
    PATH_ROOM = 1024,
    PIECE = 1 << 16,
    FOLDER_MODE = 0755, /* whatever the umask: who runs it may be anybody */
    FILE_MODE = 0644,
    RUN_BITS = 0111,
};

/* Two folders that are walked side by side, as paths that grow and shrink. */
struct walk {
    char from[PATH_ROOM], to[PATH_ROOM];
    bool copies; /* else it only counts */
    uint64_t bytes;
    int depth;
};

static int cannot_write(const struct walk *w, const char *path, struct error *err)
{
    if (errno == ENOSPC || errno == EDQUOT)
        return err_system(err, ERR_MACHINE, "%s: no room for the bundle, which takes %llu MiB of this disk",
                          path, (unsigned long long)((w->bytes + (1 << 20) - 1) >> 20));
    return err_system(err, ERR_MACHINE, "can't write %s", path);
}

static int write_whole(int fd, const char *bytes, size_t length)
{
    while (length) {
        ssize_t n = write(fd, bytes, length);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -1;
        bytes += n;
        length -= (size_t)n;
    }
    return 0;
}

/* -1 with errno of a write; a read that fails is told in err, with errno 0. */
static int pour(int in, int out, const char *path, struct error *err)
{
    char piece[PIECE];
    for (;;) {
        ssize_t n = read(in, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0) {
            err_system(err, ERR_MACHINE, "can't read %s", path);
            errno = 0;
            return -1;
        }
        if (n == 0)
            return 0;
        if (write_whole(out, piece, (size_t)n) < 0)
            return -1;
    }
}

/* Under another name until it is whole: nobody sees half of a program. */
static int copy_to(const struct walk *w, int in, mode_t mode, struct error *err)
{
    char new[PATH_ROOM + 8];
    snprintf(new, sizeof new, "%s.new", w->to);
    unlink(new);
    int out = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE);
    if (out < 0)
        return cannot_write(w, w->to, err);
    bool good = pour(in, out, w->from, err) == 0 && fchmod(out, mode) == 0;
    int why = errno;
    if (close(out) < 0 && good) {
        good = false;
        why = errno;
    }
    if (good && rename(new, w->to) == 0)
        return 0;
    errno = good ? errno : why;
    if (errno)
        cannot_write(w, w->to, err);
    unlink(new);
    return -1;
}

static int copy_file(const struct walk *w, const struct stat *is, struct error *err)
{
    int in = open(w->from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (in < 0)
        return err_system(err, ERR_MACHINE, "can't read %s", w->from);
    int result = copy_to(w, in, FILE_MODE | (is->st_mode & RUN_BITS), err);
    close(in);
    return result;
}

static int make_folder(const struct walk *w, struct error *err)
{
    if (mkdir(w->to, FOLDER_MODE) < 0 && errno != EEXIST)
        return cannot_write(w, w->to, err);
    if (chmod(w->to, FOLDER_MODE) < 0)
        return cannot_write(w, w->to, err);
    return 0;
}

/* false: it is too long. */
static bool grow(char path[PATH_ROOM], const char *name)
{
    size_t length = strlen(path);
    int n = snprintf(path + length, PATH_ROOM - length, "/%s", name);
    return n > 0 && (size_t)n < PATH_ROOM - length;
}

static int walk_folder(struct walk *w, struct error *err);

static int take_entry(struct walk *w, struct error *err)
{
    struct stat is;
    if (lstat(w->from, &is) < 0)
        return err_system(err, ERR_MACHINE, "can't read %s", w->from);
    if (S_ISDIR(is.st_mode) && w->depth < DEPTH_MAX) {
        if (w->copies && make_folder(w, err) < 0)
            return -1;
        w->depth++;
        int result = walk_folder(w, err);
        w->depth--;
        return result;
    }
    if (!S_ISREG(is.st_mode))
        return err_set(err, ERR_USAGE, "%s is no file of a bundle", w->from);
    if (!w->copies) {
        w->bytes += (uint64_t)is.st_size;
        return 0;
    }
    return copy_file(w, &is, err);
}

static int take_named(struct walk *w, const char *name, struct error *err)
{
    size_t from = strlen(w->from), to = strlen(w->to);
    int result = grow(w->from, name) && grow(w->to, name)
                     ? take_entry(w, err)
                     : err_set(err, ERR_USAGE, "%s: the path is too long", w->from);
    w->from[from] = w->to[to] = 0;
    return result;
}

static int walk_folder(struct walk *w, struct error *err)
{
    DIR *folder = opendir(w->from);
    struct dirent *entry;
    int result = 0;
    if (!folder)
        return err_system(err, ERR_MACHINE, "can't read %s", w->from);
    while (result == 0 && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            result = take_named(w, entry->d_name, err);
    closedir(folder);
    return result;
}

static int begin_path(char path[PATH_ROOM], const char *folder, struct error *err)
{
    struct stat is;
    if (stat(folder, &is) < 0 || !S_ISDIR(is.st_mode))
        return err_set(err, ERR_USAGE, "%s is no folder", folder);
    int n = snprintf(path, PATH_ROOM, "%s", folder);
    return n < PATH_ROOM ? 0 : err_set(err, ERR_USAGE, "%s: the path is too long", folder);
}

int bundle_install(const char *from, const char *to, struct error *err)
{
    struct walk w = {0};
    if (begin_path(w.from, from, err) < 0 || begin_path(w.to, to, err) < 0 || walk_folder(&w, err) < 0)
        return -1;
    w.copies = true;
    return walk_folder(&w, err);
}
