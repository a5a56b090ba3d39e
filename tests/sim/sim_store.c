/* A checkpoint folder that all workers share: slices, published manifests, damage. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/checkpoint/keep_rule.h"
#include "tests/sim/sim.h"

static const int64_t state_bytes = (int64_t)1 << 30; /* of a replay, where what is measured counts */

/* Of one of so many parts. */
static rm_time time_of(struct sim *sim, enum agent_event_kind kind, int parts)
{
    if (sim->replay && kind == AGENT_WRITTEN)
        return sim->replay->save / parts;
    if (sim->replay && kind == AGENT_LOADED)
        return sim->replay->load / parts;
    return sim_time(sim, RM_MS, 30 * RM_MS);
}

static struct agent_event *stored_part(struct sim *sim, int node, enum agent_event_kind kind,
                                       enum msg_type type, int published, int parts)
{
    struct agent_event *e = calloc(1, sizeof *e);
    struct message *m = malloc(sizeof *m);
    if (!e || !m)
        abort();
    message_init(m, type);
    e->kind = kind;
    e->ok = true;
    e->message = m;
    bool reads = kind == AGENT_LISTED || kind == AGENT_LOADED;
    rm_time takes = time_of(sim, kind, parts) + trouble_longer(sim, node, kind),
            from = trouble_returns_at(sim, node, reads);
    sim->tallies.of[TALLY_STUCK] += from > sim->now;
    struct ev *ev = sim_at(sim, from == RM_NEVER ? RM_NEVER : from + takes, EV_STORED, node, published, 0);
    ev->stored = e;
    ev->message = m;
    return e;
}

static struct agent_event *stored(struct sim *sim, int node, enum agent_event_kind kind, enum msg_type type,
                                  int published)
{
    return stored_part(sim, node, kind, type, published, 1);
}

static void fail(struct agent_event *e, int64_t step, enum fault_class class, const char *text)
{
    e->ok = false;
    e->step = step;
    e->class = class;
    text_copy(e->text, sizeof e->text, text);
}

bool store_is_away(const struct sim *sim)
{
    return sim->now < sim->store_back;
}

static void fail_for_now(struct agent_event *e, int64_t step)
{
    fail(e, step, CLASS_PASSING, "the store does not take it");
    e->again = true;
}

static void store_name_bits(uint8_t sha256[RM_HASH_BYTES], uint64_t flaw)
{
    memset(sha256, 0, RM_HASH_BYTES);
    memcpy(sha256, &flaw, sizeof flaw);
}

uint64_t store_named_bits(const uint8_t sha256[RM_HASH_BYTES])
{
    uint64_t flaw;
    memcpy(&flaw, sha256, sizeof flaw);
    return flaw;
}

static void add_slice(struct sim *sim, int node, const struct msg_snapshot *s)
{
    struct slice *slice = &sim->slice[sim->slices++ % SLICES_MAX]; /* the oldest are deleted */
    *slice = (struct slice){.used = true,
                            .step = s->state.step,
                            .final = s->final,
                            .part = s->part,
                            .parts = s->parts,
                            .hash = sim_lineage_hash(s->state.lineage),
                            .flaw = sim->node[node].taken.flaw,
                            .gone = trouble_pieces_vanish(sim)};
}

/* As its writers wrote each part last. */
static bool is_piece_gone(const struct sim *sim, const struct msg_publish *p)
{
    bool gone[RM_WORKERS_MAX] = {false}, any = false;
    int parts = p->count; /* one piece a part */
    int64_t first = sim->slices > SLICES_MAX ? sim->slices - SLICES_MAX : 0;
    for (int64_t i = first; i < sim->slices; i++) {
        const struct slice *s = &sim->slice[i % SLICES_MAX];
        if (s->step == p->step && s->final == p->final && s->parts == parts)
            gone[s->part] = s->gone;
    }
    for (int i = 0; i < parts; i++)
        any = any || gone[i];
    return any;
}

/* One of that name that does not verify, and none that does. */
static bool damage_stands(const struct sim *sim, int64_t step, bool final, uint64_t hash)
{
    bool damaged = false;
    for (int i = 0; i < sim->published_count; i++) {
        const struct published *q = &sim->published[i];
        if (q->step != step || q->final != final || q->hash != hash || !published_stands(q))
            continue;
        if (!q->damaged)
            return false;
        damaged = true;
    }
    return damaged;
}

