/*
 * pause: a first process that does nothing but reap: of a pod's sandbox, and of a test cluster, whose
 * processes all end when it does. Ends with 0 at SIGTERM or SIGINT.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void end(int signum)
{
    (void)signum;
    _exit(0);
}

static void reap(int signum)
{
    (void)signum;
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
}

int main(void)
{
    struct sigaction ending = {.sa_handler = end};
    struct sigaction reaping = {.sa_handler = reap, .sa_flags = SA_NOCLDSTOP};

    sigaction(SIGINT, &ending, NULL);
    sigaction(SIGTERM, &ending, NULL);
    sigaction(SIGCHLD, &reaping, NULL);
    for (;;) {
        pause();
    }
}
