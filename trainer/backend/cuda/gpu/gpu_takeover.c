/* The state's memory outlives this process: a descriptor of it lies on a shelf of the agent's, and the next
 * trainer begins with what lies there, once all of it was added up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"
#include "trainer/backend/cuda/kernels/prove.h"
#include "trainer/backend/cuda/kernels/restore.h"
#include "trainer/backend/cuda/takeover.h"
#include "trainer/exact/proof.h"

static const char gpu_note_magic[] = "GPU STATE 1";

/* What lies beside the descriptor. */
struct gpu_note {
    char magic[sizeof gpu_note_magic];
    char uuid[CUDA_UUID_TEXT];
    uint64_t bytes;
};

static struct gpu_note note_of(const struct backend_gpu *g, size_t bytes)
{
    struct gpu_note note;
    memset(&note, 0, sizeof note); /* also between its members */
    memcpy(note.magic, gpu_note_magic, sizeof note.magic);
    memcpy(note.uuid, g->device->uuid, sizeof note.uuid);
    note.bytes = bytes;
    return note;
}

/* ---- the memory ---- */

static void forget_shelf(void *ctx)
{
    shelf_empty(ctx);
}

void gpu_takeover_open(struct backend_gpu *g)
{
    struct gpu_note note;
    struct error why;
    int fd;
    if (!g->shelved)
        return;
    g->device->sick = forget_shelf;
    g->device->sick_ctx = &g->shelf;
    if (!shelf_look(&g->shelf, &fd, &note, sizeof note))
        return;
    const struct gpu_note own = note_of(g, note.bytes);
    g->left = !memcmp(&note, &own, sizeof note) &&
              cuda_memory_import(&g->bulk, g->device, fd, note.bytes, &why) == 0;
    close(fd);
    if (!g->left)
        shelf_empty(&g->shelf);
}

bool gpu_takeover_memory(struct backend_gpu *g, size_t bytes)
{
    const size_t unit = g->device->granularity;
    const bool fits = g->left && g->bulk.bytes == (bytes + unit - 1) / unit * unit;
    if (g->left && !fits) {
        shelf_empty(&g->shelf);
        cuda_memory_clear(&g->bulk);
    }
    g->left = false;
    return fits;
}

/* Only now that the memfd says nothing of it that is not so. Training does not need it. */
static void leave_memory(struct backend_gpu *g)
{
    const struct gpu_note note = note_of(g, g->bulk.bytes);
    struct error why;
    int fd = -1;
    int result = cuda_memory_export(&g->bulk, &fd, &why);
    if (result == 0)
        result = shelf_lay(&g->shelf, fd, &note, sizeof note, &why);
    if (fd >= 0)
        close(fd);
    if (result < 0)
        text_copy(g->base.found, sizeof g->base.found, why.text);
}

/* ---- what is looked at ---- */

struct estate {
    struct backend_gpu *g;
    struct state *state;
    struct cuda_left left;
    int64_t *stamp;               // (pieces)
    uint64_t *noted, *adds_up_to; // (pieces)
    struct state_slot *old;       /* a slot's whole content, one after the other */
    struct cuda_left_slot slot[STATE_THREADS_MAX];
};

static bool open_estate(struct estate *e, struct backend_gpu *g)
{
    struct state *s = g->state;
    const size_t pieces = (size_t)s->pieces;
    *e = (struct estate){.g = g,
                         .state = s,
                         .stamp = calloc(pieces, sizeof *e->stamp),
                         .noted = calloc(pieces, sizeof *e->noted),
                         .adds_up_to = calloc(pieces, sizeof *e->adds_up_to),
                         .old = malloc(sizeof *e->old)};
    e->left = (struct cuda_left){.step = state_current(s)->step,
                                 .pending = state_pending(s),
                                 .proven = state_proven(s),
                                 .pieces = s->pieces,
                                 .slots = STATE_THREADS_MAX,
                                 .stamp = e->stamp,
                                 .noted = e->noted,
                                 .adds_up_to = e->adds_up_to,
                                 .slot = e->slot};
    return e->stamp && e->noted && e->adds_up_to && e->old;
}

static void clear_estate(struct estate *e)
{
    free(e->stamp);
    free(e->noted);
    free(e->adds_up_to);
    free(e->old);
}

static int fetch(const struct estate *e, void *to, const volatile void *from, size_t bytes, struct error *err)
{
    return memory_read(e->state->in, to, (struct far){(uint64_t)(uintptr_t)from}, bytes, err);
}

static int store(const struct estate *e, const volatile void *to, const void *from, size_t bytes,
                 struct error *err)
{
    return memory_write(e->state->in, (struct far){(uint64_t)(uintptr_t)to}, from, bytes, err);
}

/* Into a table that is nobody's between updates. */
static int add_up(struct estate *e, struct error *err)
{
    struct backend_gpu *g = e->g;
    const struct state_place *at = &e->state->place[STATE_HOME];
    const struct prove_args args = {.params = at->params,
                                    .m = at->m,
                                    .v = at->v,
                                    .piece = gpu_at(g->tables.piece),
                                    .proof = gpu_at(g->tables.sums),
                                    .pieces = e->left.pieces};
    const size_t bytes = (size_t)e->left.pieces * sizeof(uint64_t);
    if (gpu_launch(g, GPU_PROVE, e->left.pieces, &args, err) < 0 || cuda_stream_wait(&g->stream, err) < 0 ||
        fetch(e, e->adds_up_to, args.proof, bytes, err) < 0 ||
        fetch(e, e->noted, e->state->proof, bytes, err) < 0)
        return -1;
    return fetch(e, e->stamp, e->state->stamp, bytes, err);
}

