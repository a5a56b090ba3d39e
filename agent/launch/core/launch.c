/* A launcher's states: CLEARING (something of a generation may live, or the port is not known yet), IDLE,
 * READY, RUNNING, FREEZING, STOPPING, DONE. What the agent says moves it forward, and each way back leads
 * over CLEARING. */
#include "agent/launch/core/launch.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

enum state {
    CLEARING, /* killed, or never started: waits for GONE, then for a port */
    IDLE,
    READY,
    RUNNING,
    FREEZING, /* a last snapshot is made: until that is over, or kill_at */
    STOPPING, /* SIGTERM was sent, or a process has failed: until all have ended, or kill_at */
    DONE,     /* all ended with 0, and the agent was told */
};

/* What this generation's processes have said of their progress. */
struct told {
    bool set, unheard;               /* unheard: the agent was not told of the newest */
    struct launch_progress progress; /* of the process with the lowest rank that said any */
    rm_time moved;                   /* when its step was another one last */
};

struct launch {
    struct launch_settings settings;
    enum state state;
    struct launch_ring ring;
    char address[RM_ADDRESS_MAX]; /* own, of the generation to come */
    int left;                     /* processes that have not ended */
    int64_t round;                /* of the newest stop */
    bool owes_stop;               /* it is not answered yet */
    bool released;                /* ends when all are gone */
    rm_time kill_at, beat_at;
    rm_time every, dump_at; /* a snapshot of what runs; RM_NEVER: none is due */
    bool dumping;           /* one was asked for, and is not over */
    rm_time held_since;     /* RM_NEVER: it is not held */
    int64_t counter;        /* of the heartbeats */
    struct told told;
};

static const char *state_name(const struct launch *st)
{
    static const char *const names[] = {
        [CLEARING] = "CLEARING", [IDLE] = "IDLE",         [READY] = "READY", [RUNNING] = "RUNNING",
        [FREEZING] = "FREEZING", [STOPPING] = "STOPPING", [DONE] = "DONE"};
    RM_ASSERT((unsigned)st->state < sizeof names / sizeof *names, "%d is the number of no state",
              (int)st->state);
    return names[st->state];
}

struct launch *launch_open(const struct launch_settings *settings, rm_time now)
{
    RM_ASSERT(settings->processes >= 1 && settings->heartbeat > 0 && settings->pid > 0,
              "%d processes, heartbeat %" PRId64 " ns, pid %" PRId64, settings->processes,
              settings->heartbeat, settings->pid);
    struct launch *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->settings = *settings;
    st->state = CLEARING;
    st->kill_at = st->dump_at = st->held_since = RM_NEVER;
    st->every = settings->freezes ? settings->every : 0;
    st->beat_at = now;
    return st;
}

void launch_free(struct launch *st)
{
    free(st);
}

const struct launch_ring *launch_ring_of(const struct launch *st)
{
    return &st->ring;
}

rm_time launch_deadline(const struct launch *st)
{
    return rm_earlier(rm_earlier(st->kill_at, st->beat_at), st->dump_at);
}

/* ---- actions ---- */

static struct launch_action *add_action(struct launch_out *out, enum launch_action_kind kind)
{
    RM_ASSERT(out->count < LAUNCH_ACTIONS_MAX, "%d actions in one step", out->count);
    struct launch_action *a = &out->action[out->count++];
    *a = (struct launch_action){.kind = kind};
    return a;
}

static struct message *say_message(struct launch *st, struct launch_out *out, enum msg_type type)
{
    struct message *m = message_place(&out->arena, type);
    add_action(out, LAUNCH_SEND)->message = m;
    m->generation = st->ring.generation;
    return m;
}

/* Nothing is kept from one generation to the next, so every worker of a job "holds" the same: its beginning.
 */
static struct msg_state beginning(const struct launch *st)
{
    struct msg_state s = {.held = true};
    memcpy(s.lineage, st->settings.lineage, sizeof s.lineage);
    return s;
}

