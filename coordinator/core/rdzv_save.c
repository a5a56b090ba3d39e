/* Checkpoints: collecting the pieces, naming who publishes, and the SAVING state. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "coordinator/core/rdzv_state.h"

/* ---- pieces ---- */

static bool belongs(const struct rdzv_collection *c, const struct msg_checkpointed *m)
{
    return c->used && c->publish.step == m->step && c->publish.final == m->final && c->parts == m->parts &&
           !memcmp(c->publish.lineage, m->lineage, RM_HASH_BYTES);
}

/* What is being saved now, as it is cut now. */
static bool is_of_this_save(const struct rdzv *st, const struct rdzv_collection *c)
{
    return st->state == RDZV_SAVING && c->publish.step == st->save.step &&
           c->publish.final == st->save.final && c->parts == st->save.count;
}

/* A free one, else the oldest that is not being published: newer checkpoints are worth more. A step that all
 * stand still for is cut anew each time that one of its writers fails, and pieces of all these cuts come in:
 * the newest cut is never the one that makes room. */
static struct rdzv_collection *make_room(struct rdzv *st)
{
    struct rdzv_collection *oldest = NULL, *cut_before = NULL;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (!c->used)
            return c;
        bool may_go = c->publisher < 0 && !is_of_this_save(st, c);
        if (may_go && !c->publish.final && (!oldest || c->publish.step < oldest->publish.step))
            oldest = c;
        if (may_go && !cut_before)
            cut_before = c;
    }
    if (oldest)
        return oldest;
    return cut_before ? cut_before : &st->collection[0];
}

static struct rdzv_collection *collection_of(struct rdzv *st, const struct msg_checkpointed *m)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        if (belongs(&st->collection[i], m))
            return &st->collection[i];
    }
    struct rdzv_collection *c = make_room(st);
    memset(c, 0, sizeof *c);
    c->used = true;
    c->publisher = -1;
    c->parts = m->parts;
    c->publish.step = m->step;
    c->publish.final = m->final;
    c->publish.exact = m->exact && st->exact;
    c->publish.tensors = m->tensors;
    memcpy(c->publish.lineage, m->lineage, RM_HASH_BYTES);
    memcpy(c->publish.k, m->k, sizeof m->k);
    return c;
}

static bool is_saved(const struct rdzv *st, int64_t step, const uint8_t *lineage)
{
    bool same = !st->saved_lineage_known || !memcmp(st->saved_lineage, lineage, RM_HASH_BYTES);
    return st->saved == step && same;
}

/* Of who computed it: since then one that computes otherwise may have taken its place, and be the publisher.
 */
static void keep_fingerprint(const struct rdzv *st, struct rdzv_collection *c, const struct rdzv_worker *w)
{
    if (!c->publish.fingerprint[0])
        text_copy(c->publish.fingerprint, sizeof c->publish.fingerprint,
                  w->fingerprint[0] ? w->fingerprint : st->fingerprint);
}

/* As its writer finished: since then a ring may have come to the last step by another history. */
static void keep_digest(const struct rdzv *st, struct rdzv_collection *c, const struct rdzv_worker *w)
{
    if (c->digest_known || !c->publish.final)
        return;
    c->digest_known = w->digest_known || st->digest_known;
    memcpy(c->digest, w->digest_known ? w->digest : st->digest, RM_HASH_BYTES);
}

void rdzv_checkpointed(struct rdzv *st, struct rdzv_worker *w, const struct msg_checkpointed *m,
                       struct rdzv_out *out)
{
    rdzv_write_is_over(w, m->step);
    if (m->part >= m->parts || (!m->final && m->step <= st->saved))
        return;
    struct rdzv_collection *c = collection_of(st, m);
    keep_digest(st, c, w);
    keep_fingerprint(st, c, w);
    rdzv_slice_is_in(st, w, m->step, !c->in[m->part]);
    if (!c->in[m->part])
        c->have++;
    c->in[m->part] = true;
    rdzv_measure_slice(st, m);
    st->exact = st->exact && m->exact; /* also what was mixed before this coordinator came */
    c->publish.exact = c->publish.exact && m->exact;
    c->pieces[m->part] = m->count;
    memcpy(c->piece[m->part], m->piece, sizeof m->piece);
    rdzv_name_publishers(st, out);
}

