/* Adds up, purpose by purpose, the memory that a trainer of one shape takes on a GPU, and says what would
 * make it fit where it does not. backend_gpu.c asks before it takes any. */
#include "trainer/backend/cuda/needs.h"

#include <stdio.h>
#include <string.h>

#include "common/base/str.h"
#include "trainer/backend/cuda/kernels/norm.h"
#include "trainer/backend/cuda/kernels/pieces.h"
#include "trainer/backend/cuda/kernels/sums.h"

enum {
    FLOAT_BYTES = 4,
    HALF_BYTES = 2,
    STAMP_BYTES = 8,
    PROOF_BYTES = 8,
    TABLE_BYTES = sizeof(struct cuda_piece) + sizeof(struct sums_of_piece),
    VOCABULARY_UNIT = 128, /* logits have so many columns, or a multiple: in memory only */
    STREAMS_COMPUTING = 1,
};

static const int64_t MIB = 1 << 20, GIB = 1 << 30;
static const int64_t WORKSPACE = 32 << 20; /* what cuBLASLt's best algorithms ask for on sm_90 */
static const int64_t RESERVE = 512 << 20;  /* a context with its local memory, our code, cuBLASLt's, graphs */
static const int64_t OTHERS_LEAST =
    1 << 30; /* a GPU of which so much is gone before anything began is shared */

static const struct {
    const char *text, *brief;
} purposes[CUDA_PURPOSES] = {
    [CUDA_NEEDS_STATE] = {"weights and moments (fp32)", "weights and moments"},
    [CUDA_NEEDS_WORDS] = {"gradients as whole numbers, twice", "gradients"},
    [CUDA_NEEDS_UNDO] = {"undo slots and tables of the update", "undo slots and tables"},
    [CUDA_NEEDS_HALF] = {"weights in bf16", "weights in bf16"},
    [CUDA_NEEDS_GRADIENT] = {"gradients of two tensors at a time", "two gradients"},
    [CUDA_NEEDS_ACTIVATIONS] = {"activations of a lane", "activations"},
    [CUDA_NEEDS_LOGITS] = {"logits of a lane", "logits"},
    [CUDA_NEEDS_WORKSPACE] = {"workspace of matrix products", "workspace"},
    [CUDA_NEEDS_RESERVE] = {"code, graphs and the driver's own", "code and driver"},
};

const char *cuda_purpose_text(enum cuda_purpose purpose)
{
    return purposes[purpose].text;
}

/* ---- how much ---- */

static int64_t pieces_of(const struct model_layout *l)
{
    int64_t pieces = 0;
    for (int t = 0; t < l->tensors; t++)
        pieces += (l->tensor[t].count + PIECE_MOST - 1) / PIECE_MOST;
    return pieces;
}

/* What one token needs in one block. What came into it: the residual stream, in fp32. */
static int64_t input_bytes(const struct model_shape *m)
{
    return (int64_t)m->width * FLOAT_BYTES;
}

/* Queries, keys and values, attention's result and the middle's four widths before GELU; the stream once more
 * between its halves; and what norms and attention keep of each row. */
static int64_t products_bytes(const struct model_shape *m, int64_t number)
{
    const int64_t widths = 3 + 1 + 4, rows = 2 * 2 + m->heads;
    return widths * m->width * number + input_bytes(m) + rows * FLOAT_BYTES;
}

/* These are both norms' results, and the four widths behind GELU. */
static int64_t cheap_bytes(const struct model_shape *m, int64_t number)
{
    const int64_t widths = 1 + 1 + 4;
    return widths * m->width * number;
}

/* What one token needs beside its blocks, once: the stream behind them, its gradient, and that of a norm's
 * result, in fp32; what a product adds to the stream or takes from it, and four widths of gradient, and the
 * last norm's result; of each row what the last norm and attention's way back keep, its loss and its token;
 * and its part of the shares that norms' gradients are added up from. */
