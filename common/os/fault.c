/* Reads RINGMASTER_FAULT, counts how often each named point is reached, and does there what the setting
 * says. Called by the macros of fault.h alone; all of it is absent from a release. */
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
#include <sys/socket.h>
#include <sys/un.h>
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
    pid_t first;        /* who is told of strikes: this process, or one that it comes from */
    int strikes;        /* its socket */
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

/* --- who is told of a strike --- */

/* A socket is neither the process's memory nor a file: a process that is not to be looked into has neither
 * for others, and one that is killed would leave the file behind. */
static struct sockaddr_un strikes_address(const char *name)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    text_copy(address.sun_path + 1, sizeof address.sun_path - 1, name);
    return address;
}

static void strikes_say_none(void)
{
    char one;
    if (fault.first == getpid() && recv(fault.strikes, &one, 1, MSG_DONTWAIT) < 0)
        dprintf(STDERR_FILENO, "RINGMASTER_FAULT: no process got to %s%s for the time that was asked for\n",
                fault.name, fault.wanted ? ", nobody of that number or name" : "");
}

/* Of this process and of all that come from it. */
static void strikes_hear(void)
{
    char name[24];
    snprintf(name, sizeof name, "fault-%d", (int)getpid());
    struct sockaddr_un address = strikes_address(name);
    fault.strikes = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (bind(fault.strikes, (const struct sockaddr *)&address, sizeof address) < 0)
        return;
    config_set(CONFIG_FAULT_TOLD, name);
    fault.first = getpid();
    atexit(strikes_say_none);
}

static void tell_strike(const char *name)
{
    const char *first = config_get(CONFIG_FAULT_TOLD);
    struct sockaddr_un address = strikes_address(first ? first : "");
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    dprintf(STDERR_FILENO, "fault point %s\n", name);
    sendto(fd, "", 1, MSG_DONTWAIT, (const struct sockaddr *)&address, sizeof address);
    close(fd);
}

/* --- the setting --- */

/* A typo would let a test pass that tries nothing. */
static void refuse_setting(const char *text)
{
    dprintf(STDERR_FILENO,
            "RINGMASTER_FAULT is \"%s\"; write NAME[:N][@WHO][/stop or /hangs or /flips or /fails[-TIMES]], "
            "numbers from 1 on\n",
            text);
    abort();
}

/* A whole number from 1 on; 0: it is none. */
static long number_from_1(const char *text)
{
    char *end;
    long number = strtol(text, &end, 10);
    return end != text && !*end && number >= 1 ? number : 0;
}

static bool read_manner(const char *manner)
{
    fault.signal = !strcmp(manner, "stop") ? SIGSTOP : !strcmp(manner, "hangs") ? HANGS : 0;
    fault.fails = LONG_MAX;
    if (!strcmp(manner, "flips"))
        fault.signal = FLIPS;
    else if (!strncmp(manner, "fails-", 6))
        fault.fails = number_from_1(manner + 6);
    else if (!fault.signal && strcmp(manner, "fails") != 0)
        return false;
    return fault.fails > 0;
}

/* NAME[:N][@WHO][/stop or /hangs or /flips or /fails[-TIMES]] */
static void read_setting(void)
{
    const char *text = config_get(CONFIG_FAULT);
    bool good = true;
    fault.reader = getpid();
    fault.armed = text;
    fault.wanted = NULL;
    if (!text)
        return;
    good = text_copy(fault.name, sizeof fault.name, text);
    fault.times = 1;
    fault.signal = SIGKILL;
    char *slash = strchr(fault.name, '/');
    if (slash) {
        *slash = 0;
        good = good && read_manner(slash + 1);
    }
    char *at = strchr(fault.name, '@');
    if (at) {
        *at = 0;
        fault.wanted = at + 1;
    }
    char *colon = strchr(fault.name, ':');
    if (colon) {
        *colon = 0;
        fault.times = number_from_1(colon + 1);
    }
    if (!good || !fault.times || !*fault.name || (at && !at[1]))
        refuse_setting(text);
    if (!config_get(CONFIG_FAULT_TOLD))
        strikes_hear();
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
    tell_strike(name);
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
    tell_strike(name);
    ((unsigned char *)bytes)[count / 2] ^= 0x10;
}

void fault_point(const char *name)
{
    pthread_mutex_lock(&fault.lock);
    bool here = is_meant(name) && fault.signal && fault.signal != FLIPS && --fault.times == 0;
    pthread_mutex_unlock(&fault.lock);
    if (!here)
        return;
    tell_strike(name);
    while (fault.signal == HANGS)
        pause();
    raise(fault.signal);
}
#endif
