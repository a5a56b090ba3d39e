/* The trainer's state machine: what the agent says and what the threads have done become commands for them
 * and messages for the agent. One command is under way at a time. */
#include "trainer/core/elastic_parts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

struct elastic *elastic_open(const struct elastic_settings *settings)
{
    struct elastic *st = calloc(1, sizeof *st);
    RM_ASSERT(settings->steps >= 1 && settings->worker >= 0 && settings->worker < RM_WORKERS_MAX,
              "worker %d of a job of %" PRId64 " steps", settings->worker, settings->steps);
    if (!st)
        return NULL;
    st->settings = *settings;
    st->update_step = -1;
    st->snapshot_busy = settings->snapshot_busy;
    st->load_busy = settings->load_busy;
    return st;
}

void elastic_free(struct elastic *st)
{
    free(st);
}

/* ---- small things ---- */

static struct elastic_action *add_action(struct elastic_out *out, enum elastic_action_kind kind)
{
    RM_ASSERT(out->count < ELASTIC_ACTIONS_MAX, "%d actions in one step", out->count);
    struct elastic_action *a = &out->action[out->count++];
    *a = (struct elastic_action){.kind = kind};
    return a;
}

struct message *elastic_say(struct elastic *st, struct elastic_out *out, enum msg_type type)
{
    struct message *m = message_place(&out->arena, type);
    add_action(out, ELASTIC_SEND)->message = m;
    m->generation = st->generation;
    return m;
}

static bool due(int64_t every, int64_t step, int64_t done)
{
    RM_ASSERT(step >= 0, "step %" PRId64 " is due", step);
    return every > 0 && step > 0 && step % every == 0 && step > done;
}

/* None is due after the last step: what is saved then is asked for. */
static bool snapshot_due_at(const struct elastic *st, int64_t step, int64_t saved)
{
    RM_ASSERT(step >= 0, "step %" PRId64 " is saved", step);
    return step < st->settings.steps && due(st->settings.checkpoint_every, step, saved);
}

void elastic_begin(struct elastic *st, struct elastic_out *out, enum elastic_command command)
{
    struct elastic_action *a = add_action(out, ELASTIC_RUN);
    RM_ASSERT(st->running == CMD_NONE && command != CMD_NONE, "command %s is begun while %s runs",
              elastic_command_name(command), elastic_running_name(st));
    a->command = command;
    a->form = command == CMD_LISTEN ? &st->listen : &st->form;
    a->loaded = &st->loaded;
    a->shares = st->shares;
    a->snapshot_free = !st->snapshot_busy;
    a->again = command == CMD_LANES && st->stage == STAGE_UNFIT;
    bool makes = command == CMD_LANES || command == CMD_COMMIT;
    a->to_snapshot = makes && a->snapshot_free && snapshot_due_at(st, st->state.step + 1, -1);
    a->part = st->snapshot_part;
    a->parts = st->snapshot_parts;
    a->final = st->snapshot_final;
    st->running = command;
}

static struct message *fault(struct elastic *st, struct elastic_out *out, enum msg_fault_kind kind, int peer,
                             const char *detail)
{
    struct message *m = elastic_say(st, out, MSG_FAULT);
    m->fault.kind = kind;
    m->fault.peer = peer;
    m->fault.step = st->state.held ? st->state.step : -1;
    text_copy_ends(m->fault.detail, sizeof m->fault.detail, detail);
    st->mode = MODE_FAULTED;
    return m;
}

/* What went wrong here, and whose fault it is. */
static void fault_blamed(struct elastic *st, struct elastic_out *out, const struct elastic_result *r)
{
    struct message *m = fault(st, out, r->code == ERR_DATA ? FAULT_DATA : FAULT_MACHINE, -1, r->text);
    RM_ASSERT(r->outcome == OUTCOME_FAILED, "command %s is blamed with outcome %s",
              elastic_command_name(r->command), elastic_outcome_name(r->outcome));
    m->fault.class = r->class;
    m->fault.person = r->person;
    m->fault.exit_code = error_exit_code(r->code);
}

