/* The memory that holds a snapshot, what the store does with it, and what the store does not take. */
#include <string.h>

#include "agent/core/agent_state.h"
#include "common/base/assert.h"

static const rm_time store_pause = RM_S, store_pause_most = 15 * RM_S;

/* Whom nobody needs any more says nothing: others save what it would have. */
static void say_waits(struct agent *st, int64_t step, rm_time age, struct agent_out *out)
{
    struct message m;
    if (st->released)
        return;
    RM_ASSERT(age >= 0, "step %lld waits for %lld ns", (long long)step, (long long)age);
    message_init(&m, MSG_SAVE_WAITS);
    m.save_waits.step = step;
    m.save_waits.age = age;
    text_copy_ends(m.save_waits.why, sizeof m.save_waits.why, st->store_why);
    agent_send_control(st, out, &m);
}

void agent_say_what_waits(struct agent *st, rm_time now, struct agent_out *out)
{
    if (st->write_waits)
        say_waits(st, st->write->snapshot.state.step, now - st->write_since, out);
    if (st->publish_waits)
        say_waits(st, st->publish->publish.step, now - st->publish_since, out);
}

/* A store that has just failed is not asked sooner because something newer has come. */
static bool must_wait(const struct agent *st, rm_time now)
{
    RM_ASSERT(st->store_delay >= 0 && st->store_delay <= store_pause_most,
              "the store is asked again in %lld ns", (long long)st->store_delay);
    return st->store_delay && now < st->store_at;
}

static bool same_publish(const struct message *a, const struct message *b)
{
    return a->publish.step == b->publish.step && a->publish.final == b->publish.final &&
           !memcmp(a->publish.lineage, b->publish.lineage, RM_HASH_BYTES);
}

static void start_publish(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(!st->publishing, "step %lld is published beside another one",
              (long long)st->publish->publish.step);
    st->publishing = true;
    st->publish_waits = false;
    st->publish_first = !st->writing;
    agent_call_made(st, &st->writes);
    agent_pass(out, AGENT_PUBLISH, st->publish);
}

void agent_on_publish(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    if (st->publishing) {
        st->publish_next_set = !same_publish(st->publish, m);
        message_keep(st->publish_next, m);
        return;
    }
    if (m->publish.replaces) /* others have read since what stands there, and it is damaged */
        st->published_set = false;
    if (st->published_set && st->published->published.step == m->publish.step &&
        st->published->published.final == m->publish.final &&
        !memcmp(st->published_lineage, m->publish.lineage, RM_HASH_BYTES)) {
        agent_send_control(st, out, st->published);
        return;
    }
    if (st->publish_waits && same_publish(st->publish, m))
        return;
    message_keep(st->publish, m);
    st->publish_since = now;
    st->publish_waits = must_wait(st, now);
    if (st->publish_waits)
        say_waits(st, m->publish.step, 0, out);
    else
        start_publish(st, out);
    RM_ASSERT(st->publishing != st->publish_waits, "step %lld is published %d times, and waits %d times",
              (long long)m->publish.step, st->publishing, st->publish_waits);
}

static void keep_written(struct agent *st, const struct message *m)
{
    if (st->written_count == WRITTEN_KEPT)
        message_keep(st->written[0], st->written[--st->written_count]);
    RM_ASSERT(st->written_count < WRITTEN_KEPT, "%d slices are remembered, of %d", st->written_count,
              WRITTEN_KEPT);
    message_keep(st->written[st->written_count++], m);
}

static void start_write(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(!st->writing, "step %lld is written while the memory is read for another one",
              (long long)st->write->snapshot.state.step);
    st->writing = true;
    st->write_waits = false;
    agent_call_made(st, &st->writes);
    agent_pass(out, AGENT_WRITE, st->write);
}

void agent_on_snapshot(struct agent *st, const struct message *m, rm_time now, struct agent_out *out)
{
    RM_ASSERT(!st->writing && !st->write_waits, "the memory of step %lld is written anew, and in use",
              (long long)m->snapshot.state.step);
    message_keep(st->write, m);
    st->write_since = now;
    st->write_waits = must_wait(st, now);
    if (st->write_waits)
        say_waits(st, m->snapshot.state.step, 0, out);
    else
        start_write(st, out);
}

/* Also to a trainer that is only starting: its setup said that the memory is in use. */
static void free_snapshot(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(!st->writing && !st->write_waits, "the memory of step %lld is free, and needed",
              (long long)st->write->snapshot.state.step);
    st->wanted = false;
    if (st->trainer != TRAINER_NONE)
        agent_say(out, AGENT_SEND_LINK, MSG_SNAPSHOT_FREE);
}

/* For a newer state, which then waits in the place of this one. */
void agent_on_snapshot_wanted(struct agent *st, struct agent_out *out)
{
    if (st->writing) {
        st->wanted = true;
        agent_act(out, AGENT_YIELD);
    } else if (st->write_waits) {
        st->write_waits = false;
        free_snapshot(st, out);
    }
    RM_ASSERT(!st->wanted || st->writing, "trainer %d waits for memory that nobody writes from", st->spawned);
}

