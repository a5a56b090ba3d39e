/* How a trainer, or a launcher in its place, starts and ends; what is done about one that stands still before
 * it has said that it is up, of which nobody else knows yet, and about one that says what it can't mean. */
#include <inttypes.h>
#include <stdio.h>

#include "agent/core/agent_state.h"
#include "common/base/assert.h"
#include "common/base/exit_code.h"

enum { START_TRIES = 5 };

static const rm_time up_within = 60 * RM_S;

static const char *own_word(const struct agent *st)
{
    return st->settings.launcher ? "launcher" : "trainer";
}

static rm_time patience(const struct agent *st)
{
    RM_ASSERT(st->settings.up_within >= 0, "a trainer comes up within %lld ns",
              (long long)st->settings.up_within);
    return st->settings.up_within ? st->settings.up_within : up_within;
}

void agent_spawn(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(st->trainer == TRAINER_NONE && !st->over, "trainer %d is started beside another one",
              st->spawned);
    agent_act(out, AGENT_SPAWN);
    struct message *m = agent_say(out, AGENT_SEND_LINK, MSG_SETUP);
    m->setup.protocol = MSG_PROTOCOL;
    m->setup.worker = st->settings.worker;
    m->setup.attempt = st->settings.attempt;
    m->setup.incarnation = st->settings.incarnation;
    m->setup.restarts = st->spawned++;
    m->setup.snapshot_busy = st->writing || st->write_waits;
    m->setup.load_busy = st->loading;
    text_copy(m->setup.data_sha256, sizeof m->setup.data_sha256, st->up.data_sha256);
    st->trainer = TRAINER_STARTING;
    st->phase = PHASE_IDLE;
    *st->killed_why = 0;
    st->up_by = st->now + patience(st);
}

/* Its end starts another one; what this one says until then nobody hears. */
static void kill_trainer(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(st->trainer != TRAINER_NONE && *st->killed_why, "trainer %d is killed in state %s, why: %s",
              st->spawned, agent_trainer_name(st), st->killed_why);
    st->up_by = RM_NEVER;
    agent_act(out, AGENT_KILL);
}

void agent_replace_trainer(struct agent *st, const char *why, struct agent_out *out)
{
    RM_ASSERT(*why && st->trainer != TRAINER_NONE, "trainer %d is replaced in state %s", st->spawned,
              agent_trainer_name(st));
    text_copy(st->killed_why, sizeof st->killed_why, why);
    kill_trainer(st, out);
}

/* A device that failed once may serve the next process; one that fails again, or on which none comes up, is
 * this machine's fault. */
bool agent_judge_fault(struct agent *st, struct msg_fault *fault)
{
    char detail[sizeof fault->detail];
    RM_ASSERT(st->trainer != TRAINER_NONE, "trainer %d, which has ended, says: %s", st->spawned,
              fault->detail);
    if (fault->kind != FAULT_MACHINE || fault->class != CLASS_DEVICE)
        return false;
    if (st->trainer == TRAINER_UP && !st->device_failed) {
        st->device_failed = true;
        return true;
    }
    fault->class = CLASS_MACHINE;
    text_copy(detail, sizeof detail, fault->detail);
    if (st->device_failed)
        text_print_ends(fault->detail, sizeof fault->detail, "for the second time: %s", detail);
    return false;
}

/* ---- what it says ---- */

static bool is_early(enum msg_type type)
{
    return type == MSG_UP || type == MSG_HEARTBEAT || type == MSG_FAULT;
}

static bool is_of_store(enum msg_type type)
{
    return type == MSG_LOAD || type == MSG_SNAPSHOT || type == MSG_SNAPSHOT_WANTED;
}

/* That it ended its agent says, and that it hangs its coordinator. */
static bool is_said_by_others(const struct agent *st, enum msg_fault_kind kind)
{
    return kind == FAULT_TRAINER_EXIT || kind == FAULT_HANG ||
           (st->settings.launcher && kind == FAULT_STORAGE);
}

/* NULL: nothing is wrong with it. */
static const char *what_is_wrong(const struct agent *st, const struct message *m)
{
    RM_ASSERT(st->trainer != TRAINER_NONE, "trainer %d has ended, and speaks", st->spawned);
    if (st->trainer == TRAINER_STARTING && !is_early(m->type))
        return "before it was up";
    if (m->type == MSG_UP && m->up.pid < 1)
        return "without its pid";
    if (st->settings.launcher && is_of_store(m->type))
        return "and has no state";
    if (m->type == MSG_FAULT && is_said_by_others(st, m->fault.kind))
        return "of a kind that only others can say of it";
    if (m->type == MSG_SNAPSHOT && (st->writing || st->write_waits))
        return "while the memory that it lies in was not its own again";
    return NULL;
}

