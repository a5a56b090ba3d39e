/* Checkpoints that do not load or can't be listed: which is proven to be damaged, and what is waited for. A
 * sound one is never passed over. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/core/rdzv_state.h"

/* ---- damage ---- */

bool rdzv_is_of(const struct msg_checkpoint *c, const struct msg_state *s)
{
    return c->step == s->step && !memcmp(c->lineage, s->lineage, RM_HASH_BYTES);
}

static bool is_refused_state(const struct rdzv *st, const struct msg_state *s)
{
    struct msg_checkpoint c = {.step = s->step};
    memcpy(c.lineage, s->lineage, RM_HASH_BYTES);
    return rdzv_is_refused(st, &c);
}

/* Published since, and read back whole: it is another one at the same place. */
void rdzv_load_forgive(struct rdzv *st, int64_t step)
{
    int kept = 0;
    for (int i = 0; i < st->refused_count; i++) {
        if (st->refused[i].step != step)
            st->refused[kept++] = st->refused[i];
    }
    st->refused_count = kept;
}

static void refuse(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, struct rdzv_out *out)
{
    struct msg_checkpoint *r = &st->refused[st->refused_count];
    if (st->refused_count < REFUSED_KEPT - 1)
        st->refused_count++;
    r->step = f->step;
    memcpy(r->lineage, st->resume.lineage, RM_HASH_BYTES);
    st->final_saved = st->final_saved && f->step < st->settings.steps;
    struct msg_state next = rdzv_newest_checkpoint(st);
    st->saved = next.held ? next.step : -1; /* older ones count again, in memory too */
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        rdzv_trouble_over(&st->worker[i], FAULT_IN_LOAD);
    struct rdzv_tell *t = rdzv_tell(out, TELL_CHECKPOINT_REFUSED);
    t->step = f->step;
    t->worker = rdzv_index(st, w);
    text_copy(t->text, sizeof t->text, f->detail);
}

static int others(const struct rdzv *st, const struct rdzv_worker *but, bool here)
{
    int n = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        bool there = (w->presence == PRESENT && w->trainer_pid) || (!here && w->expected >= 0);
        n += w != but && there && !w->leaving && !w->released && !w->quarantine[0];
    }
    return n;
}

/* Two workers saw the damage; or there is nobody else who could look, and for a while nobody has come. */
static bool is_proven(struct rdzv *st, const struct rdzv_worker *w, rm_time now)
{
    struct rdzv_suspect *s = &st->suspect;
    if (!s->seen_by || !rdzv_is_of(&s->checkpoint, &st->resume)) {
        *s = (struct rdzv_suspect){.since = now};
        s->checkpoint.step = st->resume.step;
        memcpy(s->checkpoint.lineage, st->resume.lineage, RM_HASH_BYTES);
    }
    s->seen_by |= (uint64_t)1 << rdzv_index(st, w);
    if (s->seen_by & (s->seen_by - 1))
        return true;
    bool more = st->settings.unsupervised ? st->settings.workers_target > 1 : others(st, w, false) > 0;
    return !others(st, w, true) && (!more || now >= s->since + FAULT_PATIENCE);
}

/* Each share is read by another member the next time, so that damage is seen by a second one. */
int rdzv_load_turn(const struct rdzv *st)
{
    return st->suspect.turn;
}

/* Whoever has listed; who is about to says something new anyway. */
static void ask_again(struct rdzv *st)
{
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        w->list_asked = w->list_asked && !w->listed;
        w->listed = false;
    }
}

static void load_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                       struct rdzv_out *out)
{
    bool object = f->class == CLASS_OBJECT;
    bool proven = object && is_proven(st, w, now);
    w->loads = 0;
    struct fault_decision d = rdzv_trouble(st, w, FAULT_IN_LOAD, f, proven, now);
    st->forming_failures = 0; /* it has bounds of its own */
    st->suspect.turn += object;
    if (d.remedy == FAULT_REFUSES)
        refuse(st, w, f, out);
    else if (d.remedy == FAULT_WAITS)
        ask_again(st); /* one that was deleted meanwhile is not waited for */
    rdzv_act_on_trouble(st, w, &d, now, out);
    if (st->state == RDZV_FORMING)
        rdzv_quiesce(st, STOP_NOW, now, out);
}

/* ---- lists ---- */

static void list_trouble(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                         struct rdzv_out *out)
{
    bool again = w->trouble.times && w->trouble.where == FAULT_IN_LIST;
    bool long_alone = !others(st, w, true) && again && now >= w->trouble.since + FAULT_PATIENCE;
    bool proven = f->class == CLASS_OBJECT && long_alone; /* all that there is to list */
    struct fault_decision d = rdzv_trouble(st, w, FAULT_IN_LIST, f, proven, now);
    ask_again(st); /* who lists what it can't shows whose trouble that is */
    w->listed = w->list_asked = false;
    rdzv_act_on_trouble(st, w, &d, now, out);
}

