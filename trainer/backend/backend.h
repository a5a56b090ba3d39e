/* Who computes: a lane with its addition to the sums of a step, losses and logits, and the update that leads
 * from state(s) to state(s+1). The engine (trainer/engine) knows which lane is done when and with whom; how,
 * and where the state's arrays lie, is known behind this table of functions. Nothing here is asked for
 * single elements: a call is a lane, a pass over the state, or a copy of a large part of it.
 *
 * It is drawn so that three fit:
 *
 *     the C model on a CPU   cpu/backend_cpu.h. The state lies in the memfd.
 *     the C model on a GPU   cuda/gpu/backend_gpu.h. The arrays lie far away (`memory`).
 *     a user's program       program/backend_program.h: it computes lanes and applies updates itself. The
 *                            state is the image that it makes of it: `first` asks for the one that it begins
 *                            with, and `commit` hands it the sum; it has neither `losses` nor `logits`.
 *
 * What two workers must do alike is not up to a backend: header words, verdict, lineage and learning rate are
 * trainer/exact's, and words are integers, whose sums are exact. Bits depend on shape, weights, tokens and
 * the fingerprint only.
 *
 * Threads: one call at a time. `decide` and `words_to` come from the thread that exchanges, the rest from the
 * one that opened it. A call returns when its result may be relied on, but for `lane`. What fails is the
 * machine's (ERR_MACHINE: the device is lost, the program is gone), or ERR_ABORTED after `stop`: not 0 asks
 * to give up soon, NULL never does.
 *
 * A step:
 *
 *     weights(b, params)                  where they changed, or lie elsewhere now
 *     begin(b, &pass)
 *     lane(b, n, tokens, stop)            for each own lane
 *     end(b, &sums)
 *     the collective sums sums.header to sums.header_to
 *     decide(b, &verdict)
 *       audited(b, &found), and no VERDICT_LINEAGE: begin with the same .k and
 *           .disputed = found.lane + 1, and the same lanes once more;
 *           where that one differs, too: nothing may be committed
 *       VERDICT_FITS: words_to(b, &to), and where true the sum of all sums.words goes there
 *                     commit(b, &info)
 *       VERDICT_RESCALE: begin with .k = verdict.k, and the same lanes once more
 *       others: nothing may be committed
 *
 * A pass may be given up at any point before commit: begin starts anew. Or, where resume is there, it is gone
 * on with in another ring: resume in begin's place, the lanes that are lacking, end. */
#ifndef RM_BACKEND_BACKEND_H
#define RM_BACKEND_BACKEND_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/lane_shares.h"
#include "common/base/limits.h"
#include "common/model/layout.h"
#include "trainer/backend/memory.h"
#include "trainer/exact/audit.h"
#include "trainer/exact/schedule.h"
#include "trainer/exact/verdict.h"

struct state; /* trainer/state/state.h */
struct state_point;
struct transport; /* trainer/backend/transport.h */

/* AdamW's; a program that updates itself has its own. */
struct backend_rule {
    struct schedule schedule;
    double beta1, beta2, epsilon, weight_decay;
    double clip_norm; /* 0: no clipping */
};

struct shelf;

struct backend_options {
    const struct model_layout *layout; /* must outlive it */
    int sequences;                     /* of a lane, shape->context tokens each */
    int threads;                       /* on CPUs */
    const char *isa;                   /* instruction set by name, or "Auto"; must outlive it */
    bool bf16, recompute;
    bool mixed; /* ranks may be of other hardware: none says of a state what only some of them can say */
    struct backend_rule rule;  /* needed by commit, check and finish alone */
    atomic_llong *pulse;       /* grows while anything moves; NULL: nobody looks */
    const struct shelf *shelf; /* for far memory that is to outlive this process (common/os/shelf.h), copied;
                                  NULL: it dies with it */
};

/* Memory of this process's machine, in bytes. */
struct backend_needs {
    size_t lane;  /* for lanes, evaluation and all else that comes and goes with this process */
    size_t state; /* for the training state, where there is none yet */
};

