/* Reads a published checkpoint back on a thread of lowest priority, and deletes what it replaces. */
#include "agent/storage/worker_settle.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "common/os/log.h"
#include "common/os/priority.h"
#include "common/storage/checkpoint/checkpoint.h"
#include "common/storage/checkpoint/owner.h"
#include "common/storage/checkpoint/place.h"

/* What one thread has: its own, but for whoever may give it up. The last of the two frees it. */
struct reading {
    atomic_int holders, cancel;
    struct object_store *place;
    struct checkpoint_settling settling;
    char run[OWNER_RUN_MAX];
};

struct worker_settle {
    const struct job_spec *spec;
    char run[OWNER_RUN_MAX];
    struct reading *reading; /* the newest; NULL: none */
};

static atomic_int at_work; /* threads */

static void reading_drop(struct reading *r)
{
    if (!r || atomic_fetch_sub(&r->holders, 1) > 1)
        return;
    object_free(r->place);
    free(r);
}

static void *reading_main(void *arg)
{
    struct reading *r = arg;
    struct error err = {0};
    priority_lowest();
    int result = checkpoint_settle(&r->settling, &err);
    if (result < 0 && !atomic_load(&r->cancel))
        log_warn("older checkpoints stay", "why=\"%s\"", err.text);
    reading_drop(r);
    atomic_fetch_sub(&at_work, 1);
    return NULL;
}

/* NULL: no memory, or no place. */
static struct reading *reading_open(const struct worker_settle *settle, int64_t step)
{
    struct reading *r = calloc(1, sizeof *r);
    if (!r)
        return NULL;
    struct object_options options = {.cancel = &r->cancel, .connections = 1};
    if (place_open_watched(&r->place, settle->spec, &options, NULL) < 0) {
        free(r);
        return NULL;
    }
    text_copy(r->run, sizeof r->run, settle->run);
    r->settling = (struct checkpoint_settling){
        .store = r->place, .run = r->run, .step = step, .keep = settle->spec->checkpoint.keep};
    atomic_store(&r->holders, 2);
    return r;
}

struct worker_settle *worker_settle_open(const struct job_spec *spec, const char *run)
{
    struct worker_settle *settle = calloc(1, sizeof *settle);
    if (!settle)
        return NULL;
    settle->spec = spec;
    text_copy(settle->run, sizeof settle->run, run);
    return settle;
}

void worker_settle_begin(struct worker_settle *settle, int64_t step)
{
    pthread_t thread;
    worker_settle_stop(settle);
    struct reading *r = reading_open(settle, step);
    if (!r)
        return;
    settle->reading = r;
    atomic_fetch_add(&at_work, 1);
    if (pthread_create(&thread, NULL, reading_main, r) == 0) {
        pthread_detach(thread);
        return;
    }
    atomic_fetch_sub(&at_work, 1);
    settle->reading = NULL;
    atomic_store(&r->holders, 1);
    reading_drop(r);
}

void worker_settle_stop(struct worker_settle *settle)
{
    if (!settle->reading)
        return;
    atomic_store(&settle->reading->cancel, 1);
    reading_drop(settle->reading);
    settle->reading = NULL;
}

void worker_settle_free(struct worker_settle *settle)
{
    if (!settle)
        return;
    worker_settle_stop(settle);
    free(settle);
}

bool worker_settle_goes_on(void)
{
    return atomic_load(&at_work) > 0;
}

void worker_settle_end_process(int code)
{
    if (!worker_settle_goes_on())
        return;
    fflush(NULL);
    _exit(code);
}
