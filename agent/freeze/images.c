#include "agent/freeze/images.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/os/config.h"
#include "common/os/file.h"

const char *images_base(void)
{
    const char *base = config_get(CONFIG_POD_IMAGES);
    return base ? base : "/tmp";
}

int images_make(struct images *images, struct error *err)
{
    images_remove(images);
    snprintf(images->path, sizeof images->path, "%s/ringmaster-images-XXXXXX", images_base());
    if (!mkdtemp(images->path))
        return err_errno(err, ERR_MACHINE, "can't make a folder for a snapshot's files in %.200s",
                         images_base());
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