static void store_write(struct sim *sim, int node, const struct msg_snapshot *s)
{
    struct agent_event *e = stored_part(sim, node, AGENT_WRITTEN, MSG_CHECKPOINTED, -1, s->parts);
    struct msg_checkpointed *c = &((struct message *)(uintptr_t)e->message)->checkpointed;
    struct node *n = &sim->node[node];
    if (n->store_users++)
        sim_fail(sim, "worker %d's snapshot memory has two users", n->worker);
    struct msg_state there = content_state(&n->taken);
    if (!msg_state_equal(&there, &s->state))
        sim_fail(sim, "R4: worker %d's agent writes what is not in the snapshot memory", n->worker);
    if (store_is_away(sim) || trouble_takes_nothing(sim, node) ||
        (sim->store_full && !sim_chance(sim, sim->store_takes))) {
        fail_for_now(e, s->state.step);
        return;
    }
    if (trouble_disk_full(sim, node)) {
        fail(e, s->state.step, CLASS_MACHINE, "this disk is full");
        e->again = trouble_disk_refuses(sim, node);
        if (sim->plant == PLANT_UNWRITTEN)
            e->kind = AGENT_TICK;
        sim->planted += sim->plant == PLANT_UNWRITTEN;
        sim->tallies.of[TALLY_UNWRITTEN]++;
        return;
    }
    if (sim->scenario.storage_fails && sim_chance(sim, 10)) {
        fail(e, s->state.step, CLASS_MACHINE, "no space left on device");
        e->again = sim_chance(sim, 50);
        sim->tallies.of[TALLY_UNWRITTEN]++;
        return;
    }
    add_slice(sim, node, s);
    c->step = s->state.step;
    c->final = s->final;
    c->exact = s->exact;
    c->image = s->image;
    c->damaged = damage_stands(sim, s->state.step, s->final, sim_lineage_hash(s->state.lineage));
    memcpy(c->lineage, s->state.lineage, RM_HASH_BYTES);
    c->part = s->part;
    c->parts = s->parts;
    c->count = 1;
    c->took = sim->replay ? sim->replay->save / s->parts : RM_MS;
    snprintf(c->piece[0].file, sizeof c->piece[0].file, "p-%d-of-%d", s->part, s->parts);
    c->piece[0].offset = s->parts * PARTS_BASE + s->part;
    c->piece[0].bytes = sim->replay ? state_bytes / s->parts : s->parts;
    store_name_bits(c->piece[0].sha256, sim->node[node].taken.flaw);
}

/* What stands whole under that name already stays as it is; else there is a new one. */
static int place_for(const struct sim *sim, const struct msg_publish *p)
{
    for (int i = 0; i < sim->published_count; i++) {
        const struct published *q = &sim->published[i];
        bool same = q->step == p->step && q->final == p->final && q->hash == sim_lineage_hash(p->lineage);
        if (same && published_stands(q) && !q->damaged)
            return i;
    }
    return sim->published_count;
}

/* It reads damage: what is there, or with its own machine's memory in what is sound. */
static bool reads_damage(struct sim *sim, const struct msg_publish *p, bool sound)
{
    if (sound)
        return sim->scenario.damage && sim_chance(sim, 5);
    return damage_stands(sim, p->step, p->final, sim_lineage_hash(p->lineage));
}

static void store_publish(struct sim *sim, int node, const struct msg_publish *p)
{
    bool pending = sim_chance(sim, 50), damaged = sim->scenario.damage && sim_chance(sim, 30);
    int i = place_for(sim, p);
    uint64_t flaw = check_publish(sim, p);
    if (is_piece_gone(sim, p) && i == sim->published_count) {
        fail(stored(sim, node, AGENT_PUBLISHED, MSG_PUBLISHED, -1), p->step, CLASS_OBJECT,
             "a piece is missing");
        return;
    }
    if (reads_damage(sim, p, i < sim->published_count) && !p->replaces) {
        fail(stored(sim, node, AGENT_PUBLISHED, MSG_PUBLISHED, -1), p->step, CLASS_OBJECT,
             "what is there is damaged, and nobody else has said so");
        return;
    }
    bool lost =
        store_is_away(sim) || trouble_takes_nothing(sim, node); /* the answer alone, or the request with it */
    if (sim->store_full || trouble_disk_refuses(sim, node) || (lost && sim_chance(sim, 70))) {
        fail_for_now(stored(sim, node, AGENT_PUBLISHED, MSG_PUBLISHED, -1), p->step);
        return;
    }
    if (i == SLICES_MAX) {
        sim_fail(sim, "more checkpoints than there is room for");
        return;
    }
    if (i == sim->published_count) {
        sim->published[sim->published_count++] =
            (struct published){.step = p->step,
                               .final = p->final,
                               .damaged = damaged,
                               .pending = pending,
                               .stood = sim->now,
                               .odd = p->fingerprint[0] ? !strcmp(p->fingerprint, sim_fingerprint[1])
                                                        : sim->node[node].odd, /* as its agent knows it */
                               .hash = sim_lineage_hash(p->lineage),
                               .flaw = flaw};
    }
    struct agent_event *e = stored(sim, node, AGENT_PUBLISHED, MSG_PUBLISHED, i);
    struct msg_published *m = &((struct message *)(uintptr_t)e->message)->published;
    m->step = p->step;
    m->final = p->final;
    m->bytes = sim->replay ? state_bytes : 1;
    m->took = RM_MS;
    if (lost)
        fail_for_now(e, p->step);
}

