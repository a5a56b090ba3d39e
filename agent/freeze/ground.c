#include "agent/freeze/ground.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "agent/snapshot/core/processor.h"
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
