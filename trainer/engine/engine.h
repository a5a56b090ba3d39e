/* What a trainer can do, one command at a time: the hands of the elastic core (trainer/core/elastic.h).
 *
 * An engine owns data, state, data port, ring, and who computes (trainer/backend/backend.h). engine_open and
 * engine_free are called on the thread that computes, engine_run on the thread of the command
 * (elastic_thread, elastic_thread_after), one command at a time; the functions marked "any thread" are for
 * the control thread while a command is under way. */
#ifndef RM_TRAINER_ENGINE_H
#define RM_TRAINER_ENGINE_H

#include <stdbool.h>

#include "common/job/spec.h"
#include "trainer/collective/handshake.h"
#include "trainer/core/elastic.h"

struct engine;
struct backend;
struct backend_options;
struct shelf;

/* Opens who computes, on the thread that computes. *ret is the caller's, ended by its ops->free; where it
 * fails nothing is left open. ERR_USAGE: options that it can't do; ERR_MACHINE: what the machine lacks. As
 * backend_cpu_open (trainer/backend/cpu/backend_cpu.h). */
typedef int engine_open_backend(struct backend **ret, const struct backend_options *options,
                                struct error *err);

struct engine_options {
    const struct job_spec *spec;   /* must outlive the engine */
    const struct msg_setup *setup; /* needed by engine_open only */
    int state_fd, snapshot_fd;     /* memfds, the caller's; sized here where they are empty; the second one
                                      is common/model/snapshot.h's */
    int data_fd;                   /* socket for data of an object store; unused for folders */
    int program_fd;                /* listens for the user's program, taken over; unused without one */
    const struct shelf
        *shelf; /* for memory that outlives this process (trainer/backend/backend.h); NULL: none */
    bool alone; /* no other worker of the job has a share in the CPUs that this one may use */
    void (*refused)(const char *why); /* a stranger at the data port; on another thread */
    engine_open_backend *backend;     /* NULL: what the job asks for */
};

/* Opens data (and hashes it, where setup does not bring the hash), model and state, repairs the state, and
 * listens on the data port. ERR_DATA: the data; others: the machine. */
int engine_open(struct engine **ret, const struct engine_options *options, struct error *err);
void engine_free(struct engine *e);

/* Fills the ELASTIC_OPENED event, with *ret_up as its message. */
void engine_opened(struct engine *e, struct message *ret_up, struct elastic_event *ret);

/* Who calls other trainers for this one, and how it is proven. */
void engine_identity(const struct engine *e, struct handshake_secret *ret_secret,
                     struct handshake_end *ret_self);

/* Does an ELASTIC_RUN action to its end. */
void engine_run(struct engine *e, const struct elastic_action *action, struct elastic_result *ret);

/* ---- any thread ---- */

/* Gives up the command under way on that thread soon, and the ring with it. */
void engine_abort(struct engine *e, enum elastic_thread thread);
/* Begins no further lane: CMD_LANES ends as if it were given up, and what was computed is kept. Where nothing
 * can be kept the lane under way is given up, too. CMD_LISTEN takes what has been committed, and ends. */
void engine_pause(struct engine *e);
/* Before a command is started: a former abort of that thread, or pause, is over, and of no other. Nothing may
 * be under way there. */
void engine_clear_abort(struct engine *e, enum elastic_thread thread);
/* How many words go round in a step. */
int64_t engine_words(const struct engine *e);
/* This and later steps carry the stop flag, until the next ring. */
void engine_raise_stop(struct engine *e);
/* In checkpoint.every's place, where that is Auto; else nothing happens. */
void engine_save_every(struct engine *e, rm_time every);
/* The next step asks all for a snapshot after it; steps do so until one was taken, or the next ring. */
void engine_raise_save(struct engine *e);
/* A drill: a bit of what this rank adds to the next sum of words changes, before it leaves. */
void engine_raise_corrupt(struct engine *e);

struct engine_pulse {
    int64_t counter; /* grows while anything moves, and while a reduction waits */
    int64_t bytes;   /* received in transfers; in a reduction, of this ring (tcp_ring.h) */
    int waiting_for; /* worker whose bytes the ring waits for, -1 none */
};
struct engine_pulse engine_pulse(struct engine *e);

/* From here until the command ends, a neighbour may rightly be done and gone before us. */
bool engine_exchanging(const struct engine *e);
/* It has ended, and what it means is known: from here on a neighbour's end is news again. */
void engine_exchange_over(struct engine *e);

/* The ring's descriptors to watch for a neighbour's end, and the neighbours' workers; only while no CONNECT
 * is under way. Returns how many. */
int engine_watch(struct engine *e, int fds[2], int workers[2]);

#endif