static void say_up(struct launch *st, struct launch_out *out)
{
    RM_ASSERT(st->state == IDLE && *st->address, "it is up in state %s, at '%s'", state_name(st),
              st->address);
    struct message *m = say_message(st, out, MSG_UP);
    m->generation = (struct msg_generation){0};
    m->up.pid = st->settings.pid;
    m->up.state = beginning(st);
    snprintf(m->up.fingerprint, sizeof m->up.fingerprint, "launch%s%s",
             *st->settings.build ? ", bundle " : "", st->settings.build);
    text_copy(m->up.address, sizeof m->up.address, st->address);
}

static void say_stopped(struct launch *st, struct launch_out *out)
{
    struct message *m = say_message(st, out, MSG_STOPPED);
    RM_ASSERT(st->state == IDLE && st->owes_stop, "round %" PRId64 " is answered in state %s", st->round,
              state_name(st));
    m->stopped.round = st->round;
    m->stopped.state = beginning(st);
    m->stopped.update_step = -1;
    st->owes_stop = false;
}

static void kill_all(struct launch *st, struct launch_out *out)
{
    st->state = CLEARING;
    st->kill_at = st->dump_at = RM_NEVER;
    add_action(out, LAUNCH_KILL);
    RM_ASSERT(out->action[out->count - 1].kind == LAUNCH_KILL,
              "what is left of it is not killed, in state %s", state_name(st));
}

/* All that runs is to end within `grace`; who has ended leaves nothing behind either way. */
static void begin_stop(struct launch *st, rm_time grace, rm_time now, struct launch_out *out)
{
    bool running = st->state == RUNNING;
    RM_ASSERT(grace >= 0, "%" PRId64 " ns to stop within", (int64_t)grace);
    if (running)
        st->dump_at = RM_NEVER;
    if (running && st->left) {
        st->state = STOPPING;
        st->kill_at = now + grace;
        add_action(out, LAUNCH_TERM);
    } else if (running || st->state == DONE) {
        kill_all(st, out);
    } else if ((st->state == STOPPING || st->state == FREEZING) && now + grace < st->kill_at) {
        st->kill_at = now + grace;
    }
}

/* What runs goes on in another pod from where it is now. */
static void begin_freeze(struct launch *st, rm_time within, rm_time now, struct launch_out *out)
{
    RM_ASSERT(st->state == RUNNING && st->left && within >= 0, "frozen within %" PRId64 " ns, in state %s",
              (int64_t)within, state_name(st));
    st->state = FREEZING;
    st->dump_at = RM_NEVER;
    st->kill_at = now + within;
    st->dumping = true;
    add_action(out, LAUNCH_FREEZE)->within = within;
}

/* ---- what the agent says ---- */

static void on_form(struct launch *st, const struct message *m, struct launch_out *out)
{
    const struct msg_form *f = &m->form;
    if (st->state != IDLE && st->state != READY)
        return; /* of before a stop that is under way */
    RM_ASSERT(f->count >= 0 && f->count <= RM_WORKERS_MAX, "a ring of %d", f->count);
    struct launch_ring ring = {.generation = m->generation, .begun = f->begun, .world = f->count, .rank = -1};
    for (int r = 0; r < f->count; r++) {
        text_copy(ring.address[r], RM_ADDRESS_MAX, f->member[r].address);
        if (f->member[r].worker == st->settings.worker)
            ring.rank = r;
    }
    if (ring.rank < 0)
        return; /* asked as a source alone, and there is nothing to give */
    st->ring = ring;
    st->state = READY;
    say_message(st, out, MSG_READY)->ready.state = beginning(st);
}

static void on_go(struct launch *st, const struct message *m, rm_time now, struct launch_out *out)
{
    if (st->state != READY || generation_compare(m->generation, st->ring.generation) != 0)
        return;
    st->state = RUNNING;
    RM_ASSERT(st->left == 0, "a generation begins, and %d processes of another live", st->left);
    st->left = st->settings.processes;
    st->told = (struct told){0};
    st->dump_at = st->every ? now + st->every : RM_NEVER;
    add_action(out, LAUNCH_START);
}

