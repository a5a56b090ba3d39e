#include "common/os/config.h"

#include <stddef.h>
#include <stdlib.h>

static const char *const names[CONFIG_KEYS] = {
    [CONFIG_TRAINER] = "RINGMASTER_TRAINER", [CONFIG_TRAINER_ISA] = "RINGMASTER_TRAINER_ISA",
    [CONFIG_LOG] = "RINGMASTER_LOG",         [CONFIG_FAULT] = "RINGMASTER_FAULT",
    [CONFIG_NO_COLOR] = "NO_COLOR",
};

const char *config_get(enum config_key key)
{
    const char *value = getenv(names[key]);
    return value && *value ? value : NULL;
}