/* Of a source that holds something else than was agreed the connection is well. */
static void fault_of_peer(struct elastic *st, struct elastic_out *out, const struct elastic_result *r)
{
    RM_ASSERT(r->outcome == OUTCOME_PEER, "a peer is blamed with outcome %s",
              elastic_outcome_name(r->outcome));
    bool source = r->class == CLASS_SOURCE;
    struct message *m = fault(st, out, source ? FAULT_LINEAGE : FAULT_RING, r->peer, r->text);
    m->fault.class = source ? CLASS_SOURCE : CLASS_UNKNOWN;
}

static int rank_of(const struct elastic *st, const struct msg_form *form)
{
    RM_ASSERT(form->count >= 0 && form->count <= RM_WORKERS_MAX, "a ring of %d", form->count);
    for (int i = 0; i < form->count; i++) {
        if (form->member[i].worker == st->settings.worker)
            return i;
    }
    return -1;
}

/* A lane costs too much to be thrown away, and so does what was heard. */
static void abort_running(struct elastic *st, struct elastic_out *out)
{
    bool gently = st->running == CMD_LANES || st->running == CMD_LISTEN;
    if (elastic_waits_for_peers(st->running))
        add_action(out, gently ? ELASTIC_PAUSE : ELASTIC_ABORT)->command = st->running;
}

static void report_stopped(struct elastic *st, struct elastic_out *out)
{
    struct message *m = elastic_say(st, out, MSG_STOPPED);
    RM_ASSERT(st->stop_pending && st->running == CMD_NONE, "it stopped while command %s runs",
              elastic_running_name(st));
    m->stopped.round = st->stop.round;
    m->stopped.state = st->state;
    m->stopped.update_step = st->update_step;
    m->stopped.discarded = st->discarded && lane_set_is_empty(&st->kept);
    m->stopped.lanes = st->kept;
    st->stop_pending = st->listens = st->heard = false;
    st->mode = MODE_IDLE;
}

/* done: the step just made; NULL: one of a predecessor is told again. */
static void report_progress(struct elastic *st, struct elastic_out *out, int64_t tokens,
                            const struct elastic_result *done)
{
    struct message *m = elastic_say(st, out, MSG_PROGRESS);
    RM_ASSERT(st->state.held, "a step is told, and none is held");
    m->progress.step = st->state.step;
    m->progress.saves = done && st->snapshot_due;
    m->progress.loss = st->loss_known ? st->last_loss : NAN;
    m->progress.loss_known = st->loss_known;
    m->progress.numbers = done ? done->numbers : msg_numbers_unknown();
    m->progress.tokens = tokens;
    if (!done)
        return;
    m->progress.rescaled = done->rescaled;
    m->progress.step_time = st->made.took;
    m->progress.data_wait = st->made.data_wait;
    m->progress.reduce_time = st->made.reduce_time;
    m->progress.reduce_bytes = st->made.reduce_bytes;
    m->progress.second = st->made.second;
    m->progress.pace = st->made.pace;
}

/* ---- a new ring ---- */

/* The command that brings the state to what the role wants; false with a sentence where it can't be ours. */
static bool choose_way(struct elastic *st, char *why, size_t size)
{
    const struct msg_form *f = &st->form.form;
    enum msg_role role = f->member[rank_of(st, f)].role;
    static const enum elastic_command commands[] = {CMD_NONE,    CMD_CATCH_UP, CMD_NONE,
                                                    CMD_RECEIVE, CMD_LOAD,     CMD_INIT};
    RM_ASSERT(rank_of(st, f) >= 0, "a way into a ring of %d that it is not in", f->count);
    st->transfer = commands[role];
    st->follows = role == ROLE_FOLLOW;
    bool fits = f->resume.step <= st->settings.steps;
    if (role == ROLE_KEEP)
        fits &= st->state.held && msg_state_equal(&st->state, &f->resume);
    if (role == ROLE_CATCH_UP || role == ROLE_FOLLOW)
        fits &= st->state.held && st->state.step == f->resume.step - 1;
    bool fetches = role == ROLE_CATCH_UP || role == ROLE_FOLLOW || role == ROLE_RECEIVE;
    if (fetches && f->sources_count == 0)
        fits = false;
    if (!fits)
        snprintf(why, size, "told to %s step %" PRId64 " of %" PRId64 ", but step %" PRId64 " is held",
                 msg_role_name(role), f->resume.step, st->settings.steps, elastic_held_step(st));
    return fits;
}