void agent_event_blame(struct agent_event *event, const struct error *err)
{
    event->class = err->class;
    event->person = err->person;
    event->exit_code = error_exit_code(err->code);
    text_copy_ends(event->text, sizeof event->text, err->text);
}

/* What the store did not do, and why. */
void agent_storage_fault(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    struct message m;
    RM_ASSERT(!e->ok, "what is well is told as a fault: %s", e->text);
    message_init(&m, MSG_FAULT);
    m.generation = st->ring;
    m.fault.kind = FAULT_STORAGE;
    m.fault.class = e->class;
    m.fault.person = e->person;
    m.fault.exit_code = e->exit_code;
    m.fault.peer = -1;
    m.fault.step = e->kind == AGENT_LISTED ? -1 : e->step;
    m.fault.reading = e->kind == AGENT_LISTED || e->kind == AGENT_LOADED;
    text_copy_ends(m.fault.detail, sizeof m.fault.detail, e->text);
    agent_send_control(st, out, &m);
}

/* Behind a call that does not return this one would never begin. */
void agent_on_list(struct agent *st, struct agent_out *out)
{
    if (agent_calls_are_stuck(st, &st->reads)) {
        agent_say_reads_are_stuck(st, out);
        return;
    }
    agent_call_made(st, &st->reads);
    agent_say(out, AGENT_LIST, MSG_LIST);
}

void agent_on_listed(struct agent *st, const struct agent_event *e, struct agent_out *out)
{
    agent_call_returned(st, &st->reads);
    if (e->ok)
        agent_send_control(st, out, e->message);
    else
        agent_storage_fault(st, e, out);
}

static void store_failed(struct agent *st, const char *why, rm_time now)
{
    rm_time next = st->store_delay ? 2 * st->store_delay : store_pause;
    st->store_delay = next < store_pause_most ? next : store_pause_most;
    st->store_at = now + st->store_delay;
    RM_ASSERT(st->store_delay >= store_pause && st->store_delay <= store_pause_most,
              "the store is asked again in %lld ns", (long long)st->store_delay);
    text_copy_ends(st->store_why, sizeof st->store_why, why);
}

void agent_on_written(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    RM_ASSERT(st->writing, "a slice of step %lld is written that nobody began", (long long)e->step);
    st->writing = false;
    agent_call_returned(st, &st->writes);
    if (e->ok) {
        st->store_delay = 0;
        keep_written(st, e->message);
        agent_send_control(st, out, e->message);
    } else if (e->again) {
        store_failed(st, e->text, now);
        st->write_waits = !st->wanted && !st->released;
        say_waits(st, e->step, now - st->write_since, out);
    } else {
        agent_storage_fault(st, e, out);
    }
    if (!st->write_waits)
        free_snapshot(st, out);
}

void agent_on_published(struct agent *st, const struct agent_event *e, rm_time now, struct agent_out *out)
{
    RM_ASSERT(st->publishing, "step %lld is published that nobody began", (long long)e->step);
    st->publishing = st->publish_first = false;
    agent_call_returned(st, &st->writes);
    if (e->ok) {
        st->store_delay = 0;
        message_keep(st->published, e->message);
        memcpy(st->published_lineage, st->publish->publish.lineage, RM_HASH_BYTES);
        st->published_set = true;
        if (e->message->published.step > st->saved)
            st->saved = e->message->published.step;
        agent_send_control(st, out, e->message);
    } else if (e->again) {
        store_failed(st, e->text, now);
        st->publish_waits = !st->released;
        say_waits(st, e->step, now - st->publish_since, out);
    } else {
        agent_storage_fault(st, e, out);
    }
    if (st->publish_next_set) {
        st->publish_next_set = false;
        agent_on_publish(st, st->publish_next, now, out);
    }
}

/* The trainer can't move while the store takes its time: it waits for its agent, or has done what it was told
 * to. Any other that stands still while the store does hangs by itself. */
bool agent_waits_for_store(const struct agent *st)
{
    const struct msg_snapshot *s = &st->write->snapshot;
    bool saves = st->writing || st->write_waits;
    bool as_told = s->state.step == st->save_step && s->final == st->save_final;
    if (st->loading && !agent_calls_are_stuck(st, &st->reads))
        return true;
    return saves && (st->wanted || as_told) && !agent_calls_are_stuck(st, &st->writes);
}

bool agent_asks_store_again(const struct agent *st)
{
    return st->write_waits || st->publish_waits;
}

void agent_ask_store_again(struct agent *st, struct agent_out *out)
{
    RM_ASSERT(agent_asks_store_again(st), "the store is asked again by worker %d, for nothing",
              st->settings.worker);
    if (st->write_waits)
        start_write(st, out);
    if (st->publish_waits)
        start_publish(st, out);
}
