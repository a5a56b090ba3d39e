/* What is done about a fault: one table of where it happened and whose it is (common/base/fault_class.h).
 *
 * Each row says what is done with the worker that told it, while others can do what it can't, when nobody
 * can, and when all say the same; and each has its bound, so that nothing waits for ever that would end with
 * a clear exit. Who waits is asked again after 1, 2, 4 .. 30 s. Pure. docs/protocol.md prints the table. */
#ifndef RM_COORDINATOR_RDZV_FAULT_H
#define RM_COORDINATOR_RDZV_FAULT_H

#include <stdbool.h>

#include "common/base/fault_class.h"
#include "common/base/str.h"
#include "common/base/time.h"

enum fault_where {
    FAULT_IN_LIST,  /* naming the checkpoints */
    FAULT_IN_LOAD,  /* reading one */
    FAULT_IN_SAVE,  /* writing the one that all stand still for */
    FAULT_IN_SLICE, /* writing one while training goes on */
    FAULT_IN_WORK,  /* the trainer: its data, its memory, its machine */
    FAULT_PLACES
};

enum fault_remedy {
    FAULT_WAITS,      /* it is asked again after `pause` */
    FAULT_ANOTHER,    /* another worker does it, at once; this one after `pause` */
    FAULT_LEAVES_OUT, /* this worker takes no part any more; another machine may under its index */
    FAULT_REFUSES,    /* the checkpoint is damaged, and an older one is taken */
    FAULT_ENDS,       /* the job, with `exit_code` */
};

struct fault_facts {
    enum fault_where where;
    enum fault_class class;
    bool person;       /* somebody has to set it right */
    bool first;        /* of a `run` that has not made a step yet */
    bool unsupervised; /* pods */
    bool others_can;   /* enough are left without those who can't either */
    bool scarce;       /* others can, but without this one fewer than min are left */
    bool all_say_so;   /* the same sentence from all, or from min workers with no step between */
    bool proven;       /* CLASS_OBJECT: two workers saw it, or there is only one that can see it */
    bool refused;      /* FAULT_IN_WORK: by a trainer of a program that nobody has trained with yet */
    int times;         /* in a row, this one included */
    rm_time lasted;    /* since the first of them */
    rm_time patience;  /* of a run in which nobody can; in pods with one that is scarce */
    int exit_code;     /* as told; 0 unknown */
};

struct fault_decision {
    enum fault_remedy remedy;
    rm_time pause;
    int exit_code;
};

#define FAULT_PATIENCE (30 * RM_S) /* with one while others can */

struct fault_decision fault_decide(const struct fault_facts *f);
rm_time fault_pause(int times); /* 1, 2, 4 .. 30 s */

void fault_print_table(struct str *out); /* as the Markdown of docs/protocol.md */

#endif
