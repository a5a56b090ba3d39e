/* What the files of the library share: one connection to a trainer. */
#ifndef RM_LIBRARY_JOB_H
#define RM_LIBRARY_JOB_H

#include "common/program/packets.h"
#include "trainer/library/image.h"
#include "trainer/library/ringmaster.h"

struct rm_job {
    int fd;
    int pid;    /* who connected */
    bool told;  /* READY was sent */
    bool asked; /* a NEXT is under way */
    bool added; /* the lane under way is done */
    bool over;  /* nothing more goes: END came (ended), or it failed */
    bool ended;
    uint32_t gradients;
    int64_t elements; /* of all gradients */
    struct image image;
    char *memory; /* shared, NULL before the first task */
    struct program_welcome welcome;
    struct program_task_packet task; /* under way: kind 0 before the first */
    double loss;
    char why[PROGRAM_TEXT_MAX + 256];
};

/* Keeps the sentence; -1. */
int job_refuse(struct rm_job *job, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Whether the job can be used at all by who calls; says why not. */
int job_check(struct rm_job *job);

/* That END came, and with which sentence. */
void job_keep_end(struct rm_job *job, const struct program_task_packet *task);

/* Whether END is among what lies there unread: an END may come unasked, and then nobody hears what is sent.
 */
bool job_ended(struct rm_job *job);

/* The trainer is gone: the sentence is its own last one, if it left any. -1. */
int job_lost(struct rm_job *job, const char *doing);

#endif