static void start_form(struct elastic *st, struct elastic_out *out)
{
    RM_ASSERT(st->mode == MODE_IDLE && st->next_set && st->stage == STAGE_NONE,
              "a ring is begun in mode %s, stage %s", elastic_mode_name(st), elastic_stage_name(st));
    message_copy(&st->form, &st->next);
    st->next_set = false;
    st->generation = st->form.generation;
    st->stop_seen = st->discarded = st->finished = st->save_pending = st->compared = false;
    st->listens = st->heard = false;
    st->loaded_set = st->follows = false;
    st->shares = (struct worker_set){0};
    st->evaluate_due = st->snapshot_due = false;
    st->state_time = 0;
    if (rank_of(st, &st->form.form) < 0)
        return; /* it leaves, and serves its state meanwhile */
    char why[MSG_DETAIL_MAX];
    if (!choose_way(st, why, sizeof why)) {
        fault(st, out, FAULT_LINEAGE, -1, why);
        return;
    }
    st->mode = st->transfer == CMD_NONE ? MODE_CONNECT : MODE_STATE;
}

static void set_dues(struct elastic *st, int64_t evaluated, int64_t saved)
{
    int64_t step = st->state.step;
    RM_ASSERT(st->mode == MODE_TRAIN && st->state.held, "it trains on in mode %s", elastic_mode_name(st));
    st->evaluate_due = due(st->settings.evaluation_every, step, evaluated);
    st->snapshot_due = snapshot_due_at(st, step, saved);
}

/* ---- what the compute thread does next ---- */

/* The agent is done with the memory soon, or gives up what lies there where the store does not take it. */
static void want_snapshot_memory(struct elastic *st, struct elastic_out *out)
{
    RM_ASSERT(st->snapshot_busy, "memory is waited for that nobody reads");
    if (!st->snapshot_wanted)
        elastic_say(st, out, MSG_SNAPSHOT_WANTED);
    st->snapshot_wanted = true;
}

static void snapshot_memory_is_free(struct elastic *st)
{
    st->snapshot_busy = st->snapshot_wanted = false;
}

static void run_snapshot(struct elastic *st, struct elastic_out *out, int part, int parts, bool final)
{
    RM_ASSERT(part >= 0 && part < parts, "part %d of %d is to be saved", part, parts);
    RM_ASSERT(!st->snapshot_busy, "part %d of %d is to be saved, and the agent reads another", part, parts);
    st->snapshot_part = part;
    st->snapshot_parts = parts;
    st->snapshot_final = final;
    st->snapshot_busy = true;
    elastic_begin(st, out, CMD_SNAPSHOT);
}

/* The others wait for it in the step that all stop after, and a leave may have less time than the store needs
 * for the state before: that of this step is let go instead, as it would be for any newer one. */
static bool waits_for_memory(const struct elastic *st)
{
    bool stops = st->stop_seen || (st->stop_pending && st->stop.at == STOP_BOUNDARY);
    RM_ASSERT(st->snapshot_due, "no snapshot of step %" PRId64 " is due", st->state.step);
    return st->snapshot_busy && !stops;
}

static void next_in_training(struct elastic *st, struct elastic_out *out)
{
    const struct msg_form *f = &st->form.form;
    bool last = st->state.step >= st->settings.steps;
    RM_ASSERT(st->running == CMD_NONE && st->state.held,
              "what comes after step %" PRId64 " while command %s runs", st->state.step,
              elastic_running_name(st));
    if (st->follows) {
        elastic_begin(st, out, CMD_CATCH_UP);
    } else if (st->stage == STAGE_COMPUTED) {
        elastic_begin(st, out, CMD_EXCHANGE);
    } else if (st->stage == STAGE_UNFIT) {
        elastic_begin(st, out, CMD_LANES);
    } else if (st->evaluate_due) {
        elastic_begin(st, out, CMD_EVALUATE);
    } else if (st->snapshot_due && waits_for_memory(st)) {
        want_snapshot_memory(st, out);
    } else if (st->snapshot_due && !st->snapshot_busy) {
        run_snapshot(st, out, rank_of(st, f), f->count, false);
    } else if ((last || st->stop_seen) && !st->compared && f->count > 1) {
        elastic_begin(st, out, CMD_COMPARE); /* no header follows that would */
    } else if (last && !st->finished) {
        elastic_begin(st, out, CMD_DIGEST);
    } else if (st->stop_seen || (last && st->stop_pending)) {
        st->mode = MODE_IDLE;
    } else if (!last) {
        st->made = (struct made){0};
        elastic_begin(st, out, CMD_LANES);
    }
}