static int64_t between_bytes(const struct model_shape *m, int64_t number)
{
    const int64_t widths = 1 + 1 + 1 + 1 + 4, rows = 2 + m->heads + 1 + 4;
    const int64_t shares = 2 * (int64_t)m->width * FLOAT_BYTES / NORM_ROWS;
    return widths * m->width * number + 3 * (int64_t)m->width * FLOAT_BYTES + rows * FLOAT_BYTES + shares;
}

/* Of what is computed again all blocks have one memory. */
static int64_t activation_bytes(const struct cuda_needs_shape *s, enum cuda_keep keep)
{
    const struct model_shape *m = &s->layout->shape;
    const int64_t number = s->fp32 ? FLOAT_BYTES : HALF_BYTES;
    const int64_t tokens = (int64_t)s->lane_sequences * m->context;
    const int64_t kept = m->layers * input_bytes(m) +
                         (keep < CUDA_KEEP_INPUTS ? m->layers : 1) * products_bytes(m, number) +
                         (keep < CUDA_KEEP_PRODUCTS ? m->layers : 1) * cheap_bytes(m, number);
    return tokens * (kept + between_bytes(m, number));
}

static int64_t vocabulary_of(const struct model_shape *m)
{
    return (m->vocabulary + VOCABULARY_UNIT - 1) / VOCABULARY_UNIT * (int64_t)VOCABULARY_UNIT;
}

static int64_t logit_bytes(const struct cuda_needs_shape *s)
{
    const struct model_shape *m = &s->layout->shape;
    return (int64_t)s->lane_sequences * m->context * vocabulary_of(m) * (s->fp32 ? FLOAT_BYTES : HALF_BYTES);
}

/* The word embedding's, to which the tokens' part comes last, and one other tensor's at a time. */
static int64_t gradient_bytes(const struct model_shape *m)
{
    const int64_t width = m->width, of_block = 4 * width, of_places = m->context;
    return (vocabulary_of(m) + (of_block > of_places ? of_block : of_places)) * width * FLOAT_BYTES;
}

void cuda_needs_make(struct cuda_needs *out, const struct cuda_needs_shape *s)
{
    const int64_t parameters = s->layout->parameters;
    *out = (struct cuda_needs){.keep = s->keep};
    out->bytes[CUDA_NEEDS_STATE] =
        3 * parameters * FLOAT_BYTES + pieces_of(s->layout) * (STAMP_BYTES + PROOF_BYTES);
    out->bytes[CUDA_NEEDS_WORDS] = 2 * parameters * FLOAT_BYTES;
    out->bytes[CUDA_NEEDS_UNDO] =
        s->slots * (int64_t)sizeof(struct cuda_slot) + pieces_of(s->layout) * TABLE_BYTES;
    out->bytes[CUDA_NEEDS_HALF] = s->fp32 ? 0 : parameters * HALF_BYTES;
    out->bytes[CUDA_NEEDS_GRADIENT] = gradient_bytes(&s->layout->shape);
    out->bytes[CUDA_NEEDS_ACTIVATIONS] = activation_bytes(s, s->keep);
    out->spared = activation_bytes(s, CUDA_KEEP_ALL) - out->bytes[CUDA_NEEDS_ACTIVATIONS];
    out->bytes[CUDA_NEEDS_LOGITS] = logit_bytes(s);
    out->bytes[CUDA_NEEDS_WORKSPACE] = STREAMS_COMPUTING * WORKSPACE;
    out->bytes[CUDA_NEEDS_RESERVE] = RESERVE;
    for (int i = 0; i < CUDA_PURPOSES; i++)
        out->total += out->bytes[i];
}

/* ---- whether it fits ---- */

static double gib(int64_t bytes)
{
    return (double)bytes / (double)GIB;
}

static bool fits(struct cuda_needs_shape s, int lane_sequences, enum cuda_keep keep, int64_t free)
{
    struct cuda_needs needs;
    s.lane_sequences = lane_sequences;
    s.keep = keep;
    cuda_needs_make(&needs, &s);
    return needs.total <= free;
}

