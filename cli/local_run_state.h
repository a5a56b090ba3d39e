/* Shared by local_run.c (the run's life), local_run_process.c (starting and ending processes) and tell.c (its
 * own events); nobody else includes this. */
#ifndef RM_CLI_LOCAL_RUN_STATE_H
#define RM_CLI_LOCAL_RUN_STATE_H

#include "cli/core/supervisor.h"
#include "cli/local_run.h"
#include "common/loop/loop.h"
#include "common/loop/stream.h"
#include "common/wire/command.h"

struct local_run;

/* The newest of each that a coordinator told, -1 none; lost_at: when it died, 0 while it lives. */
struct local_run_told {
    int64_t step, evaluated, saved;
    rm_time lost_at;
    int64_t spent_at, spent[EVENT_SPENT]; /* 0: not told yet */
    int64_t saves[EVENT_SAVES];           /* saves[0] -1: not told */
};

struct local_run_worker {
    struct local_run *run;
    int worker;
    struct loop_child *child;     /* NULL: not running */
    bool stopped;                 /* a drill stopped its agent */
    int64_t stopped_launcher;     /* a drill stopped it with its agent; 0: none */
    int64_t trainer_pid;          /* as of the newest ring; 0: not known or killed */
    char refused[EVENT_TEXT_MAX]; /* why the coordinator sent it away; "": it did not */
};

struct local_run {
    const struct local_run_options *options;
    const struct job_spec *spec;
    struct console *console;
    struct loop *loop;
    struct loop_timer *patience; /* ends what does not end by itself */
    struct loop_timer *watch;    /* every heartbeat: has the coordinator said a word? */
    struct loop_timer *drill_timer;
    rm_time first_ring_at; /* from when timed drills count; 0: no ring was formed yet */
    struct loop_signal *signals[3];
    struct supervisor supervisor;
    struct local_run_worker worker[RM_WORKERS_MAX];

    struct loop_child *coordinator; /* NULL: not running */
    int64_t term;                   /* of the newest coordinator */
    bool coordinator_drilled;       /* killed on order: no failure */
    int coordinator_failures;
    struct local_run_told told; /* what its successor has to know */
    char saved_uri[RM_URI_MAX];
    int64_t ring_term, ring_generation;
    int silent;      /* heartbeats without a word from it; -1 until it listens */
    struct str acts; /* `act` lines that no coordinator may have read */
    rm_time coordinator_ended_at;
    int coordinator_code;
    char coordinator_how[48]; /* "signal 9" once it has ended; "" before and once that was judged */
    struct stream *commands;  /* to its standard input */
    struct lines *events;     /* from its standard output; NULL once it has ended */
    struct lines *errors;     /* what all children write to standard error; NULL once they all have ended */
    char address[RM_ADDRESS_MAX]; /* "" until it listens */

    int spec_fd, key_fd;
    char spec_path[64], key_path[64];
    int idle_in, idle_keep; /* a pipe nobody writes to: the workers' standard input, and its other end */
    int errors_out;         /* the writing end of `errors`, for children; -1 once no more are started */

    bool resumed_told;
    bool reported; /* a program of mode Restart has said in this generation how far it is */
    int refused;   /* checkpoints that could not be loaded */
    struct checkpoint_skipped refuse[CHECKPOINT_SKIPPED_MAX];

    bool interrupted; /* a person asked for the end */
    rm_time interrupted_at;
    bool killing; /* everything gets SIGKILL */
    /* Set where this program, not the coordinator, decided that the run failed. */
    int own_exit_code;
    char own_why[EVENT_TEXT_MAX];
    bool own_is_vague; /* it says who ended and not of what: the coordinator may know more */
};

/* --- local_run_process.c --- */
int local_run_open(struct local_run *run, struct error *err);
void local_run_close(struct local_run *run);
int local_run_start_coordinator(struct local_run *run, struct error *err);
int local_run_start_worker(struct local_run *run, int worker,
                           struct error *err);                   /* counted in the supervisor already */
void local_run_command(struct local_run *run, const char *line); /* with its newline */
void local_run_tell(struct local_run *run, const struct command *command);
void local_run_act(struct local_run *run,
                   const struct command *command); /* one that a successor must hear too */
void local_run_expect(struct local_run *run);
void local_run_kill_all(struct local_run *run);
void local_run_no_more_children(struct local_run *run);

/* --- callbacks of local_run_process.c into local_run.c --- */
void local_run_event_line(void *ctx, char *text, size_t length);
void local_run_error_line(void *ctx, char *text, size_t length);
void local_run_coordinator_exited(void *ctx, int code, int signal);
void local_run_worker_exited(void *ctx, int code, int signal);
void local_run_check_end(struct local_run *run);

/* --- tell.c: the events that run itself tells --- */
void tell_started(struct local_run *run);
/* What run itself found damaged before it began, to a person. */
void say_skipped(struct local_run *run);
/* Before each event of the coordinator's: what the run goes on from is known when its first ring trains, as a
 * checkpoint may turn out to be damaged while it is loaded. */
void tell_resumed(struct local_run *run, const struct event *event);
void tell_drill(struct local_run *run, const struct drill *drill, int64_t step);
void tell_failed(struct local_run *run, const char *reason, int exit_code);
void tell_complete_again(struct console *console, const struct prepared *prepared);

#endif