static void next_save(struct elastic *st, struct elastic_out *out)
{
    RM_ASSERT(st->save_pending && st->running == CMD_NONE, "it saves while command %s runs",
              elastic_running_name(st));
    if (st->snapshot_busy) {
        want_snapshot_memory(st, out);
        return;
    }
    st->save_pending = false;
    for (int i = 0; i < st->save.count && st->running == CMD_NONE; i++) {
        if (st->save.worker[i] == st->settings.worker)
            run_snapshot(st, out, i, st->save.count, st->save.final);
    }
}

static void next_transfer(struct elastic *st, struct elastic_out *out)
{
    RM_ASSERT(st->mode == MODE_STATE && st->transfer != CMD_NONE, "a state is fetched by no way, in mode %s",
              elastic_mode_name(st));
    if (st->load_busy || (st->transfer == CMD_LOAD && !st->loaded_set))
        return; /* the agent reads a checkpoint, maybe to where the state belongs */
    elastic_begin(st, out, st->transfer);
}

/* A pass comes to nothing where its ring does, or where all shall stop at once. */
static void drop_pass(struct elastic *st)
{
    RM_ASSERT(st->running == CMD_NONE && st->stage != STAGE_DECIDED,
              "a pass is dropped in stage %s, while command %s runs", elastic_stage_name(st),
              elastic_running_name(st));
    st->discarded = st->discarded || st->stage != STAGE_NONE;
    st->stage = STAGE_NONE;
}

/* Where both threads are idle it ends a step that is made, answers a stop, obeys a newer form, or starts what
 * comes next. */
static void advance(struct elastic *st, struct elastic_out *out)
{
    if (st->running != CMD_NONE)
        return;
    if (st->stage == STAGE_DECIDED) {
        elastic_begin(st, out, CMD_COMMIT);
        return;
    }
    if (st->mode != MODE_TRAIN || (st->stop_pending && st->stop.at == STOP_NOW))
        drop_pass(st);
    bool at_once = st->stop.at == STOP_NOW || st->mode == MODE_IDLE || st->mode == MODE_FAULTED;
    if (st->stop_pending && at_once)
        report_stopped(st, out);
    bool forming = st->mode == MODE_STATE || st->mode == MODE_CONNECT || st->mode == MODE_READY;
    if (st->next_set && st->mode == MODE_IDLE)
        start_form(st, out);
    else if (st->save_pending && (st->mode == MODE_IDLE || st->finished) && !forming)
        next_save(st, out);
    if (st->running != CMD_NONE)
        return;
    if (st->mode == MODE_STATE)
        next_transfer(st, out);
    else if (st->mode == MODE_CONNECT)
        elastic_begin(st, out, CMD_CONNECT);
    else if (st->mode == MODE_TRAIN)
        next_in_training(st, out);
    else if (st->mode == MODE_IDLE && st->listens)
        elastic_listen_on(st, out);
    if (st->mode == MODE_IDLE && st->stop_pending && st->running == CMD_NONE)
        advance(st, out); /* answers it, and takes up what has waited for that */
}

/* ---- results ---- */

/* What nobody gave, the agent reads, too. */
static void ask_shares(struct elastic *st, struct worker_set missing, struct elastic_out *out)
{
    struct message *m = elastic_say(st, out, MSG_LOAD);
    RM_ASSERT(!set_is_empty(missing), "no shares of %d are asked for", st->loaded.parts);
    m->load.state = st->form.form.resume;
    m->load.parts = st->loaded.parts;
    m->load.shares = missing;
    m->load.in_state = st->loaded.in_state;
    st->shares = set_minus(set_below(st->loaded.parts), missing);
    st->loaded_set = false;
    st->load_busy = true;
}