/* ---- publishing ---- */

/* Somebody who stays, if possible one of the ring. */
static struct rdzv_worker *choose_publisher(struct rdzv *st)
{
    struct rdzv_worker *best = NULL;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        struct rdzv_worker *w = &st->worker[i];
        if (w->presence != PRESENT || w->released || rdzv_held_back(st, w))
            continue;
        bool better = !best || (best->leaving && !w->leaving) ||
                      (best->leaving == w->leaving && best->rank < 0 && w->rank >= 0);
        if (better)
            best = w;
    }
    return best;
}

static void send_publish(struct rdzv *st, struct rdzv_collection *c, struct rdzv_worker *w,
                         struct rdzv_out *out)
{
    struct msg_publish *p = &rdzv_send_one(st, out, w, MSG_PUBLISH)->publish;
    *p = c->publish;
    p->count = 0;
    /* who publishes may be new, and not know them */
    text_copy(p->data_sha256, sizeof p->data_sha256, st->data_sha256);
    p->data_files = st->data_files;
    p->data_bytes = st->data_bytes;
    for (int part = 0; part < c->parts; part++) {
        for (int i = 0; i < c->pieces[part] && i < MSG_PIECES_PER_PART; i++)
            p->piece[p->count++] = c->piece[part][i];
    }
    c->publisher = rdzv_index(st, w);
    c->held_up = false;
}

void rdzv_forget_publisher(struct rdzv *st, const struct rdzv_worker *w)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        if (st->collection[i].publisher == rdzv_index(st, w))
            st->collection[i].publisher = -1;
    }
}

/* A final one is newer than a periodic one of its step. */
static bool is_older(const struct rdzv_collection *a, const struct rdzv_collection *b)
{
    if (a->publish.step != b->publish.step)
        return a->publish.step < b->publish.step;
    return !a->publish.final && b->publish.final;
}

static bool is_whole(const struct rdzv_collection *c)
{
    return c->used && c->have >= c->parts;
}

static struct rdzv_collection *oldest_whole(struct rdzv *st)
{
    struct rdzv_collection *oldest = NULL;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (is_whole(c) && (!oldest || is_older(c, oldest)))
            oldest = c;
    }
    return oldest;
}

static bool is_awaited(const struct rdzv *st, const struct rdzv_collection *c)
{
    return st->state == RDZV_SAVING && c->publish.step == st->save.step && c->publish.final == st->save.final;
}

/* What SAVING waits for is worth most, then what is newer. */
static bool is_worth_more(const struct rdzv *st, const struct rdzv_collection *a,
                          const struct rdzv_collection *b)
{
    bool a_is = is_awaited(st, a), b_is = is_awaited(st, b);
    return a_is == b_is ? is_older(b, a) : a_is;
}

static struct rdzv_collection *best_instead_of(struct rdzv *st, struct rdzv_collection *held_up)
{
    struct rdzv_collection *best = held_up;
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        if (is_whole(c) && is_worth_more(st, c, best))
            best = c;
    }
    return best;
}

static struct rdzv_collection *being_published(struct rdzv *st)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        if (is_whole(&st->collection[i]) && st->collection[i].publisher >= 0)
            return &st->collection[i];
    }
    return NULL;
}

/* One at a time, the oldest that is whole first; but one that the store does not take makes way for the best
 * that there is, by the same publisher, who then lets go of it. */
void rdzv_name_publishers(struct rdzv *st, struct rdzv_out *out)
{
    struct rdzv_collection *now = being_published(st);
    if (now && !now->held_up)
        return;
    struct rdzv_collection *next = now ? best_instead_of(st, now) : oldest_whole(st);
    struct rdzv_worker *w = now ? &st->worker[now->publisher] : choose_publisher(st);
    if (!next || next == now || !w)
        return;
    if (now)
        now->publisher = -1;
    send_publish(st, next, w, out);
}

