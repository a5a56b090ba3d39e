#include "common/os/fault.h"

#ifdef RM_FAULTS
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/config.h"

enum { HANGS = -1, FLIPS = -2 };

static struct {
    pthread_mutex_t lock;
    pid_t reader; /* who read the setting: a forked child reads its own */
    bool armed, disarmed;
    int signal; /* 0: calls fail; HANGS: the thread that gets there moves no more; FLIPS: a bit changes */
    char name[64];
    long times, fails;
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

static int signal_of(const char *manner)
{
    if (!strncmp(manner, "fails", 5))
        return 0;
    if (!strcmp(manner, "flips"))
        return FLIPS;
    return strcmp(manner, "hangs") != 0 ? SIGSTOP : HANGS;
}

/* NAME[:N][@WHO][/stop or /hangs or /flips or /fails[-TIMES]] */
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
        fault.signal = signal_of(slash + 1);
        fault.fails = !fault.signal && slash[6] ? strtol(slash + 7, NULL, 10) : LONG_MAX;
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

static bool is_meant(const char *name)
{
    if (fault.reader != getpid())
        read_setting();
    return fault.armed && !fault.disarmed && !strcmp(name, fault.name) &&
           (!fault.wanted || !strcmp(fault.wanted, fault.who));
}

bool fault_fails(const char *name, int number)
{
    pthread_mutex_lock(&fault.lock);
    bool here = is_meant(name) && !fault.signal && --fault.times <= 0 && fault.fails-- > 0;
    pthread_mutex_unlock(&fault.lock);
    if (!here)
        return false;
    dprintf(STDERR_FILENO, "fault point %s\n", name);
    errno = number;
    return true;
}

void fault_flip(const char *name, void *bytes, size_t count)
{
    pthread_mutex_lock(&fault.lock);
    bool here = count && is_meant(name) && fault.signal == FLIPS && --fault.times == 0;
    pthread_mutex_unlock(&fault.lock);
    if (!here)
        return;
    dprintf(STDERR_FILENO, "fault point %s\n", name);
    ((unsigned char *)bytes)[count / 2] ^= 0x10;
}

void fault_point(const char *name)
{
    pthread_mutex_lock(&fault.lock);
    bool here = is_meant(name) && fault.signal && fault.signal != FLIPS && --fault.times == 0;
    pthread_mutex_unlock(&fault.lock);
    if (!here)
        return;
    dprintf(STDERR_FILENO, "fault point %s\n", name);
    while (fault.signal == HANGS)
        pause();
    raise(fault.signal);
}
#endif