static void after_transfer(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    RM_ASSERT(st->mode == MODE_STATE, "a state is fetched in mode %s", elastic_mode_name(st));
    st->state_time += r->took;
    if (r->outcome == OUTCOME_OK) {
        st->transfer = CMD_NONE;
        st->mode = MODE_CONNECT;
    } else if (r->outcome == OUTCOME_MISSING && r->command == CMD_LOAD) {
        ask_shares(st, r->missing, out);
    } else if (r->outcome == OUTCOME_LINEAGE && r->command == CMD_CATCH_UP) {
        st->transfer = CMD_RECEIVE;
    } else if (r->outcome == OUTCOME_LINEAGE) {
        fault(st, out, FAULT_LINEAGE, -1, "the state received is not of the lineage asked for");
    }
}

/* The others compute lanes meanwhile, and wait with their headers for this rank's. */
static void after_follow(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    RM_ASSERT(st->mode == MODE_TRAIN && st->follows, "it follows in mode %s", elastic_mode_name(st));
    if (r->outcome == OUTCOME_OK) {
        st->follows = false;
        set_dues(st, st->form.form.evaluated, st->form.form.saved);
    } else if (r->outcome == OUTCOME_LINEAGE) {
        fault(st, out, FAULT_LINEAGE, -1, "the update received is not of the lineage asked for");
        elastic_begin(st, out, CMD_DROP); /* it gets the whole state */
    }
}

static void after_connect(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    if (r->outcome != OUTCOME_OK)
        return;
    st->mode = MODE_READY;
    if (st->stop_pending && st->stop.at == STOP_NOW)
        return;
    struct message *m = elastic_say(st, out, MSG_READY);
    m->ready.state = st->state;
    m->ready.ring_time = r->took;
    m->ready.state_time = st->state_time;
}

static void after_lanes(struct elastic *st, const struct elastic_result *r)
{
    made_add(&st->made, r);
    RM_ASSERT(st->stage == STAGE_NONE || st->stage == STAGE_UNFIT, "lanes in stage %s",
              elastic_stage_name(st));
    st->stage = r->outcome == OUTCOME_OK ? STAGE_COMPUTED : STAGE_NONE;
    st->discarded = st->discarded || r->outcome != OUTCOME_OK;
}

/* A sum is none, or this rank's state is not that of others. */
static void states_differ(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    if (r->outcome != OUTCOME_PROOF && r->outcome != OUTCOME_LINEAGE)
        return;
    bool proof = r->outcome == OUTCOME_PROOF;
    int other = proof || r->minority || r->command != CMD_EXCHANGE ? -1 : r->peer;
    struct message *m = fault(st, out, proof ? FAULT_PROOF : FAULT_LINEAGE, other, r->text);
    m->fault.class = proof          ? r->class
                     : !r->minority ? CLASS_UNKNOWN
                     : r->outvoted  ? CLASS_MACHINE
                                    : CLASS_PAIR;
    if (r->minority)
        elastic_begin(st, out, CMD_DROP);
}

static void after_exchange(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    made_add(&st->made, r);
    RM_ASSERT(st->stage == STAGE_COMPUTED, "words go round in stage %s", elastic_stage_name(st));
    st->stage = r->outcome == OUTCOME_OK        ? STAGE_DECIDED
                : r->outcome == OUTCOME_RESCALE ? STAGE_UNFIT
                                                : STAGE_NONE;
    st->made.stop = r->stop;
    st->made.save = r->save;
    st->discarded = st->discarded || st->stage == STAGE_NONE;
    if (r->outcome == OUTCOME_NOT_FINITE)
        fault(st, out, FAULT_NOT_FINITE, -1, r->text);
    if (r->outcome == OUTCOME_DISPUTED)
        fault(st, out, FAULT_LINEAGE, -1, r->text)->fault.class = CLASS_JOB;
    states_differ(st, r, out);
}

static void after_compare(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    RM_ASSERT(!st->compared && st->stage == STAGE_NONE, "states are compared in stage %s",
              elastic_stage_name(st));
    st->compared = r->outcome == OUTCOME_OK;
    states_differ(st, r, out);
}

