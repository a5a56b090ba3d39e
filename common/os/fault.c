#include "common/os/fault.h"

#ifdef RM_FAULTS
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/str.h"
#include "common/os/config.h"

static struct {
    pthread_mutex_t lock;
    bool read, armed;
    char name[64];
    long times;
    int worker, wanted;
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER, .worker = -1, .wanted = -1};

void fault_worker(int worker)
{
    fault.worker = worker;
}

void fault_disarm(void)
{
    fault.read = true;
    fault.armed = false;
}

/* NAME[:N][@WORKER] */
static void read_setting(void)
{
    const char *text = config_get(CONFIG_FAULT);
    fault.read = true;
    if (!text)
        return;
    text_copy(fault.name, sizeof fault.name, text);
    fault.times = 1;
    char *at = strchr(fault.name, '@');
    if (at) {
        *at = 0;
        fault.wanted = (int)strtol(at + 1, NULL, 10);
    }
    char *colon = strchr(fault.name, ':');
    if (colon) {
        *colon = 0;
        fault.times = strtol(colon + 1, NULL, 10);
    }
    fault.armed = true;
}

void fault_point(const char *name)
{
    pthread_mutex_lock(&fault.lock);
    if (!fault.read)
        read_setting();
    bool here = fault.armed && !strcmp(name, fault.name) &&
                (fault.wanted < 0 || fault.wanted == fault.worker) && --fault.times == 0;
    pthread_mutex_unlock(&fault.lock);
    if (here)
        raise(SIGKILL);
}
#endif
