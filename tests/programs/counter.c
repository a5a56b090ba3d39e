/* Counts, and saves nothing: each number is a line of what it prints and of /tmp/log, which stays open. The
 * kernel's own timer says when, and a word of much memory counts along. At the end that memory has to be as
 * it left it, and RESULT is a copy of the log. counter UNTIL RESULT */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <unistd.h>

enum { WORDS = 1 << 22, EVERY_US = 50000, LINE_MAX_BYTES = 32 };

static uint64_t memory[WORDS];
static const char log_path[] = "/tmp/log";

static uint64_t pattern(long i)
{
    return ((uint64_t)i + 1) * 0x9e3779b97f4a7c15;
}

/* Waits for the timer between numbers: whoever lives again without it stands still. */
static int count(long until, int out, const sigset_t *tick)
{
    char line[LINE_MAX_BYTES];
    for (long number = 0; number < until; number++) {
        int signo = 0, length = snprintf(line, sizeof line, "%ld\n", number);
        if (write(out, line, (size_t)length) != length ||
            write(STDOUT_FILENO, line, (size_t)length) != length)
            return 4;
        memory[number % WORDS]++;
        if (sigwait(tick, &signo) != 0)
            return 5;
    }
    return 0;
}

static int look_through(long until)
{
    for (long i = 0; i < WORDS; i++) {
        uint64_t counted = (uint64_t)(until / WORDS + (i < until % WORDS));
        if (memory[i] != pattern(i) + counted)
            return 6;
    }
    return 0;
}

static int copy(const char *to)
{
    char part[4096];
    size_t length;
    FILE *in = fopen(log_path, "r"), *out = fopen(to, "w");
    if (!in || !out)
        return 7;
    while ((length = fread(part, 1, sizeof part, in)) > 0)
        if (fwrite(part, 1, length, out) != length)
            return 8;
    return ferror(in) || fclose(out) ? 9 : 0;
}

int main(int argc, char **argv)
{
    const struct itimerval often = {{0, EVERY_US}, {0, EVERY_US}};
    sigset_t tick;
    if (argc != 3)
        return 2;
    long until = strtol(argv[1], NULL, 10);
    for (long i = 0; i < WORDS; i++)
        memory[i] = pattern(i);
    int out = open(log_path, O_WRONLY | O_APPEND | O_CREAT | O_EXCL, 0666);
    if (out < 0)
        return 3;
    sigemptyset(&tick);
    sigaddset(&tick, SIGALRM);
    if (sigprocmask(SIG_BLOCK, &tick, NULL) != 0 || setitimer(ITIMER_REAL, &often, NULL) != 0)
        return 3;
    int result = count(until, out, &tick);
    if (result == 0)
        result = look_through(until);
    return result ? result : copy(argv[2]);
}
