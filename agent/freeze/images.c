#include "agent/freeze/images.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/os/config.h"
#include "common/os/file.h"

int images_make(struct images *images, struct error *err)
{
    const char *base = config_get(CONFIG_POD_IMAGES);
    images_remove(images);
    snprintf(images->path, sizeof images->path, "%s/ringmaster-images-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(images->path))
        return err_errno(err, ERR_MACHINE, "can't make a folder for a snapshot's files in %.200s",
                         base ? base : "/tmp");
    images->fd = open(images->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (images->fd >= 0)
        return 0;
    rmdir(images->path);
    return err_errno(err, ERR_MACHINE, "can't open %.200s", images->path);
}

/* CRIU makes no folders in it. */
void images_remove(struct images *images)
{
    if (images->fd < 0)
        return;
    file_folder_empty(images->fd);
    close(images->fd);
    images->fd = -1;
    rmdir(images->path);
}