struct backend_pass {
    int rank, world;  /* 0 and 1 where there is nobody else */
    uint32_t flags;   /* LANES_STOP | LANES_SAVE | LANES_READY (trainer/exact/header.h) */
    uint32_t tokens;  /* that a lane learns from */
    const int32_t *k; // (tensors) NULL: the state's own; else those of a VERDICT_RESCALE
    /* Whose the lanes are, as far as they are not dealt out; valid until `end`. NULL: the usual ones. */
    const struct lane_shares *shares;
    bool room;    /* one lane more of this rank would be done no later than what others have */
    int disputed; /* lane + 1 that all are to compute, since two differed about it; 0: none */
};

/* What this rank adds in a pass; valid until the next one begins. */
struct backend_sums {
    struct memory *in;      /* of the words; NULL: this process's own */
    struct far words;       // (words_count)
    const uint32_t *header; // (header_count)
    uint32_t *header_to;    // (header_count) for the sum of all ranks'
    int64_t words_count, header_count;
    bool floats; /* words are fp32 (reduction: fast); header never is */
};

struct backend_info {
    int64_t step; /* now held */
    double loss;  /* mean over lanes */
    double norm;  /* of the mean gradient, before clipping */
    double clip;  /* factor in (0, 1] that clipping took it by; NaN: who computes does not say */
    double rate;  /* learning rate; likewise */
};

struct backend;

struct backend_ops {
    /* NULL is fine. */
    void (*free)(struct backend *b);
    /* What it will take of this machine's memory, asked before it takes much. */
    struct backend_needs (*needs)(const struct backend *b);
    /* The fingerprint's named half: everything that decides bits, as text; RM_FINGERPRINT_MAX bytes. */
    void (*fingerprint)(const struct backend *b, char *out);
    /* Its measured half: hash of what is computed from fixed weights and tokens, RM_HASH_BYTES. Two of one
     * name with other probes are not both sound. NULL: nothing can be measured. */
    int (*probe)(struct backend *b, uint8_t *out, struct error *err);

    /* Far memory for the state's arrays and words: what was in it is lost, unless b->kept says that it is
     * what was left on the shelf. NULL: they lie in the memfd. */
    int (*memory)(struct backend *b, size_t bytes, struct memory **ret, struct far *ret_base,
                  struct error *err);
    /* From here on this is the state, until free; it outlives the backend. Init and copies need none, nor do
     * losses and logits where weights may lie in this process's memory. Of memory that was kept it says in
     * b->found what it makes of it: what is not whole, the state holds no more. */
    int (*attach)(struct backend *b, struct state *state, struct error *err);

    /* The first weights (parameters), here, of a seed. NULL: see first. */
    int (*init)(struct backend *b, uint64_t seed, float *params, struct error *err);
    /* The state is what a program begins with; out (RM_HASH_BYTES): its image's hash. ERR_MACHINE where it
     * has moved on since. NULL: see init. */
    int (*first)(struct backend *b, uint8_t *out, struct error *err);
    /* weightsSha256 (RM_HASH_BYTES). NULL: state_digest says it. */
    int (*digest)(struct backend *b, uint8_t *out, struct error *err);
    /* These (parameters) are the weights: in the state's memory, or where there is no state in this
     * process's. Again whenever their values changed. */
    int (*weights)(struct backend *b, struct far params, struct error *err);
    /* Now and then, from any thread, whatever is under way. NULL: nothing needs it. */
    void (*idle)(struct backend *b);
    /* Does a lane for nothing, with any weights, so that the first one that counts is no slower. */
    void (*warm_up)(struct backend *b, struct far params);

