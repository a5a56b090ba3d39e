/* The folder that the files of one snapshot lie in on this disk, from the dump until they are sent, and from
 * the store until they live. RINGMASTER_POD_IMAGES says below which folder; else it is /tmp. */
#ifndef RM_FREEZE_IMAGES_H
#define RM_FREEZE_IMAGES_H

#include <limits.h>

#include "common/base/error.h"

struct images {
    int fd; /* -1: there is none */
    char path[PATH_MAX];
};

/* The folder that it is made in. */
const char *images_base(void);
/* An empty one, which only this user may read. */
int images_make(struct images *images, struct error *err);
/* With all that is in it; nothing happens where there is none. */
void images_remove(struct images *images);

#endif