/* Whether something else goes before it is decided where publishers are named. */
void rdzv_publishing_waits(struct rdzv *st, const struct rdzv_worker *w, int64_t step)
{
    struct rdzv_collection *c = being_published(st);
    if (c && c->publisher == rdzv_index(st, w) && c->publish.step == step)
        c->held_up = true;
}

static void tell_published(struct rdzv *st, const struct msg_published *p, rm_time now, struct rdzv_out *out)
{
    struct rdzv_tell *t = rdzv_tell(out, TELL_CHECKPOINT_SAVED);
    t->step = p->step;
    t->final = p->final;
    t->bytes = p->bytes;
    t->took = p->took;
    t->waited = rdzv_outage_over(st, p->step, now);
    rdzv_measure_publishing(st, p);
    st->saved = p->step;
    st->final_saved = st->final_saved || p->final;
    rdzv_load_forgive(st, p->step);
}

/* Of two histories of one step, the one that somebody was told to publish. */
static const struct rdzv_collection *whole_one(const struct rdzv *st, const struct msg_published *p)
{
    const struct rdzv_collection *whole = NULL;
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        bool same = c->used && c->publish.step == p->step && c->publish.final == p->final;
        if (same && c->have >= c->parts && (!whole || c->publisher >= 0))
            whole = c;
    }
    return whole;
}

void rdzv_published(struct rdzv *st, const struct msg_published *p, rm_time now, struct rdzv_out *out)
{
    st->saved_at = now;
    const struct rdzv_collection *whole = whole_one(st, p);
    if (whole) {
        tell_published(st, p, now, out);
        st->saved_lineage_known = true;
        memcpy(st->saved_lineage, whole->publish.lineage, RM_HASH_BYTES);
        if (p->final && whole->digest_known)
            memcpy(st->digest, whole->digest, RM_HASH_BYTES);
    } else if (st->settings.predecessor.given && !p->final && p->step > st->saved) {
        tell_published(st, p, now, out); /* at a predecessor's word, and nobody was told */
        st->saved_lineage_known = false;
    }
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        bool over = c->publish.final ? st->final_saved : c->publish.step <= st->saved;
        c->used = c->used && !over;
        c->publisher = c->used ? c->publisher : -1;
    }
    rdzv_name_publishers(st, out);
    for (int i = 0; i < RM_WORKERS_MAX; i++)
        st->worker[i].listed = st->worker[i].list_asked = false; /* their lists are older than this */
}

/* ---- SAVING ---- */

static bool has_finished(const struct rdzv_worker *w)
{
    return w->presence == PRESENT && w->trainer_pid && w->finished;
}

/* Whoever went on alone to the same step may hold another state of it: the pieces must be of one. Those who
 * finished the last step together do, and tell their lineage only with the pieces. */
static bool holds_it(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *state)
{
    if (!state->held)
        return has_finished(w);
    return rdzv_usable(st, w) && msg_state_equal(&w->state, state);
}

static bool may_save(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_state *state)
{
    return !rdzv_held_back(st, w) && holds_it(st, w, state);
}

/* What to look for: nothing held means, from those who finished. */
static struct msg_state what_to_save(const struct rdzv *st, const struct msg_state *state, bool final)
{
    for (int i = 0; final && i < RM_WORKERS_MAX; i++) {
        if (has_finished(&st->worker[i]))
            return (struct msg_state){0};
    }
    return final ? rdzv_best_state(st) : *state;
}

bool rdzv_holds_what_is_saved(const struct rdzv *st, const struct rdzv_worker *w)
{
    struct msg_state wanted = what_to_save(st, &st->save_state, st->save.final);
    return holds_it(st, w, &wanted);
}

static void send_save(struct rdzv *st, struct rdzv_out *out)
{
    rdzv_send(st, out, MSG_SAVE)->save = st->save;
    for (int i = 0; i < st->save.count; i++)
        rdzv_send_to(out, &st->worker[st->save.worker[i]]);
}