static void after_commit(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    made_add(&st->made, r);
    RM_ASSERT(st->stage == STAGE_DECIDED, "a commit in stage %s", elastic_stage_name(st));
    st->stage = STAGE_NONE;
    st->discarded = st->discarded || r->outcome != OUTCOME_OK;
    if (r->outcome != OUTCOME_OK)
        return;
    st->last_loss = r->loss;
    st->loss_known = true;
    st->compared = false;
    st->stop_seen = st->made.stop;
    if (st->mode == MODE_TRAIN)
        set_dues(st, -1, -1);
    st->snapshot_due = st->snapshot_due || (st->made.save && st->state.step < st->settings.steps);
    report_progress(st, out, r->tokens, r);
}

static void after_evaluate(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    if (r->outcome != OUTCOME_OK)
        return;
    RM_ASSERT(st->state.held, "step %" PRId64 " is evaluated, and not held", st->state.step);
    st->evaluate_due = false;
    struct message *m = elastic_say(st, out, MSG_EVALUATED);
    m->evaluated.step = st->state.step;
    m->evaluated.loss = r->loss;
}

static void after_snapshot(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    RM_ASSERT(st->snapshot_part >= 0 && st->snapshot_part < st->snapshot_parts, "part %d of %d is saved",
              st->snapshot_part, st->snapshot_parts);
    st->snapshot_due = false;
    if (r->outcome != OUTCOME_OK) {
        st->snapshot_busy = false;
        return;
    }
    struct message *m = elastic_say(st, out, MSG_SNAPSHOT);
    m->snapshot = r->snapshot;
    m->snapshot.part = st->snapshot_part;
    m->snapshot.parts = st->snapshot_parts;
    m->snapshot.final = st->snapshot_final;
}

static void after_digest(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    if (r->outcome != OUTCOME_OK)
        return;
    RM_ASSERT(st->state.held, "it finishes at step %" PRId64 ", and holds nothing", st->state.step);
    st->finished = true;
    struct message *m = elastic_say(st, out, MSG_FINISHED);
    m->finished.step = st->state.step;
    memcpy(m->finished.digest, r->digest, RM_HASH_BYTES);
    m->finished.loss = st->loss_known ? st->last_loss : NAN;
    m->finished.loss_known = st->loss_known;
    m->finished.exact = r->snapshot.exact;
}

/* What is the same for every command that did not do its work. */
static void after_failure(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    if (r->command == CMD_LISTEN && r->outcome != OUTCOME_FAILED)
        return;
    bool expected = st->mode == MODE_FAULTED || (st->stop_pending && st->stop.at == STOP_NOW);
    if (r->outcome == OUTCOME_PEER && !expected)
        fault_of_peer(st, out, r);
    if (r->outcome == OUTCOME_ABORTED && !expected)
        fault(st, out, FAULT_RING, -1, "given up");
    if (r->outcome == OUTCOME_FAILED)
        fault_blamed(st, out, r);
}

static void command_done(struct elastic *st, const struct elastic_result *r, struct elastic_out *out)
{
    struct msg_state before = st->state;
    RM_ASSERT(r->command != CMD_NONE && r->command == st->running, "command %s is done, and %s runs",
              elastic_command_name(r->command), elastic_running_name(st));
    st->running = r->followed ? elastic_follows(r) : CMD_NONE;
    st->state = r->state;
    st->update_step = r->update_step;
    st->kept = r->kept;
    if (r->command != CMD_COMMIT && !msg_state_equal(&before, &st->state))
        st->loss_known = false;
    switch (r->command) {
    case CMD_LANES:
        after_lanes(st, r);
        break;
    case CMD_EXCHANGE:
        after_exchange(st, r, out);
        break;
    case CMD_COMMIT:
        after_commit(st, r, out);
        break;
    case CMD_CONNECT:
        after_connect(st, r, out);
        break;
    case CMD_EVALUATE:
        after_evaluate(st, r, out);
        break;
    case CMD_COMPARE:
        after_compare(st, r, out);
        break;
    case CMD_SNAPSHOT:
        after_snapshot(st, r, out);
        break;
    case CMD_DIGEST:
        after_digest(st, r, out);
        break;
    case CMD_LISTEN:
        elastic_after_listen(st, r, out);
        break;
    case CMD_DROP:
        break;
    default:
        if (st->mode == MODE_STATE)
            after_transfer(st, r, out);
        else if (st->mode == MODE_TRAIN && st->follows)
            after_follow(st, r, out);
    }
    after_failure(st, r, out);
}

