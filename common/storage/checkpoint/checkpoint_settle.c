/* Reads back what has been published, from where it lies, before what is older goes for it. */
#include <stdlib.h>

#include "common/os/fault.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/files.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/standing.h"
#include "common/storage/checkpoint/verify.h"

int checkpoint_beyond(struct object_store *store, int64_t step, int keep)
{
    return standing_beyond(store, step, keep);
}

static int read_back(struct object_store *store, const char *name, struct error *err)
{
    struct manifest *m = malloc(sizeof *m);
    if (!m)
        return err_set(err, ERR_MACHINE, "out of memory");
    object_pass_caches(store, true);
    int result = files_manifest(store, name, m, err);
    if (result == 0)
        result = verify_all(store, name, m, NULL, err);
    object_pass_caches(store, false);
    free(m);
    return result;
}

int checkpoint_settle(const struct checkpoint_settling *s, struct error *err)
{
    char name[CHECKPOINT_NAME_MAX];
    checkpoint_name(name, s->step, false);
    if (!standing_beyond(s->store, s->step, s->keep))
        return 0;
    if (read_back(s->store, name, err) < 0)
        return err_wrap(err, "checkpoint %s of %s, read back before an older one goes", name,
                        object_uri(s->store));
    FAULT("read-back");
    if (s->run && owner_check(s->store, s->run, err) < 0)
        return -1;
    standing_remove(s->store, s->step, s->keep);
    return 1;
}
