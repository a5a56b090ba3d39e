#include "agent/launch/high_pids.h"

#include <pthread.h>
#include <unistd.h>

static void *nothing(void *ret_number)
{
    *(long *)ret_number = gettid();
    return NULL;
}

/* A thread's number is one of the same row. */
void high_pids_begin(void)
{
    long number = 0;
    for (int tries = 0; number < HIGH_PIDS_FROM - 1 && tries < 2 * HIGH_PIDS_FROM; tries++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, &number) != 0)
            return; /* it may live again all the same */
        pthread_join(thread, NULL);
    }
}