void store_earlier(struct sim *sim, int64_t step)
{
    sim->published[sim->published_count++] =
        (struct published){.step = step,
                           .damaged = sim->scenario.damage && sim_chance(sim, 50),
                           .stood = trouble_long_known(sim),
                           .hash = check_exact_hash(step)};
}

/* -1: there is none. */
static int64_t newest_below(const struct sim *sim, int64_t step)
{
    int64_t newest = -1;
    for (int i = 0; i < sim->published_count; i++) {
        int64_t s = sim->published[i].step;
        newest = s < step && s > newest ? s : newest;
    }
    return newest;
}

static void store_list(struct sim *sim, int node)
{
    struct agent_event *e = stored(sim, node, AGENT_LISTED, MSG_CHECKPOINTS, -1);
    struct msg_checkpoints *list = &((struct message *)(uintptr_t)e->message)->checkpoints;
    text_copy(list->folder, sizeof list->folder, "one for all");
    if (sim->plant == PLANT_FIRST_UNREAD && !sim->forms) {
        sim->planted += sim->published_count > 0;
        return;
    }
    if (trouble_gives_nothing(sim, node)) {
        fail(e, -1, CLASS_PASSING, "the store does not answer");
        return;
    }
    if (trouble_lists_fail(sim, node)) {
        sim->planted += sim->plant == PLANT_LIST_IS_EMPTY;
        if (sim->plant != PLANT_LIST_IS_EMPTY)
            fail(e, -1, CLASS_PASSING, "the checkpoints can't be listed");
        return;
    }
    for (int64_t step = newest_below(sim, INT64_MAX); step >= 0; step = newest_below(sim, step)) {
        if (list->count == RM_CHECKPOINTS_LISTED)
            break;
        for (int i = 0; i < sim->published_count && list->count < RM_CHECKPOINTS_LISTED; i++) {
            const struct published *p = &sim->published[i];
            if (p->step != step || !published_stands(p))
                continue;
            struct msg_checkpoint *c = &list->checkpoint[list->count++];
            c->step = step;
            c->final = p->final;
            sim_lineage(p->hash, c->lineage);
            text_copy(c->fingerprint, sizeof c->fingerprint, sim_fingerprint[p->odd]);
        }
    }
}

static struct published *find_published(struct sim *sim, const struct msg_state *want)
{
    struct published *found = NULL;
    for (int i = 0; i < sim->published_count; i++) {
        struct published *p = &sim->published[i];
        if (published_stands(p) && p->step == want->step && p->hash == sim_lineage_hash(want->lineage))
            found = p;
    }
    return found;
}

bool published_stands(const struct published *p)
{
    return !p->pending && !p->gone;
}

/* Those that stand and are not the end of a run, newest first; which[i]: the place of entry[i]. Of the
 * thousands that a long trace publishes few stand: each is put where it belongs among these. */
static int kept_ones(const struct sim *sim, struct keep_entry *entry, int *which)
{
    int count = 0;
    for (int i = 0; i < sim->published_count; i++) {
        const struct published *p = &sim->published[i];
        if (p->final || !published_stands(p))
            continue;
        int at = count++;
        for (; at > 0 && entry[at - 1].step < p->step; at--) {
            entry[at] = entry[at - 1];
            which[at] = which[at - 1];
        }
        which[at] = i;
        entry[at] = (struct keep_entry){.step = p->step, .readable = true};
    }
    return count;
}