/* A stop that was begun is made shorter by the next one, never longer. */
static void on_stop(struct launch *st, const struct msg_stop *stop, rm_time now, struct launch_out *out)
{
    RM_ASSERT(st->settings.grace >= 0, "a grace of %" PRId64 " ns", (int64_t)st->settings.grace);
    rm_time grace = stop->within ? rm_earlier(stop->within, st->settings.grace) : st->settings.grace;
    st->round = stop->round;
    st->owes_stop = true;
    if (st->settings.freezes && stop->at == STOP_BOUNDARY && st->state == RUNNING && st->left)
        begin_freeze(st, grace, now, out);
    else
        begin_stop(st, grace, now, out);
    if (st->state == READY)
        kill_all(st, out); /* nothing runs, but its port was told: the next generation has another one */
    if (st->state == IDLE)
        say_stopped(st, out);
}

static void begin_leave(struct launch *st, rm_time now, struct launch_out *out)
{
    st->released = true;
    begin_stop(st, LAUNCH_SUDDEN_GRACE, now, out);
    if (st->state == IDLE || st->state == READY || st->state == CLEARING)
        kill_all(st, out); /* CLEARING: perhaps nobody has asked for it yet */
    RM_ASSERT(st->state != IDLE && st->state != READY, "it is let go, and rests in state %s", state_name(st));
}

static void on_link(struct launch *st, const struct message *m, rm_time now, struct launch_out *out)
{
    switch (m->type) {
    case MSG_FORM:
        on_form(st, m, out);
        break;
    case MSG_GO:
        on_go(st, m, now, out);
        break;
    case MSG_STOP:
        on_stop(st, &m->stop, now, out);
        break;
    case MSG_RELEASE:
        begin_leave(st, now, out);
        break;
    case MSG_PROBE: { /* there is no ring that anybody could be out of reach in */
        struct message *answer = say_message(st, out, MSG_PROBED);
        answer->probed.id = m->probe.id;
        answer->probed.peer = -1;
        break;
    }
    default:
        break;
    }
}

/* ---- what the processes say ---- */

/* The lowest rank's word is the program's: in a training of which all ranks make each step together it stands
 * for all, mostly it is the one that says anything at all, and a rank that speaks once and never again, as
 * some do before they leave the telling to rank 0, would look like a hang if the slowest counted. A rank that
 * is not said is any of this worker's: as good as the lowest. */
static void on_told(struct launch *st, const struct launch_progress *p, rm_time now)
{
    struct told *t = &st->told;
    if (st->state != RUNNING || (t->set && p->rank > t->progress.rank))
        return;
    if (!t->set || p->rank < t->progress.rank || p->step != t->progress.step)
        t->moved = now;
    t->progress = *p;
    t->set = t->unheard = true;
    RM_ASSERT(t->moved <= now, "it moved %" PRId64 " ns from now", (int64_t)(t->moved - now));
}

/* A process that has ended well tells no more, and what the others do is not known. */
static void say_told(struct launch *st, rm_time now, struct launch_out *out)
{
    const struct launch_progress *p = &st->told.progress;
    bool all_run = st->left == st->settings.processes;
    bool held = st->held_since != RM_NEVER; /* it can't move, nor say so */
    if (st->state != RUNNING || !st->told.set || held || (!all_run && !st->told.unheard))
        return;
    RM_ASSERT(st->told.moved <= now, "it moved %" PRId64 " ns from now", (int64_t)(st->told.moved - now));
    struct message *m = say_message(st, out, MSG_REPORTED);
    m->reported.step = p->step;
    m->reported.steps = p->steps;
    m->reported.loss_known = !isnan(p->loss);
    m->reported.loss = m->reported.loss_known ? p->loss : 0;
    m->reported.still = now - st->told.moved;
    st->told.unheard = false;
}

/* ---- what becomes of the processes ---- */

static void say_finished(struct launch *st, struct launch_out *out)
{
    struct message *m = say_message(st, out, MSG_FINISHED);
    RM_ASSERT(st->state == RUNNING && st->left == 0, "finished in state %s, and %d are left", state_name(st),
              st->left);
    m->finished.step = 1;
    m->finished.exact = true;
    st->state = DONE;
}