bool rdzv_save_begin(struct rdzv *st, const struct msg_state *state, bool final, rm_time now,
                     struct rdzv_out *out)
{
    /* a checkpoint of that step stands, be it of another history: its place is taken */
    if (!state->held || (!final && (state->step == 0 || state->step <= st->saved)))
        return false;
    struct msg_save save = {.step = state->step, .final = final};
    struct msg_state wanted = what_to_save(st, state, final);
    if (wanted.held && wanted.step != state->step)
        return false;
    for (int i = 0; i < RM_WORKERS_MAX; i++) {
        if (may_save(st, &st->worker[i], &wanted))
            save.worker[save.count++] = i;
    }
    if (save.count == 0)
        return false;
    if (st->state != RDZV_SAVING || st->save.step != save.step || st->save.final != final) {
        st->save_since = st->save_again_at = now;
        st->vanished = 0;
    }
    st->save = save;
    st->save_again = false;
    st->save_state = *state;
    rdzv_say(st, "saving step %" PRId64 "%s from %d workers", save.step, final ? " as final" : "",
             save.count);
    send_save(st, out);
    rdzv_move(st, RDZV_SAVING, now);
    return true;
}

static bool part_is_in(const struct rdzv *st, int part)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        if (c->used && c->publish.step == st->save.step && c->publish.final == st->save.final &&
            c->parts == st->save.count && c->in[part])
            return true;
    }
    return false;
}

void rdzv_save_resend(struct rdzv *st, struct rdzv_worker *w, struct rdzv_out *out)
{
    for (int i = 0; i < st->save.count; i++) {
        if (st->save.worker[i] == rdzv_index(st, w) && !part_is_in(st, i))
            rdzv_send_one(st, out, w, MSG_SAVE)->save = st->save;
    }
}

static bool a_writer_is_gone(const struct rdzv *st)
{
    for (int i = 0; i < st->save.count; i++) {
        const struct rdzv_worker *w = &st->worker[st->save.worker[i]];
        bool gone = w->presence == ABSENT || !w->trainer_pid;
        if (gone && !part_is_in(st, i))
            return true;
    }
    return false;
}

static bool save_is_done(const struct rdzv *st)
{
    if (st->save.final)
        return st->final_saved;
    /* a newer one, whose pieces were under way, will do as well */
    return st->saved > st->save.step || is_saved(st, st->save_state.step, st->save_state.lineage);
}

bool rdzv_save_lacks(const struct rdzv *st, int part)
{
    return !st->save_again && !save_is_done(st) && !part_is_in(st, part);
}

void rdzv_settle_saving(struct rdzv *st, rm_time now, struct rdzv_out *out)
{
    if (save_is_done(st)) {
        if (st->save.final || st->ending.set)
            rdzv_end(st, now, out);
        else
            rdzv_move(st, RDZV_GATHERING, now);
        return;
    }
    if (rdzv_save_gives_up(st, now, out))
        return;
    rdzv_name_publishers(st, out);
    bool anew = (st->save_again && now >= st->save_again_at) || a_writer_is_gone(st);
    if (anew && rdzv_save_begin(st, &st->save_state, st->save.final, now, out))
        return;
    if (rdzv_trouble_at(st) != RM_NEVER)
        return; /* who can't save it now may a moment later */
    bool in_vain = !rdzv_on_its_way(st) || now >= st->state_since + st->settings.start_timeout;
    bool nobody_left = !choose_publisher(st) && in_vain;
    if (nobody_left) {
        rdzv_quiesce(st, STOP_NOW, now, out);
        return;
    }
    if (!anew)
        return;
    rdzv_say(st, "nobody holds step %" PRId64 " any more", st->save.step);
    if (st->ending.set)
        rdzv_end(st, now, out);
    else
        rdzv_quiesce(st, STOP_NOW, now, out); /* whoever came meanwhile has not been asked what it holds */
}

/* ---- storage that fails ---- */

void rdzv_save_failed(struct rdzv *st, int64_t step, const char *detail, rm_time now, struct rdzv_out *out)
{
    bool told = st->ending.set;
    char why[MSG_DETAIL_MAX];
    snprintf(why, sizeof why, "%.150s%sthe checkpoint of step %" PRId64 " can't be written: %.180s",
             told ? st->ending.text : "", told ? "; " : "", step, detail);
    st->ending.set = false;
    rdzv_give_up(st, EXIT_MACHINE, "%s", why);
    rdzv_end(st, now, out);
}