static int look_at_heads(struct estate *e, struct error *err)
{
    for (int i = 0; i < e->left.slots; i++) {
        if (fetch(e, e->old, &e->state->slot[i], offsetof(struct state_slot, params), err) < 0)
            return -1;
        e->slot[i] = (struct cuda_left_slot){.valid = e->old->valid, .piece = e->old->piece};
    }
    return 0;
}

static int add_up_slots(struct estate *e, struct error *err)
{
    for (int i = 0; i < e->left.slots; i++) {
        if (!e->slot[i].valid)
            continue;
        if (fetch(e, e->old, &e->state->slot[i], sizeof *e->old, err) < 0)
            return -1;
        const int count = e->state->piece[e->slot[i].piece].count;
        e->slot[i].sum = proof_piece(e->old->params, e->old->m, e->old->v, count);
    }
    return 0;
}

/* 1: the words of each update that somebody may still ask for are those of its lanes; 0: not, or nobody can
 * tell of one that is to be applied. */
static int words_are_whole(struct estate *e, char why[RM_WHY_MAX], struct error *err)
{
    const struct state *s = e->state;
    for (int b = 0; b < 2; b++) {
        const struct state_record_update *u = &s->header->update[b];
        const int64_t ahead = u->step - e->left.step;
        bool whole;
        if (!u->valid || ahead < 0 || ahead > 1)
            continue;
        if (gpu_words_are_whole(e->g, b, &whole, err) < 0)
            return -1;
        if (whole && !(s->shape.fast && ahead))
            continue;
        snprintf(why, RM_WHY_MAX, "the words of step %lld %s", (long long)u->step,
                 whole ? "are of fp32, and have no sum that they could be held to" : "have another sum");
        return 0;
    }
    return 1;
}

static int is_whole(struct estate *e, char why[RM_WHY_MAX], struct error *err)
{
    if (look_at_heads(e, err) < 0)
        return -1;
    if (!cuda_takeover_slots(&e->left, why))
        return 0;
    if (add_up(e, err) < 0 || add_up_slots(e, err) < 0)
        return -1;
    return cuda_takeover_decide(&e->left, why) ? words_are_whole(e, why, err) : 0;
}

/* ---- what is done ---- */

/* As whoever was changing it would have gone on: the stamp, then the slot. */
static int settle(const struct estate *e, int slot, struct error *err)
{
    const int64_t stamp = e->left.step + 1;
    const uint32_t valid = 0;
    if (store(e, &e->state->stamp[e->slot[slot].piece], &stamp, sizeof stamp, err) < 0)
        return -1;
    return store(e, &e->state->slot[slot].valid, &valid, sizeof valid, err);
}

static int restore(const struct estate *e, int slots, struct error *err)
{
    struct backend_gpu *g = e->g;
    const struct state *s = e->state;
    const struct state_place *at = &s->place[STATE_HOME];
    const struct restore_args args = {.params = at->params,
                                      .m = at->m,
                                      .v = at->v,
                                      .piece = gpu_at(g->tables.piece),
                                      .slot = (void *)s->slot,
                                      .stamp = (void *)s->stamp,
                                      .proof = s->proof,
                                      .step = e->left.step};
    if (cuda_kernel_launch(&g->kernel[GPU_RESTORE], &g->stream, slots, &args, err) < 0)
        return -1;
    return cuda_stream_wait(&g->stream, err);
}

static int repair(struct estate *e, int *ret_pieces, struct error *err)
{
    int last = 0;
    *ret_pieces = 0;
    for (int i = 0; i < e->left.slots; i++) {
        if (!e->slot[i].valid)
            continue;
        ++*ret_pieces;
        if (!e->slot[i].settled)
            last = i + 1;
        else if (settle(e, i, err) < 0)
            return -1;
    }
    return last ? restore(e, last, err) : 0;
}

/* What it holds is what was left, or nothing. */
static int take_over(struct estate *e, struct error *err)
{
    struct backend *b = &e->g->base;
    int repaired;
    int whole = is_whole(e, b->found, err);
    if (whole < 0)
        return -1;
    b->kept = whole;
    if (!whole)
        return state_forget(e->state, err);
    if (repair(e, &repaired, err) < 0)
        return -1;
    snprintf(b->found, sizeof b->found, "%d pieces of step %lld add up, %d of them half done%s",
             e->left.pieces, (long long)e->left.step, repaired,
             e->left.pending ? "; an update is to be finished" : "");
    return 0;
}

int gpu_takeover_attach(struct backend_gpu *g, struct error *err)
{
    struct estate e = {0};
    if (!g->shelved)
        return 0;
    if (!g->base.kept) {
        leave_memory(g);
        return 0;
    }
    if (!state_current(g->state)) { /* nor do its slots hold anything: state_open */
        g->base.kept = false;
        return 0;
    }
    int result = open_estate(&e, g)
                     ? take_over(&e, err)
                     : err_set(err, ERR_MACHINE, "no memory for a look at the state that was left");
    clear_estate(&e);
    if (result < 0) /* or the next trainer would get no further */
        shelf_empty(&g->shelf);
    return result;
}