    /* The state holds a step. Its kept update stays, the elder buffer of words is taken. */
    int (*begin)(struct backend *b, const struct backend_pass *pass, struct error *err);
    /* The pass that was begun last, with nobody else's state, k and lanes, but as this rank of this ring:
     * what its lanes added up to stands. It was begun in a world above 1. NULL: a pass can't be gone on with.
     */
    int (*resume)(struct backend *b, const struct backend_pass *pass, struct error *err);
    /* tokens (sequences, context + 1; NULL where who computes finds its samples itself): forward, backward,
     * and the gradient of the lane's mean loss added to this rank's words, each element rounded once. Each
     * lane once a pass, in any order. It may return before it is done: tokens may be forgotten all the same,
     * and what fails is told by a later call of the pass. A token outside the vocabulary is ERR_DATA. */
    int (*lane)(struct backend *b, int lane, const int32_t *tokens, const atomic_int *stop,
                struct error *err);
    /* All lanes are done. lane_us: how long each took until lane returned, to which who returned before it
     * was done adds what it still waits for; 0: nobody knows, as the pass before. */
    int (*end)(struct backend *b, uint32_t lane_us, struct backend_sums *ret, struct error *err);
    /* The header's sum is there: all ranks are in this step. */
    void (*decide)(struct backend *b, struct verdict *ret);
    /* After it: whether ranks say different things of a lane (trainer/exact/audit.h). NULL: it audits none.
     */
    bool (*audited)(const struct backend *b, struct audit_found *ret);
    /* The pass fits (asserted): the kept update is gone, and the sum of all ranks' words belongs there. False
     * in a world of 1, whose own words are that sum. */
    bool (*words_to)(struct backend *b, struct far *ret);
    /* Norm, lineage, the update kept, and applied to the state. From the moment that it is kept, a successor
     * would finish it. */
    int (*commit)(struct backend *b, struct backend_info *ret, struct error *err);

    /* Would the update that was received lead from the state held to this one? ERR_PROTOCOL where it does
     * not, and nothing has changed. */
    int (*check)(struct backend *b, const struct state_point *wanted, struct error *err);
    /* Repair: applies the pending update (state_pending) to all that lacks it. */
    int (*finish)(struct backend *b, struct error *err);

    /* Has the state the bits that it was written with, as far as its own sums say? NULL: nobody knows. */
    bool (*sound)(struct backend *b);

    /* Mean loss of each of n sequences, forward only, each alone. tokens (n, context + 1), losses (n). NULL:
     * it has none. */
    int (*losses)(struct backend *b, const int32_t *tokens, int n, float *losses, const atomic_int *stop,
                  struct error *err);
    /* Logits (vocabulary) that follow the first `length` (<= context) tokens of one sequence. known: the last
     * call on b was this one with the first `known` of the same tokens, so that it may go on from there; the
     * logits are the same within rounding. 0: it was not. NULL: none. */
    int (*logits)(struct backend *b, const int32_t *tokens, int length, int known, float *logits,
                  struct error *err);

    /* A sum over all of the state, so that workers can see whether theirs are the same; 0: not known. NULL:
     * it never is. */
    int (*image_sum)(struct backend *b, uint64_t *ret, struct error *err);

    /* A second way for the words in its memory, beside the ring; the caller's, freed before the backend. key:
     * the job's, as 64 hex digits. Not there: ERR_MACHINE with a sentence. NULL: there never is one. */
    int (*transport)(struct backend *b, const char *key, struct transport **ret, struct error *err);

    /* Large parts of the state's memory to this process's (a snapshot, a slice) and back (a checkpoint). */
    int (*copy_out)(struct backend *b, void *to, struct far from, size_t bytes, struct error *err);
    int (*copy_in)(struct backend *b, struct far to, const void *from, size_t bytes, struct error *err);
};

struct backend {
    const struct backend_ops *ops;
    bool aims; /* an update may leave the state in memory that is shared with others (state_add_spare) */
    bool kept; /* memory gave what was left on the shelf, and attach has found nothing wrong with it */
    char found[RM_WHY_MAX]; /* by attach: what was left, or why nothing is used or can be; "": nothing was */
    int64_t image_bytes;    /* the state is one array, an image of so many bytes; 0: a model's (arrays.h) */
};

#endif
