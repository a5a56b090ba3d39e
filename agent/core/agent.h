/* The agent's mind: how one worker's trainer lives, and what it and the coordinator hear of each other.
 *
 * Pure: agent_step takes one event and the time and fills *out with actions in order; the shell (agent/app.c)
 * owns the sockets, the child process, the memfds and the store threads. No I/O, no clock, no chance, no
 * allocation. After each step arm one timer for agent_deadline and deliver AGENT_TICK.
 *
 * The trainer's state memfd outlives it: a dead trainer is replaced at once by another one on the same
 * memory, and the worker says hello again with what that one holds. The connection to the coordinator may
 * break: the agent tries again (AGENT_CONNECT) until lost_after has passed, then the coordinator counts as
 * lost: the trainer is ended and the agent exits 4 naming the newest published checkpoint. A message of a
 * lower term than one obeyed before is ignored, and so is a form of an older generation.
 *
 * A trainer that starts says with each heartbeat that it lives, however long its data, its memory or its
 * program's modules take before it is up; a launcher likewise. One that says nothing for a minute stands
 * still and is killed, and the next one starts; where that happens twice in a row it is a fault of this
 * machine.
 *
 * What the store does not take (a slice, a manifest) waits and is tried again with growing pauses, until it
 * works, the trainer needs the memory for a newer state, or the run ends. One slice waits at a time.
 *
 * A call to the store that shows no sign of getting on for half a minute (for two, where it writes: a flush
 * shows none) is told as a fault of this machine, again every 10 s; nobody vouches for the trainer that waits
 * for it any more, and a released agent does not wait for it. Nor does it wait for any where the run is over.
 *
 * Where a program's processes may live again elsewhere (agent_fence) they stand still while no coordinator
 * answers, and go on with the next answer (fence.h). There each heartbeat is answered, so a connection on
 * which nothing has come for as long is hung up: the next one may reach somebody.
 *
 * Told to leave more than once, by SIGTERM and by notices of its machine's end, it names the nearest
 * deadline. Only that of SIGTERM, behind which comes SIGKILL, ends it by itself. Who is told by notices with
 * their moments alone trains on: the coordinator says when it is time. That is over with SIGTERM, and a
 * notice that is withdrawn before that time is no leave.
 *
 * What the shell adds: nonce and proof of `hello`, key and spec of `setup`, pids. It hands in coordinator
 * messages only after `welcome` was verified (AGENT_CONNECTED is delivered when `challenge` has come: the
 * core answers with hello; the shell verifies welcome and hands it in like any other message; a wrong proof
 * is AGENT_REFUSED). */
#ifndef RM_AGENT_CORE_H
#define RM_AGENT_CORE_H

#include "common/notice/notice.h"
#include "common/wire/message.h"

struct agent_settings {
    char job[64];
    int worker, attempt;
    uint64_t incarnation; /* random, from the shell */
    int64_t agent_pid;
    char machine[MSG_MACHINE_MAX];   /* on which it runs, by its cluster's name; "" not known */
    rm_time heartbeat, lost_after;   /* ns; lost_after RM_NEVER: the coordinator may stay away */
    char checkpoint_uri[RM_URI_MAX]; /* for sentences */
    bool awaits_job;                 /* what the job is comes with the first welcome: agent_learn */
    bool launcher;                   /* what it keeps is one, no trainer */
    rm_time up_within; /* so long one that starts may say nothing at all before its first `up`; 0: a minute */
    /* How long to wait before another try to connect: doubled from first to most, and spread so that many
     * agents do not come at once. Both 0: 20 to 100 ms as they are. */
    rm_time retry_first, retry_most;
};

enum agent_event_kind {
    AGENT_START,
    AGENT_CONNECTED,    /* challenge has come: say hello */
    AGENT_DISCONNECTED, /* also: an attempt to connect failed */
    AGENT_REFUSED,      /* welcome's proof is wrong: someone else's coordinator; text */
    AGENT_CONTROL,      /* message from the coordinator */
    AGENT_LINK,         /* message from the trainer */
    AGENT_TRAINER_EXIT, /* text: "killed by signal 9"; code: its exit code, or -1 by a signal */
    AGENT_TERM,         /* SIGTERM: leave; deadline (ns from now, 0 unknown): not released by then, it ends */
    AGENT_NOTICE,       /* its machine will go: leave; text: who says so, deadline (ns from now, 0 unknown) */
    AGENT_NOTICED,      /* what all notices of its machine's end come to now is `notice`: to be told; where
                           that is no `will`, no notice is a reason to leave any more */
    AGENT_LISTED,       /* ok, message->checkpoints (borrowed), or text */
    AGENT_LOADED,       /* ok, message->loaded (borrowed): it lies there; else step and text, or given_up */
    AGENT_WRITTEN,      /* ok, message->checkpointed (borrowed); else step and text */
    AGENT_PUBLISHED,    /* ok, message->published (borrowed); else step and text */
    AGENT_TICK,
};