static bool is_published_by(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        const struct rdzv_collection *c = &st->collection[i];
        if (is_whole(c) && c->publish.step == f->step && c->publisher == rdzv_index(st, w))
            return true;
    }
    return false;
}

/* What the run ends with goes to others who hold it; where nobody is left who could, it is tried again until
 * the time for that is over. */
static void save_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                       struct rdzv_out *out)
{
    struct fault_decision d = rdzv_trouble(st, w, FAULT_IN_SAVE, f, false, now);
    if (d.remedy == FAULT_ENDS) {
        rdzv_save_failed(st, f->step, f->detail, now, out);
        return;
    }
    rdzv_say(st, "worker %d can't save step %" PRId64 ": %s", rdzv_index(st, w), f->step, f->detail);
    if (f->lasted)
        rdzv_tell_waiting_for(st, f->detail, out);
    if (is_published_by(st, w, f))
        rdzv_forget_publisher(st, w);
    else
        st->save_again = true;
}

static void tell_not_written(const struct msg_fault *f, struct rdzv_out *out)
{
    snprintf(rdzv_tell(out, TELL_WAITING)->text, MSG_DETAIL_MAX,
             "the checkpoint of step %" PRId64 " can't be written; training goes on: %s", f->step, f->detail);
}

static void write_anew(struct rdzv *st, const struct msg_fault *f, rm_time now, struct rdzv_out *out)
{
    if (st->vanished++ && !st->settings.unsupervised && now >= st->save_since + st->settings.save_patience) {
        rdzv_save_failed(st, f->step, f->detail, now, out);
        return;
    }
    st->save_again = true;
    st->save_again_at = now + fault_pause(st->vanished);
    rdzv_tell_waiting_for(st, f->detail, out);
}

static void forget_pieces(struct rdzv *st, int64_t step)
{
    for (int i = 0; i < COLLECTIONS; i++) {
        struct rdzv_collection *c = &st->collection[i];
        c->used = c->used && c->publish.step != step;
    }
}

/* What its writers said is written is not there, or is not what they said. Which of them it was can't be
 * told, and who found it was not. */
static void pieces_vanished(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                            struct rdzv_out *out)
{
    forget_pieces(st, f->step);
    rdzv_forget_publisher(st, w);
    if (st->state == RDZV_SAVING && f->step == st->save.step)
        write_anew(st, f, now, out);
    else
        tell_not_written(f, out);
}

rm_time rdzv_save_anew_at(const struct rdzv *st)
{
    return st->save_again && st->save_again_at > st->accounted ? st->save_again_at : RM_NEVER;
}

/* In SAVING, for what this worker's call is about, or for what it can't do as long as that is under way: its
 * memory is in use, and its thread. */
static bool waits_for(const struct rdzv *st, const struct rdzv_worker *w, const struct msg_fault *f)
{
    for (int i = 0; i < st->save.count; i++) {
        if (st->save.worker[i] == rdzv_index(st, w) && rdzv_save_lacks(st, i))
            return true;
    }
    return is_published_by(st, w, f);
}

/* A periodic checkpoint that can't be written costs nothing but itself; one that the run ends with does. */
void rdzv_write_fault(struct rdzv *st, struct rdzv_worker *w, const struct msg_fault *f, rm_time now,
                      struct rdzv_out *out)
{
    bool saving = st->state == RDZV_SAVING;
    if (f->class == CLASS_OBJECT && is_published_by(st, w, f)) {
        pieces_vanished(st, w, f, now, out);
        return;
    }
    if (saving && (f->lasted ? waits_for(st, w, f) : f->step == st->save.step)) {
        save_fault(st, w, f, now, out);
        return;
    }
    if (!f->lasted) {
        tell_not_written(f, out);
        forget_pieces(st, f->step);
    } else if (!saving && !rdzv_is_stuck(st, w)) /* it says so again and again */
        rdzv_tell_waiting_for(st, f->detail, out);
    rdzv_slice_fault(st, w, f, now, out);
}