enum cuda_keep cuda_needs_keep(const struct cuda_needs_shape *s, bool recompute, int64_t free)
{
    if (!recompute)
        return CUDA_KEEP_ALL;
    return fits(*s, s->lane_sequences, CUDA_KEEP_PRODUCTS, free) ? CUDA_KEEP_PRODUCTS : CUDA_KEEP_INPUTS;
}

/* The most sequences a lane that fit; 0: not even one does. */
static int sequences_that_fit(const struct cuda_needs_shape *s, enum cuda_keep keep, int64_t free)
{
    int most = s->lane_sequences;
    while (most > 0 && !fits(*s, most, keep, free))
        most--;
    return most;
}

static void say_what_helps(const struct cuda_needs_shape *s, const struct cuda_room *room, char *out,
                           size_t size)
{
    const int64_t free = room->free;
    const int as_it_is = sequences_that_fit(s, s->keep, free),
              anew = sequences_that_fit(s, CUDA_KEEP_INPUTS, free);
    if (anew == s->lane_sequences)
        snprintf(out, size, "trainer.recompute: true would fit");
    else if (as_it_is > 0)
        snprintf(out, size, "trainer.batch.laneSequences: %d would fit%s", as_it_is,
                 anew > as_it_is ? " (more with trainer.recompute: true)" : "");
    else if (anew > 0)
        snprintf(out, size, "trainer.batch.laneSequences: %d with trainer.recompute: true would fit", anew);
    else if (sequences_that_fit(s, CUDA_KEEP_INPUTS, room->total) > 0)
        snprintf(out, size, "end what else runs on this GPU (nvidia-smi)");
    else
        snprintf(out, size, "this model needs a GPU with more memory");
}

/* The three largest purposes, largest first. */
static void say_for_what(const struct cuda_needs *needs, char *out, size_t size)
{
    bool told[CUDA_PURPOSES] = {false};
    size_t at = 0;
    for (int n = 0; n < 3; n++) {
        int largest = -1;
        for (int i = 0; i < CUDA_PURPOSES; i++)
            if (!told[i] && (largest < 0 || needs->bytes[i] > needs->bytes[largest]))
                largest = i;
        told[largest] = true;
        at += (size_t)snprintf(out + at, at < size ? size - at : 0, "%s%s %.1f", n ? ", " : "",
                               purposes[largest].brief, gib(needs->bytes[largest]));
    }
}

int cuda_needs_check(const struct cuda_needs *needs, const struct cuda_needs_shape *shape,
                     const struct cuda_room *room, struct error *err)
{
    char help[120], what[120], others[80] = "";
    if (needs->total <= room->free)
        return 0;
    say_what_helps(shape, room, help, sizeof help);
    say_for_what(needs, what, sizeof what);
    if (room->total - room->free >= OTHERS_LEAST)
        snprintf(others, sizeof others, ", others hold %.1f", gib(room->total - room->free));
    err_set(err, ERR_MACHINE, "%s: training needs %.1f GiB (%s GiB), and %.1f of %.1f are free%s; %s",
            room->device, gib(needs->total), what, gib(room->free), gib(room->total), others, help);
    return err_class(err, CLASS_MACHINE);
}

static double mib(int64_t bytes)
{
    return (double)bytes / (double)MIB;
}

void cuda_needs_report(const struct cuda_needs *needs, struct str *out)
{
    static const char *const again[] = {[CUDA_KEEP_ALL] = "",
                                        [CUDA_KEEP_PRODUCTS] = "norms and GELU are computed again",
                                        [CUDA_KEEP_INPUTS] =
                                            "blocks are computed again from what came into them"};
    for (int i = 0; i < CUDA_PURPOSES; i++) {
        if (!needs->bytes[i])
            continue;
        str_addf(out, "%8.1f MiB  %s", mib(needs->bytes[i]), purposes[i].text);
        if (i == CUDA_NEEDS_ACTIVATIONS && needs->keep != CUDA_KEEP_ALL)
            str_addf(out, ", %.1f less than all: %s", mib(needs->spared), again[needs->keep]);
        str_addf(out, "\n");
    }
    str_addf(out, "%8.1f MiB  in all\n", mib(needs->total));
}
