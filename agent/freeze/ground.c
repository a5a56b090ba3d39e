#include "agent/freeze/ground.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>

#include "agent/freeze/images.h"
#include "agent/snapshot/core/processor.h"
#include "agent/snapshot/core/travel.h"
#include "agent/snapshot/process_tree.h"
#include "common/os/config.h"
#include "common/os/file.h"
#include "common/os/process.h"

enum { CPUINFO_MOST = 4 << 20 };

int ground_read(struct frozen_ground *ret, struct error *err)
{
    struct utsname name;
    struct str text = str_init(CPUINFO_MOST);
    const char *image = config_get(CONFIG_POD_IMAGE);
    const char *digest = image && strlen(image) >= sizeof ret->image ? strrchr(image, '@') : NULL;
    *ret = (struct frozen_ground){0};
    if (uname(&name) < 0)
        return err_errno(err, ERR_MACHINE, "what kind of machine this is");
    text_copy(ret->image, sizeof ret->image, digest ? digest : image ? image : "");
    text_copy(ret->machine, sizeof ret->machine, name.machine);
    text_copy(ret->kernel, sizeof ret->kernel, name.release);
    int result = file_read("/proc/cpuinfo", &text, err);
    if (result == 0 && !processor_features(str_text(&text), ret->features, sizeof ret->features))
        result = err_set(err, ERR_MACHINE, "/proc/cpuinfo does not tell what this processor can do");
    str_clear(&text);
    return result;
}

/* Of the path, or of what there is of the folders above it. */
static bool may_be_written(const char *path)
{
    char part[TRAVEL_PATH_MAX];
    struct statvfs disk;
    snprintf(part, sizeof part, "%s", path);
    while (statvfs(part, &disk) < 0) {
        char *slash = strrchr(part, '/');
        if (!slash || slash == part)
            return statvfs("/", &disk) < 0 || !(disk.f_flag & ST_RDONLY);
        *slash = 0;
    }
    return !(disk.f_flag & ST_RDONLY);
}

int ground_refuse_paths(const struct job_list *paths, struct error *err)
{
    for (const char *path = NULL; (path = job_list_next(paths, path));) {
        if (travel_refuse_path(path, images_base(), err) < 0)
            return -1;
        if (!may_be_written(path))
            return err_set(
                err, ERR_USAGE,
                "spec.checkpoint.processPaths has %.80s, where nothing can be written; leave it out", path);
    }
    return 0;
}

int64_t ground_memory(long pid)
{
    struct process_tree *tree = malloc(sizeof *tree);
    int64_t bytes = -1;
    if (tree && process_tree_read(pid, tree, NULL) == 0) {
        bytes = 0;
        for (int i = 0; i < tree->count; i++)
            bytes += process_resident(tree->pids[i]);
    }
    free(tree);
    return bytes;
}
