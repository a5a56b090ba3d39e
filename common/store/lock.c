#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/uri.h"
#include "common/store/checkpoint.h"

static int make_folder(const char *path, struct error *err)
{
    char part[RM_URI_MAX];
    text_copy(part, sizeof part, path);
    for (char *at = part + 1;; at++) {
        char here = *at;
        if (here && here != '/')
            continue;
        *at = 0;
        if (mkdir(part, 0777) < 0 && errno != EEXIST)
            return err_errno(err, ERR_MACHINE, "checkpoints %s: the folder can't be made", part);
        if (!here)
            return 0;
        *at = here;
    }
}

int checkpoint_lock(struct object_store *store, int *ret_fd, struct error *err)
{
    char path[RM_URI_MAX], file[RM_URI_MAX + 8];
    if (uri_path(object_uri(store), path, sizeof path, err) < 0)
        return err_wrap(err, "checkpoint");
    if (make_folder(path, err) < 0)
        return -1;
    snprintf(file, sizeof file, "%s/.lock", path);
    int fd = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0)
        return err_errno(err, ERR_MACHINE, "checkpoints %s", file);
    if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        *ret_fd = fd;
        return 0;
    }
    if (errno == EWOULDBLOCK)
        err_set(err, ERR_MACHINE,
                "checkpoints %s: another run uses this folder; wait for its end, or use another folder",
                path);
    else
        err_errno(err, ERR_MACHINE, "checkpoints %s can't be locked", path);
    close(fd);
    return -1;
}