bool agent_hears_trainer(struct agent *st, const struct message *m, struct agent_out *out)
{
    if (st->trainer == TRAINER_NONE || *st->killed_why)
        return false;
    const char *why = what_is_wrong(st, m);
    if (why) {
        snprintf(st->killed_why, sizeof st->killed_why, "killed: it said `%s` %s", msg_type_name(m->type),
                 why);
        kill_trainer(st, out);
        return false;
    }
    RM_ASSERT((st->trainer == TRAINER_STARTING) == (st->up_by != RM_NEVER),
              "trainer %d, in state %s, is waited for until %" PRId64, st->spawned, agent_trainer_name(st),
              st->up_by);
    if (st->trainer == TRAINER_STARTING)
        st->up_by = st->now + patience(st);
    return true;
}

/* ---- one that stands still, and its end ---- */

/* Kept, so that the last word of an agent whose trainers never start has it. */
static void blame_machine(struct agent *st, struct agent_out *out)
{
    struct message *m = st->fault;
    RM_ASSERT(st->tries > 0, "trainer %d stands still, and the one before it did not", st->spawned);
    message_init(m, MSG_FAULT);
    m->generation = st->ring;
    m->fault.kind = FAULT_MACHINE;
    m->fault.class = CLASS_MACHINE;
    m->fault.peer = m->fault.step = -1;
    m->fault.exit_code = EXIT_MACHINE;
    snprintf(m->fault.detail, sizeof m->fault.detail,
             "the %s has said nothing for %" PRId64 " s since it was started, and the one before it did not "
             "start either: this machine does not get on",
             own_word(st), patience(st) / RM_S);
    st->fault_set = true;
    st->fault_at = st->now;
    agent_send_control(st, out, m);
}

/* Once may be chance: the next one starts. */
void agent_trainer_is_still(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(st->trainer == TRAINER_STARTING, "trainer %d stands still in state %s", st->spawned,
              agent_trainer_name(st));
    snprintf(st->killed_why, sizeof st->killed_why,
             "killed: it had said nothing for %" PRId64 " s since it was started", patience(st) / RM_S);
    if (st->tries)
        blame_machine(st, out);
    kill_trainer(st, out);
}

static void say_ended(struct agent *st, const char *how, struct agent_out *out)
{
    struct message m;
    RM_ASSERT(st->trainer == TRAINER_NONE, "trainer %d is told as ended, in state %s", st->spawned,
              agent_trainer_name(st));
    message_init(&m, MSG_FAULT);
    m.generation = st->ring;
    m.fault.kind = FAULT_TRAINER_EXIT;
    m.fault.peer = m.fault.step = -1;
    m.fault.trainer = st->spawned;
    text_print_ends(m.fault.detail, sizeof m.fault.detail, "the %s was %s", own_word(st), how);
    agent_send_control(st, out, &m);
}

void agent_on_trainer_exit(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    bool was_up = st->trainer == TRAINER_UP;
    const char *how = *st->killed_why ? st->killed_why : e->text;
    bool told =
        st->fault_set && (st->fault->fault.kind == FAULT_MACHINE || st->fault->fault.kind == FAULT_DATA);
    RM_ASSERT(st->trainer != TRAINER_NONE, "trainer %d ended twice", st->spawned);
    st->trainer = TRAINER_NONE;
    st->phase = PHASE_IDLE;
    st->up_by = RM_NEVER;
    st->fault_set = st->ready_set = st->finished_set = st->wanted = false;
    st->failure->fault.over = true;
    agent_drop_load(st, out);
    if (st->released)
        return;
    if (!was_up && (e->code > 0 || ++st->tries >= START_TRIES)) {
        char text[MSG_DETAIL_MAX];
        text_print_ends(text, sizeof text, "the %s does not start: %s", own_word(st),
                        told ? st->fault->fault.detail : how);
        agent_quit(st, out, e->code > 0 ? e->code : EXIT_MACHINE, text);
        return;
    }
    say_ended(st, how, out);
    agent_spawn(st, out);
}