/* ---- messages ---- */

static void on_stop(struct elastic *st, const struct msg_stop *stop, struct elastic_out *out)
{
    if (stop->round < st->stop.round)
        return;
    bool planned_first = stop->at == STOP_BOUNDARY && !(st->stop_pending && st->stop.at == STOP_BOUNDARY);
    st->stop = *stop;
    st->stop_pending = true;
    if (stop->at == STOP_NOW) {
        st->next_set = false;
        abort_running(st, out);
    } else if (planned_first && (st->mode == MODE_TRAIN || st->mode == MODE_READY)) {
        add_action(out, ELASTIC_RAISE_STOP);
    }
}

static void on_form(struct elastic *st, const struct message *m, struct elastic_out *out)
{
    if (generation_compare(m->generation, st->generation) <= 0 ||
        (st->mode != MODE_IDLE && !st->stop_pending))
        return; /* who is in a ring, or has failed, is told to stop first */
    if (st->next_set && generation_compare(m->generation, st->next.generation) <= 0)
        return;
    int rank = rank_of(st, &m->form);
    if (st->listens && rank < 0)
        return; /* those it listens to go on without it */
    message_copy(&st->next, m);
    st->next_set = true;
    if (st->running == CMD_LISTEN)
        abort_running(st, out);
    if (rank >= 0 && m->form.member[rank].role == ROLE_LOAD) {
        st->load_busy = true;
        st->load_generation = m->generation;
    }
}

static void on_loaded(struct elastic *st, const struct message *m)
{
    if (generation_compare(m->generation, st->load_generation) < 0)
        return; /* the agent is at work for a newer form already */
    st->load_busy = false;
    if (st->mode != MODE_STATE || st->transfer != CMD_LOAD ||
        generation_compare(m->generation, st->generation) != 0 ||
        !msg_state_equal(&m->loaded.state, &st->form.form.resume))
        return;
    st->loaded = m->loaded;
    st->loaded_set = true;
    st->shares = set_union(st->shares, m->loaded.shares);
}

static void on_go(struct elastic *st, const struct message *m)
{
    if (st->mode != MODE_READY || generation_compare(m->generation, st->generation) != 0)
        return;
    st->mode = MODE_TRAIN;
    if (!st->follows)
        set_dues(st, st->form.form.evaluated, st->form.form.saved);
}

static void on_save(struct elastic *st, const struct msg_save *save, struct elastic_out *out)
{
    if (!save->count) {
        if (st->mode == MODE_TRAIN)
            add_action(out, ELASTIC_RAISE_SAVE);
        return;
    }
    if (!st->state.held || st->state.step != save->step) {
        struct message *m = elastic_say(st, out, MSG_FAULT);
        m->fault.kind = FAULT_STORAGE;
        m->fault.peer = -1;
        m->fault.step = save->step;
        snprintf(m->fault.detail, sizeof m->fault.detail, "asked to save step %lld, which is not held",
                 (long long)save->step);
        return;
    }
    st->save = *save;
    st->save_pending = true;
}

static void on_link(struct elastic *st, const struct message *m, struct elastic_out *out)
{
    switch (m->type) {
    case MSG_STOP:
        on_stop(st, &m->stop, out);
        break;
    case MSG_FORM:
        on_form(st, m, out);
        break;
    case MSG_GO:
        on_go(st, m);
        break;
    case MSG_SAVE:
        on_save(st, &m->save, out);
        break;
    case MSG_LOADED:
        on_loaded(st, m);
        break;
    case MSG_SNAPSHOT_FREE:
        snapshot_memory_is_free(st);
        break;
    case MSG_SAVE_EVERY:
        add_action(out, ELASTIC_SAVE_EVERY)->every = m->save_every.every;
        break;
    case MSG_LISTEN:
        elastic_on_listen(st, m, out);
        break;
    case MSG_PROBE:
        add_action(out, ELASTIC_PROBE)->message = message_place_copy(&out->arena, m);
        break;
    case MSG_RELEASE:
        add_action(out, ELASTIC_EXIT)->exit_code = EXIT_DONE;
        break;
    default:
        break;
    }
}

