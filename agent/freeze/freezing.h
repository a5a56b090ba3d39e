/* Snapshots of one program's tree of processes: made and brought back by ringmaster-snapshot
 * (agent/snapshot), kept in the store (common/storage/checkpoint/frozen.h). One thing at a time; each of the
 * calls that begin one is answered by its callback once, from the loop.
 *
 * A number is published once. Who finds that somebody else has published its own has been followed: it
 * publishes nothing more.
 *
 * Fault points: frozen-dumped, frozen-fetched; and those of the store. */
#ifndef RM_FREEZE_FREEZING_H
#define RM_FREEZE_FREEZING_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/freeze/core/freeze_cost.h"
#include "common/base/error.h"
#include "common/base/str.h"
#include "common/job/spec.h"
#include "common/loop/loop.h"

struct freezing;

/* What a snapshot came to. */
struct freezing_made {
    bool ok;   /* it is published */
    bool more; /* another one was asked for meanwhile, and follows: that one is the answer */
    int64_t number, bytes;
    rm_time frozen, took; /* frozen: also of one that was not published */
    const char *why;      /* why it is not; "": it is, or nobody needs to be told. Borrowed for the call */
};

/* What came of what there was. */
struct freezing_back {
    long pid;       /* of the tree's root, now this process's child; 0: there is none, begin from nothing */
    int64_t number; /* that it lives from */
    rm_time took;
    const struct error *why; /* NULL, or: it could not be brought back */
};

struct freezing_options {
    const struct job_spec *spec; /* outlives it */
    const uint8_t *key;          /* of the job (JOB_KEY_BYTES); for the call */
    const uint8_t *older;        /* likewise, of the job whose snapshots it goes on from; NULL: none */
    /* Snapshots work here, and what is in the store is this job's and can live here; else why not. */
    void (*ready)(void *ctx, const struct error *why);
    void (*back)(void *ctx, const struct freezing_back *back);
    void (*made)(void *ctx, const struct freezing_made *made);
    void *ctx;
};

/* Refuses where ringmaster-snapshot is not there. */
int freezing_open(struct freezing **ret, struct loop *loop, const struct freezing_options *options,
                  struct error *err);
/* Answered by `ready`: a small process is frozen and lives again, and the store is looked at. */
void freezing_probe(struct freezing *f);
/* Answered by `back`: the newest that is whole. out: what it gets as standard output and standard error; the
 * caller closes them once it was answered. */
void freezing_bring_back(struct freezing *f, const int out[2]);
/* Answered by `made`. last: the tree ends with it. Asked for while another snapshot is made, that one is
 * given up where it can be. within: RM_NEVER for one that has time. */
void freezing_make(struct freezing *f, long pid, bool last, rm_time within);
/* What is under way ends soon, and is answered as it is then. */
void freezing_give_up(struct freezing *f);
/* What it has started ends at once; what goes to the store goes on. */
void freezing_end_tool(struct freezing *f);
bool freezing_is_idle(const struct freezing *f);
/* Of the program that it has started at the moment; 0: none. Its end is waited for here. */
long freezing_pid(const struct freezing *f);
/* A process that is brought back becomes a child before it is told of. */
bool freezing_brings_back(const struct freezing *f);
/* The time until the next one, where that follows from what the last one cost; 0: it does not. */
rm_time freezing_every(const struct freezing *f);
void freezing_free(struct freezing *f);

#endif
