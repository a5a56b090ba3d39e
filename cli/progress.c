#include "cli/progress.h"

#include <stdio.h>

#include "common/os/clock.h"

void progress_moved(void *progress, int64_t bytes)
{
    struct progress *p = progress;
    rm_time now = clock_now();
    p->moved += bytes;
    if (!p->terminal || !p->what || now - p->drawn < 100 * RM_MS)
        return;
    p->drawn = now;
    double seconds = (double)(now - p->begin) / RM_S,
           percent = p->all ? 100.0 * (double)p->moved / (double)p->all : 0;
    fprintf(stderr, "\r\033[K%s  %3.0f %%  %.0f MB/s", p->what, percent < 100 ? percent : 100,
            seconds > 0 ? (double)p->moved / 1e6 / seconds : 0);
}

void progress_begin(struct progress *p, const char *what, int64_t all)
{
    *p = (struct progress){.terminal = p->terminal, .what = what, .all = all, .begin = clock_now()};
}

void progress_end(struct progress *p)
{
    if (p->drawn)
        fputs("\r\033[K", stderr);
    p->what = NULL;
}