struct agent_event {
    enum agent_event_kind kind;
    const struct message *message;   /* borrowed for the call; NULL where the kind has none */
    bool ok;                         /* of store work */
    bool again;                      /* of store work that failed: it may work later */
    bool given_up;                   /* of store work: it was told to */
    int64_t step;                    /* of store work that failed */
    bool final;                      /* of store work that failed */
    enum fault_class class;          /* of store work that failed: see common/base/error.h */
    bool person;                     /* of store work that failed */
    int exit_code;                   /* of store work that failed: error_exit_code of it, 0 unknown */
    int code;                        /* AGENT_TRAINER_EXIT */
    const struct notice *notice;     /* AGENT_NOTICED: borrowed for the call; NULL: nothing stands any more */
    rm_time deadline;                /* AGENT_TERM, AGENT_NOTICE */
    int64_t read_signs, write_signs; /* another number than before: that store work gets on */
    char text[MSG_DETAIL_MAX];
};

enum agent_action_kind {
    AGENT_CONNECT,      /* to the coordinator; answered by CONNECTED or DISCONNECTED */
    AGENT_HANG_UP,      /* end that connection; answered by DISCONNECTED */
    AGENT_SEND_CONTROL, /* message, to the coordinator; dropped by the shell where there is no connection */
    AGENT_SEND_LINK,    /* message, to the trainer */
    AGENT_SPAWN,        /* start a trainer; `setup` follows as SEND_LINK */
    AGENT_KILL,         /* SIGKILL to the trainer; answered by TRAINER_EXIT */
    AGENT_LIST,         /* message is a `list`: name the checkpoints; answered by LISTED */
    AGENT_LOAD,         /* message is the `load`: read those shares, verified; answered by LOADED */
    AGENT_LOAD_STOP,    /* give the load under way up; it is answered by LOADED all the same */
    AGENT_WRITE,        /* message is the `snapshot`: write that slice; answered by WRITTEN */
    AGENT_PUBLISH,      /* message is the `publish`; answered by PUBLISHED */
    AGENT_YIELD,        /* the memory of the slice under way is needed: give that up if the store is away */
    AGENT_EXIT,         /* exit_code, text ("" for 0): end the trainer if there is one, then the process */
};

struct agent_action {
    enum agent_action_kind kind;
    int exit_code;
    const char *text;
    struct message *message;
};

/* No step makes more (tests/unit/agent/core/agent_test.c): everything that is kept, said again; and one
 * message of each large kind. */
enum {
    AGENT_ACTIONS_MAX = 160,
    AGENT_BODIES_MAX = AGENT_ACTIONS_MAX * 256 +
                       2 * (int)(sizeof(struct msg_publish) + sizeof(struct msg_form)) +
                       (int)sizeof(struct msg_setup) + 16 * 1024,
};

/* The actions of one step, in order. What they point to lies in `bodies` and is void when the next step
 * begins: whoever needs it longer copies it (message_copy). It points into itself: allocate it once, and do
 * not copy it. It needs no more than to be there before the first step. */
struct agent_out {
    int count;
    struct agent_action action[AGENT_ACTIONS_MAX];
    struct arena arena; /* over bodies, which it aligns by lying before them */
    unsigned char bodies[AGENT_BODIES_MAX];
};

struct agent;

struct agent *agent_open(const struct agent_settings *settings); /* heap; the only allocation */
void agent_free(struct agent *st);
/* What the job says is handed in, before the welcome that brought it, where awaits_job is set. The trainer is
 * started then. */
void agent_learn(struct agent *st, const char *job, const char *checkpoint_uri, rm_time heartbeat,
                 bool launcher);
/* From now on what the launcher runs stands still where no coordinator has answered for so long (fence.h). */
void agent_fence(struct agent *st, rm_time after, rm_time now);
/* What the store work failed by: text, class, person and exit code. */
void agent_event_blame(struct agent_event *event, const struct error *err);
bool agent_is_leaving(const struct agent *st);
/* It was let go while the run goes on, and nothing that it was to write is under way. */
bool agent_has_left(const struct agent *st);
bool agent_fits_elsewhere(const struct agent *st); /* it was refused for its machine alone */
void agent_step(struct agent *st, const struct agent_event *event, rm_time now, struct agent_out *out);
rm_time agent_deadline(const struct agent *st);

#endif