/* `keep` of those up to what was published stay, without this one. */
static void check_may_go(struct sim *sim, const struct keep_entry *entry, int count, int at,
                         int64_t published)
{
    int stay = 0;
    for (int i = 0; i < count; i++)
        stay += !entry[i].goes && entry[i].step <= published && i != at;
    if (entry[at].step > published || stay < sim->scenario.keep)
        sim_fail(sim,
                 "the checkpoint of step %" PRId64 " makes way for that of step %" PRId64
                 ", and %d of %d stay",
                 entry[at].step, published, stay, sim->scenario.keep);
}

/* What a publisher does last. */
static void store_keep(struct sim *sim, int64_t published)
{
    static _Thread_local struct keep_entry entry[SLICES_MAX];
    static _Thread_local int which[SLICES_MAX];
    int count = kept_ones(sim, entry, which);
    bool planted = sim->plant == PLANT_KEEP_NEWER && count && entry[0].step > published;
    sim->planted += planted;
    keep_rule(entry, count, planted ? entry[0].step : published, sim->scenario.keep);
    for (int i = 0; i < count; i++) {
        if (!entry[i].goes)
            continue;
        check_may_go(sim, entry, count, i, published);
        sim->published[which[i]].gone = true;
        sim->tallies.of[TALLY_MADE_WAY]++;
    }
}

/* What was damaged there was put aside, and does not come back. Of two who wrote the same manifest one
 * stands: where this one has made way for the other meanwhile, that one. */
void store_stands(struct sim *sim, int published)
{
    struct published *p = &sim->published[published];
    p->pending = false;
    p->stood = sim->now;
    for (int i = 0; i < published; i++) {
        struct published *q = &sim->published[i];
        bool same = q->step == p->step && q->final == p->final && q->hash == p->hash;
        q->gone = q->gone || (same && published_stands(q) && !p->gone);
    }
    store_keep(sim, p->step);
}

/* Shares are read one by one: that one of them is damaged is found by whoever reads that one. */
static bool finds_damage(struct sim *sim, const struct published *p, const struct msg_load *l)
{
    if (!p->damaged)
        return false;
    int bad = (int)(p->hash % (uint64_t)l->parts);
    return set_has(l->shares, bad) || sim_chance(sim, 20);
}

static void store_load(struct sim *sim, int node, const struct message *request)
{
    struct agent_event *e = stored_part(sim, node, AGENT_LOADED, MSG_LOADED, -1, request->load.parts);
    struct message *answer = (struct message *)(uintptr_t)e->message;
    struct msg_loaded *m = &answer->loaded;
    struct node *n = &sim->node[node];
    const struct msg_load *l = &request->load;
    if (n->loads++)
        sim_fail(sim, "worker %d's agent reads two checkpoints at once", n->worker);
    if (l->in_state && n->memory.whole)
        sim_fail(sim, "worker %d's agent reads a checkpoint over a state that is held", n->worker);
    n->load_stop = false;
    n->load_in_state = l->in_state;
    if (trouble_reads_fail(sim, node)) {
        bool planted = sim->plant == PLANT_READ_IS_DAMAGE;
        sim->planted += planted;
        fail(e, l->state.step, planted ? CLASS_OBJECT : CLASS_MACHINE, "input/output error");
        return;
    }
    if (trouble_gives_nothing(sim, node)) {
        fail(e, l->state.step, CLASS_PASSING, "the store does not answer");
        return;
    }
    struct published *found = find_published(sim, &l->state);
    if (!found) {
        fail(e, l->state.step, CLASS_PASSING, "it is not there any more");
        return;
    }
    if (finds_damage(sim, found, l)) {
        sim->tallies.of[TALLY_DAMAGED]++;
        fail(e, l->state.step, CLASS_OBJECT, "a hash does not match");
        return;
    }
    n->loaded = content_new(found->step, found->hash);
    n->loaded.flaw = found->flaw;
    answer->generation = request->generation;
    m->state = l->state;
    m->parts = l->parts;
    m->shares = l->shares;
    m->in_state = l->in_state;
}

void store_action(struct sim *sim, int node, const struct agent_action *a)
{
    switch (a->kind) {
    case AGENT_WRITE:
        store_write(sim, node, &a->message->snapshot);
        break;
    case AGENT_PUBLISH:
        store_publish(sim, node, &a->message->publish);
        break;
    case AGENT_LIST:
        store_list(sim, node);
        break;
    case AGENT_LOAD:
        store_load(sim, node, a->message);
        break;
    case AGENT_YIELD: /* what fails here fails soon */
        break;
    case AGENT_LOAD_STOP:
        sim->node[node].load_stop = true;
        break;
    default:
        sim_fail(sim, "an action that the simulator does not know: %d", a->kind);
    }
}
