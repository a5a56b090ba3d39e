#include "agent/launch/high_pids.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/snapshot/process_tree.h"

static void *nothing(void *ret_number)
{
    *(long *)ret_number = gettid();
    return NULL;
}

/* A thread's number is one of the same row. */
void high_pids_begin(long beyond)
{
    long number = 0, last = beyond < HIGH_PIDS_FROM ? HIGH_PIDS_FROM - 1 : beyond;
    last = last < HIGH_PIDS_MOST ? last : HIGH_PIDS_MOST;
    for (long tries = 0; number < last && tries < 2 * last; tries++) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, nothing, &number) != 0)
            return; /* it may live again all the same */
        pthread_join(thread, NULL);
    }
}

long high_pids_of(long root)
{
    struct process_tree *tree = malloc(sizeof *tree);
    long highest = root;
    if (tree && process_tree_read(root, tree, NULL) == 0)
        for (int i = 0; i < tree->count; i++)
            highest = tree->pids[i] > highest ? tree->pids[i] : highest;
    free(tree);
    return highest;
}