static bool lists(const struct rdzv_worker *w, const struct msg_state *s)
{
    for (int i = 0; i < w->list.count; i++) {
        if (rdzv_is_of(&w->list.checkpoint[i], s))
            return true;
    }
    return false;
}

void rdzv_listed(struct rdzv_worker *w, const struct msg_checkpoints *list, rm_time now)
{
    w->list = *list;
    w->listed = true;
    w->listed_at = now;
    if (!w->trouble.differs)
        rdzv_trouble_over(w, FAULT_IN_LIST);
}

/* The newest that anybody names, and who. */
static struct msg_state newest_of_any(const struct rdzv *st, int *ret_worker)
{
    struct msg_state best = {0};
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        const struct rdzv_worker *w = &st->worker[i];
        for (int j = 0; rdzv_candidate(st, w) && j < w->list.count; j++) {
            const struct msg_checkpoint *c = &w->list.checkpoint[j];
            if (!rdzv_may_load(st, c) || (best.held && c->step <= best.step))
                continue;
            best.held = true;
            best.step = c->step;
            memcpy(best.lineage, c->lineage, RM_HASH_BYTES);
            *ret_worker = i;
        }
    }
    return best;
}

static void misses(struct rdzv *st, int worker, const char *what, rm_time now, struct rdzv_out *out)
{
    struct msg_fault f = {.kind = FAULT_STORAGE, .peer = -1, .step = -1};
    text_copy(f.detail, sizeof f.detail, what);
    list_trouble(st, &st->worker[worker], &f, now, out);
    st->worker[worker].trouble.differs = true;
}

static void agree(struct rdzv *st)
{
    st->lists_differ = 0;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (rdzv_candidate(st, w) && w->listed)
            rdzv_trouble_over(w, FAULT_IN_LIST);
    }
}

/* Lists that were made at different times differ once; those that differ again are of different places. */
bool rdzv_lists_agree(struct rdzv *st, struct rdzv_out *out)
{
    int by = 0;
    char what[MSG_DETAIL_MAX];
    struct msg_state any = newest_of_any(st, &by), common = rdzv_newest_checkpoint(st);
    bool gone = !any.held && st->saved > 0 && !st->refused_count;
    if (!gone && (!any.held || (common.held && common.step >= any.step))) {
        agree(st);
        return true;
    }
    rm_time now = st->accounted;
    if (st->lists_differ++ == 0) {
        ask_again(st);
        return false;
    }
    if (gone)
        snprintf(what, sizeof what,
                 "the checkpoint of step %" PRId64 " was there, and is not listed any more", st->saved);
    else
        snprintf(what, sizeof what,
                 "it does not see the checkpoint of step %" PRId64
                 ", which worker %d sees: is its folder the "
                 "same one?",
                 any.step, by);
    bool candidate[RM_WORKERS_MAX];
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        candidate[i] = rdzv_candidate(st, &st->worker[i]);
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (candidate[i] && (gone || !lists(&st->worker[i], &any)))
            misses(st, i, what, now, out);
    }
    return false;
}

/* What was trained is not begun anew unasked: a person may mend the checkpoints, or say --overwrite. */
bool rdzv_all_are_damaged(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    char names[200] = "";
    size_t n = 0;
    if (!st->refused_count)
        return false;
    for (int i = 0; i < st->refused_count && n < sizeof names - 24; i++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%sstep-%08" PRId64, i ? ", " : "",
                              st->refused[i].step);
    rdzv_give_up(st, EXIT_DATA,
                 "every checkpoint is damaged (%s): put a copy in its place, or start anew with --overwrite",
                 names);
    rdzv_end(st, now, out);
    return true;
}

void rdzv_storage_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                        struct rdzv_out *out)
{
    bool loads = st->state == RDZV_FORMING || st->state == RDZV_QUIESCING || st->state == RDZV_GATHERING;
    if (f->step < 0) {
        list_trouble(st, w, f, now, out);
    } else if (loads && st->loading && f->step == st->resume.step && (f->reading || !f->lasted)) {
        /* maybe for a ring that was given up meanwhile */
        if (!is_refused_state(st, &st->resume))
            load_fault(st, w, f, now, out);
        else if (st->state == RDZV_FORMING)
            rdzv_quiesce(st, STOP_NOW, now, out);
    } else if (f->reading) {
        /* for a ring that has gone on without it, or was given up */
        struct fault_decision d = rdzv_trouble(st, w, FAULT_IN_LOAD, f, false, now);
        rdzv_act_on_trouble(st, w, &d, now, out);
    } else {
        rdzv_write_fault(st, w, f, now, out);
    }
}
