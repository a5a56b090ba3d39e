#include "common/os/fault.h"

#ifdef RM_FAULTS
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/config.h"

static struct {
    pthread_mutex_t lock;
    pid_t reader; /* who read the setting: a forked child reads its own */
    bool armed, disarmed;
    int signal;
    char name[64];
    long times;
    char who[32];
    const char *wanted; /* NULL: anybody */
} fault = {.lock = PTHREAD_MUTEX_INITIALIZER};

void fault_who(const char *who)
{
    text_copy(fault.who, sizeof fault.who, who);
}

void fault_worker(int worker)
{
    snprintf(fault.who, sizeof fault.who, "%d", worker);
}

void fault_disarm(void)
{
    fault.disarmed = true;
}

/* NAME[:N][@WHO][/stop] */
static void read_setting(void)
{
    const char *text = config_get(CONFIG_FAULT);
    fault.reader = getpid();
    fault.armed = text;
    fault.wanted = NULL;
    if (!text)
        return;
    text_copy(fault.name, sizeof fault.name, text);
    fault.times = 1;
    fault.signal = SIGKILL;
    char *slash = strchr(fault.name, '/');
    if (slash) {
        *slash = 0;
        fault.signal = SIGSTOP;
    }
    char *at = strchr(fault.name, '@');
    if (at) {
        *at = 0;
        fault.wanted = at + 1;
    }
    char *colon = strchr(fault.name, ':');
    if (colon) {
        *colon = 0;
        fault.times = strtol(colon + 1, NULL, 10);
    }
}

void fault_point(const char *name)
{
    pthread_mutex_lock(&fault.lock);
    if (fault.reader != getpid())
        read_setting();
    bool here = fault.armed && !fault.disarmed && !strcmp(name, fault.name) &&
                (!fault.wanted || !strcmp(fault.wanted, fault.who)) && --fault.times == 0;
    pthread_mutex_unlock(&fault.lock);
    if (!here)
        return;
    dprintf(STDERR_FILENO, "fault point %s\n", name);
    raise(fault.signal);
}
#endif