/* The first that fails speaks for its worker; what follows of it is our own doing. */
static void say_failed(struct launch *st, const struct launch_event *e, struct launch_out *out)
{
    struct message *m = say_message(st, out, MSG_FAULT);
    RM_ASSERT(st->state == RUNNING && e->code, "process %d failed with %d, in state %s", e->local, e->code,
              state_name(st));
    m->fault.kind = FAULT_PROGRAM;
    m->fault.peer = m->fault.step = -1;
    m->fault.exit_code = e->code;
    m->fault.memory = e->memory;
    m->fault.rank = st->settings.torchrun ? -1 : st->ring.rank * st->settings.processes + e->local;
    if (m->fault.rank < 0)
        text_copy_ends(m->fault.detail, sizeof m->fault.detail, e->text);
    else
        text_print_ends(m->fault.detail, sizeof m->fault.detail, "rank %d: %s", m->fault.rank, e->text);
    text_copy(m->fault.output, sizeof m->fault.output, e->output ? e->output : "");
}

static void on_ended(struct launch *st, const struct launch_event *e, rm_time now, struct launch_out *out)
{
    RM_ASSERT(st->left > 0, "process %d ended, and %d were left", e->local, st->left);
    if (st->told.unheard)
        say_told(st, now, out); /* before it is said what became of the generation */
    st->left--;
    if (st->state == RUNNING && e->code) {
        say_failed(st, e, out);
        begin_stop(st, LAUNCH_SUDDEN_GRACE, now, out);
    } else if (st->state == RUNNING && !st->left) {
        st->dump_at = RM_NEVER;
        say_finished(st, out);
    } else if (st->state == STOPPING && !st->left) {
        kill_all(st, out);
    }
}

/* Frozen processes have ended. Of a snapshot that was not made they are told to go, in the time that is left.
 */
static void on_frozen(struct launch *st, rm_time every, rm_time now, struct launch_out *out)
{
    RM_ASSERT(st->dumping, "a snapshot is over that nobody asked for, in state %s", state_name(st));
    st->dumping = false;
    st->every = st->every && every ? every : st->every;
    if (st->state == RUNNING && st->every) {
        st->dump_at = now + st->every;
    } else if (st->state == FREEZING && st->left) {
        st->state = STOPPING;
        add_action(out, LAUNCH_TERM);
    } else if (st->state == FREEZING) {
        kill_all(st, out);
    }
}

/* Time in which it was made to stand still is not held against it. */
static void on_held(struct launch *st, bool held, rm_time now)
{
    if (!held && st->held_since != RM_NEVER && st->told.set)
        st->told.moved = rm_earlier(now, st->told.moved + (now - st->held_since));
    RM_ASSERT(st->told.moved <= now, "it moved %" PRId64 " ns from now", (int64_t)(st->told.moved - now));
    st->held_since = !held ? RM_NEVER : rm_earlier(st->held_since, now);
}

/* One at a time; of a generation that is stopped none is begun. */
static void dump_now(struct launch *st, struct launch_out *out)
{
    RM_ASSERT(st->state == RUNNING, "a snapshot of what runs, in state %s", state_name(st));
    st->dump_at = RM_NEVER;
    if (st->dumping)
        return; /* of a generation before; when it is over the next one is due */
    st->dumping = true;
    add_action(out, LAUNCH_DUMP);
}

static void on_gone(struct launch *st, struct launch_out *out)
{
    RM_ASSERT(st->left == 0, "all are gone, and %d have not ended", st->left);
    if (st->state == CLEARING)
        add_action(out, st->released ? LAUNCH_EXIT : LAUNCH_CHOOSE_PORT);
}

/* The agent says hello with the new port before it hands the answer to the stop on. */
static void on_port(struct launch *st, const char *address, struct launch_out *out)
{
    RM_ASSERT(*address, "a port without an address, in state %s", state_name(st));
    if (st->state != CLEARING)
        return;
    text_copy(st->address, sizeof st->address, address);
    st->state = IDLE;
    say_up(st, out);
    if (st->owes_stop)
        say_stopped(st, out);
}