static void on_opened(struct elastic *st, const struct elastic_event *event, struct elastic_out *out)
{
    RM_ASSERT(event->message->type == MSG_UP, "it opens with %s", msg_type_name(event->message->type));
    st->state = event->message->up.state;
    st->update_step = event->update_step;
    st->loss_known = event->loss_known;
    st->last_loss = event->loss;
    add_action(out, ELASTIC_SEND)->message = message_place_copy(&out->arena, event->message);
    if (st->state.held && event->loss_known)
        report_progress(st, out, event->tokens, NULL);
}

/* A peer that ends after the last step or while we are at rest is none of our business. */
static void on_peer_gone(struct elastic *st, int peer, struct elastic_out *out)
{
    bool ring_matters =
        st->mode == MODE_CONNECT || st->mode == MODE_READY || (st->mode == MODE_TRAIN && !st->finished);
    if (!ring_matters)
        return;
    abort_running(st, out);
    fault(st, out, FAULT_RING, peer, "a ring connection ended");
}

/* What holds between two steps, whatever was told: a ring trains on a state that is held, and a step is never
 * taken without one. */
static void check_invariants(const struct elastic *st)
{
    RM_ASSERT(st->mode != MODE_TRAIN || st->state.held, "training without a state, in generation %" PRId64,
              (int64_t)st->generation.n);
    RM_ASSERT(!st->state.held || (st->state.step >= 0 && st->update_step <= st->state.step),
              "step %" PRId64 " is held, with the update to %" PRId64, st->state.step, st->update_step);
    RM_ASSERT(st->state.held || lane_set_is_empty(&st->kept), "%d lanes of a step behind none",
              lane_set_count(&st->kept));
    RM_ASSERT(!st->finished || st->state.step == st->settings.steps,
              "finished at step %" PRId64 " of %" PRId64, st->state.step, st->settings.steps);
    RM_ASSERT(st->stage != STAGE_DECIDED || st->running == CMD_COMMIT,
              "step %" PRId64 " is made, and command %s runs", st->state.step + 1, elastic_running_name(st));
    RM_ASSERT(st->stage == STAGE_NONE || st->mode == MODE_TRAIN || st->running != CMD_NONE,
              "a pass of step %" PRId64 " is under way in mode %s", st->state.step + 1,
              elastic_mode_name(st));
    RM_ASSERT(!st->snapshot_wanted || st->snapshot_busy, "memory is waited for that nobody reads");
    RM_ASSERT(!st->next_set || st->running != CMD_NONE || st->stop_pending || st->mode == MODE_FAULTED,
              "a newer form waits for nobody in mode %s", elastic_mode_name(st));
}

void elastic_step(struct elastic *st, const struct elastic_event *event, struct elastic_out *out)
{
    out->count = 0;
    out->arena = arena_over(out->bodies, sizeof out->bodies);
    switch (event->kind) {
    case ELASTIC_OPENED:
        on_opened(st, event, out);
        break;
    case ELASTIC_LINK:
        on_link(st, event->message, out);
        break;
    case ELASTIC_DONE:
        command_done(st, event->result, out);
        break;
    case ELASTIC_PEER_GONE:
        on_peer_gone(st, event->peer, out);
        break;
    }
    advance(st, out);
    check_invariants(st);
}

enum msg_phase elastic_phase(const struct elastic *st)
{
    switch (st->mode) {
    case MODE_IDLE:
        return st->generation.n ? PHASE_STOPPED : PHASE_IDLE;
    case MODE_STATE:
    case MODE_CONNECT:
        return PHASE_FORMING;
    case MODE_READY:
        return PHASE_READY;
    default:
        return PHASE_TRAINING;
    }
}

int64_t elastic_held_step(const struct elastic *st)
{
    return st->state.held ? st->state.step : -1;
}
