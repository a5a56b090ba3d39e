#include "common/os/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/limits.h"

static int read_all(int fd, const char *path, struct str *out, struct error *err)
{
    char piece[4096];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof piece);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_errno(err, ERR_MACHINE, "%s", path);
        if (n == 0)
            return 0;
        str_add(out, piece, (size_t)n);
        if (out->truncated)
            return err_set(err, ERR_MACHINE, "%s: larger than %zu bytes", path, out->ceiling);
    }
}

int file_read(const char *path, struct str *out, struct error *err)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return err_errno(err, errno == ENOENT ? ERR_NOT_FOUND : ERR_MACHINE, "%s", path);
    int result = read_all(fd, path, out, err);
    close(fd);
    return result;
}

static int write_all(int fd, const char *bytes, size_t length)
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

int file_write(const char *path, const void *bytes, size_t length, int mode, struct error *err)
{
    char temporary[RM_URI_MAX + 16];
    int n = snprintf(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
    if (n < 0 || (size_t)n >= sizeof temporary)
        return err_set(err, ERR_MACHINE, "%s: the path is too long", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, (mode_t)mode);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "%s", temporary);
    bool written = write_all(fd, bytes, length) == 0;
    written = close(fd) == 0 && written;
    if (written && rename(temporary, path) == 0)
        return 0;
    err_errno(err, ERR_MACHINE, "%s", path);
    unlink(temporary);
    return -1;
}

int file_sibling(const char *name, char *out, size_t size, struct error *err)
{
    char own[RM_URI_MAX];
    ssize_t n = readlink("/proc/self/exe", own, sizeof own - 1);
    if (n < 0)
        return err_errno(err, ERR_MACHINE, "cannot find this program's own path");
    own[n] = 0;
    char *slash = strrchr(own, '/');
    int folder = slash ? (int)(slash - own) : 0;
    int length = snprintf(out, size, "%.*s/%s", folder, own, name);
    if (length < 0 || (size_t)length >= size)
        return err_set(err, ERR_MACHINE, "%s: the path is too long", own);
    return 0;
}

void file_folder_empty(int folder_fd)
{
    int own = dup(folder_fd);
    DIR *entries = own < 0 ? NULL : fdopendir(own);
    if (!entries) {
        if (own >= 0)
            close(own);
        return;
    }
    rewinddir(entries);
    for (struct dirent *entry; (entry = readdir(entries));)
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(folder_fd, entry->d_name, 0);
    closedir(entries);
}

int file_memory(int *ret_fd, const char *name, uint64_t bytes, struct error *err)
{
    int fd = memfd_create(name, MFD_CLOEXEC);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "cannot make a memory file");
    if (bytes && ftruncate(fd, (off_t)bytes) < 0) {
        err_errno(err, ERR_MACHINE, "cannot make a memory file of %llu bytes", (unsigned long long)bytes);
        close(fd);
        return -1;
    }
    *ret_fd = fd;
    return 0;
}