static enum msg_phase phase(const struct launch *st)
{
    static const enum msg_phase of[] = {
        [CLEARING] = PHASE_STOPPED, [IDLE] = PHASE_STOPPED,     [READY] = PHASE_READY,
        [RUNNING] = PHASE_TRAINING, [FREEZING] = PHASE_STOPPED, [STOPPING] = PHASE_STOPPED,
        [DONE] = PHASE_TRAINING};
    RM_ASSERT((unsigned)st->state < sizeof of / sizeof *of, "%d is the number of no state", (int)st->state);
    return of[st->state];
}

/* The counter says that this launcher lives; what the program says of itself goes with it. Where this process
 * was held up itself, the program's may have been, too: that time is not held against it. */
static void beat(struct launch *st, rm_time now, struct launch_out *out)
{
    RM_ASSERT(now >= st->beat_at, "a heartbeat %" PRId64 " ns early", (int64_t)(st->beat_at - now));
    rm_time late = now - st->beat_at;
    if (late > st->settings.heartbeat && st->told.set)
        st->told.moved = rm_earlier(now, st->told.moved + late);
    struct message *m = say_message(st, out, MSG_HEARTBEAT);
    st->counter++;
    m->heartbeat.step = 0;
    m->heartbeat.counter = st->counter;
    m->heartbeat.phase = phase(st);
    m->heartbeat.waiting_for = -1;
    st->beat_at = now + st->settings.heartbeat;
    say_told(st, now, out);
}

/* What holds between two steps, whatever was told. */
static void check_invariants(const struct launch *st)
{
    bool in_ring = st->state == READY || st->state == RUNNING || st->state == DONE;
    RM_ASSERT(st->left >= 0 && st->left <= st->settings.processes, "%d of %d processes have not ended",
              st->left, st->settings.processes);
    RM_ASSERT(!in_ring || (st->ring.rank >= 0 && st->ring.rank < st->ring.world),
              "rank %d of %d, in state %s", st->ring.rank, st->ring.world, state_name(st));
    bool freezing = st->state == FREEZING, clearing = st->state == CLEARING;
    RM_ASSERT((st->state == RUNNING || st->state == STOPPING) ? st->left > 0
                                                              : freezing || clearing || !st->left,
              "%d processes have not ended, in state %s", st->left, state_name(st));
    RM_ASSERT((freezing || st->state == STOPPING) == (st->kill_at != RM_NEVER),
              "killed at %" PRId64 ", in state %s", (int64_t)st->kill_at, state_name(st));
    RM_ASSERT(st->dump_at == RM_NEVER || (st->state == RUNNING && st->settings.freezes),
              "a snapshot is due at %" PRId64 ", in state %s", (int64_t)st->dump_at, state_name(st));
}

void launch_step(struct launch *st, const struct launch_event *event, rm_time now, struct launch_out *out)
{
    out->count = 0;
    out->arena = arena_over(out->bodies, sizeof out->bodies);
    switch (event->kind) {
    case LAUNCH_LINK:
        on_link(st, event->message, now, out);
        break;
    case LAUNCH_PORT:
        on_port(st, event->text, out);
        break;
    case LAUNCH_ENDED:
        on_ended(st, event, now, out);
        break;
    case LAUNCH_GONE:
        on_gone(st, out);
        break;
    case LAUNCH_TOLD:
        on_told(st, &event->progress, now);
        break;
    case LAUNCH_FROZEN:
        on_frozen(st, event->every, now, out);
        break;
    case LAUNCH_HELD:
        on_held(st, event->held, now);
        break;
    case LAUNCH_CLOSED:
        st->released = true;
        kill_all(st, out);
        break;
    case LAUNCH_TICK:
        break;
    }
    if (now >= st->kill_at)
        kill_all(st, out);
    if (now >= st->dump_at)
        dump_now(st, out);
    if (now >= st->beat_at)
        beat(st, now, out);
    check_invariants(st);
}

void launch_refuse(struct message *m, const char *why, int exit_code)
{
    RM_ASSERT(exit_code, "%s is no end that is well", why);
    message_init(m, MSG_FAULT);
    m->fault.kind = FAULT_MACHINE;
    m->fault.peer = m->fault.step = -1;
    m->fault.exit_code = exit_code;
    text_copy_ends(m->fault.detail, sizeof m->fault.detail, why);
}
