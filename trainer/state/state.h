/* The training state in a memfd that outlives its trainer, and is never torn.
 *
 * state(s) is: parameters, AdamW's two moments, one exponent k per tensor, the step s and its lineage
 * (docs/exactness.md). Beside it lie two buffers for gradients ("words": one uint32 for each parameter, and
 * the header words). One keeps the words that led to the present state, so that a rank that missed them can
 * get them ("kept update"), while the other is filled with what this rank adds to the next step. Only when
 * all ranks are known to be in that step (state_update_begin) may the sum of all be written over the kept
 * one.
 *
 * Changes are safe against SIGKILL at any instruction: whoever opens the memfd next finds state(s) or
 * state(s+1) whole, or (where it died while receiving) nothing.
 *
 *     state_open(&s, fd, &shape, &err)                 attach or create; undoes half-written pieces
 *     if (state_pending(s)) update_apply(...)          update.h: finishes what the last trainer began
 *     if (state_holds(s, &point)) ...                  else fill it:
 *     state_receive_begin(s); ...write arrays...; state_receive_end(s, &point);
 *
 * An update may also leave its result in a second memory, the spare, for others to read while training goes
 * on: see state_add_spare.
 *
 * One thread at a time calls these functions; reading the arrays meanwhile is fine while nobody changes
 * them. Memory: 20 bytes a parameter in the memfd (4 each for parameters, m, v and two buffers). Where who
 * computes has a memory of its own (state_shape.in), arrays and words lie there, and records and header words
 * in the memfd. What fails in these functions is that memory (ERR_MACHINE).
 *
 * Where a user's program has the state (state_shape.image), it is one array of bytes, the image that the
 * program makes of it, in a memory that asks the program for it; the words lie in the memfd, and k, step and
 * lineage are kept as ever. What was held is gone with the process that opened it. */
#ifndef RM_TRAINER_STATE_H
#define RM_TRAINER_STATE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/model/arrays.h"
#include "trainer/backend/memory.h"

struct state;

struct state_shape {
    const struct model_layout *layout; /* must live as long as the state */
    int lanes;                         /* of a step */
    bool fast;                         /* words are fp32 sums instead of integers */
    struct memory *in;                 /* of arrays and words, from `at` on; NULL: the memfd */
    struct far at;                     /* not 0 */
    bool kept;     /* what lies there is what the process before this one left that had this memfd */
    int64_t image; /* > 0: bytes of the one array, a multiple of 4, and `in` is of that alone; the words lie
                      in the memfd */
};

/* How much of another memory than the memfd a state of that shape takes. */
size_t state_bulk_bytes(const struct state_shape *shape);

/* What names a state, and what is told of it. k: one exponent per tensor of the layout; all 0 at step 0. */
struct state_point {
    int64_t step;
    int32_t k[RM_TENSORS_MAX];
    uint8_t lineage[RM_HASH_BYTES];
    bool loss_known; /* false where the step was not made here: loaded, received, the first weights */
    double loss;     /* of the step that led here, mean over lanes */
};

/* Maps the memfd; sizes and lays it out where it is empty or was never finished. Refuses one of another
 * shape (ERR_DATA). Restores every piece that was being changed when its last user died; arrays in another
 * memory than the memfd died with him, so nothing is held then, but where it was kept: then it is for whoever
 * has that memory to look at it, restore the pieces, or call state_forget. fd stays the caller's. ERR_MACHINE
 * where the memory is not to be had. */
int state_open(struct state **ret, int fd, const struct state_shape *shape, struct error *err);
void state_free(struct state *s); /* unmaps; the memfd keeps everything */

/* True where a whole state is there and no update waits to be finished; fills *out (NULL: only asks). */
bool state_holds(const struct state *s, struct state_point *out);
/* A complete update to the next step is there, not (wholly) applied: call update_apply. */
bool state_pending(const struct state *s);

/* What a state is made of: arrays in one flat order of elements (layout.h), by name: a model's are those of
 * common/model/arrays.h; a program's is "image", as elements of 4 bytes. */
enum state_type { STATE_F32 };
struct state_array {
    const char *name;
    enum state_type type;
    int64_t first, count; /* the elements that are held here; today all */
    struct far at;        /* of element `first` */
};
enum { STATE_ARRAYS_MAX = MODEL_ARRAYS_MAX };
struct state_arrays {
    struct memory *in; /* all of them */
    int64_t count;     /* elements of each as a whole */
    int arrays;
    struct state_array array[STATE_ARRAYS_MAX];
};
/* Write only between receive_begin and receive_end. They lie elsewhere after an update that was aimed, the
 * next one, and after receive_begin: ask anew. */
struct state_arrays state_arrays(struct state *s);
size_t state_type_bytes(enum state_type type);
/* Where `count` elements from `first` on lie: they are held here (asserted). */
struct far state_range_at(const struct state_array *array, int64_t first, int64_t count);
/* The one of that name; NULL where there is none. */
const struct state_array *state_array_named(const struct state_arrays *arrays, const char *name);
/* Where the arrays lie in the memfd while nothing is held: byte offset of the first, and from each to the
 * next. Others may fill them there before receive_end. -1: they don't lie there. */
void state_home(const struct state *s, int64_t *ret_params_at, int64_t *ret_array_step);

/* From here on the state holds nothing (kept updates included), until receive_end says what arrived. Also
 * for loads and for the first weights (m and v must then be zeroed by state_zero_moments). */
void state_receive_begin(struct state *s);
int state_receive_end(struct state *s, const struct state_point *point, struct error *err);
int state_zero_moments(struct state *s, struct error *err);

/* Listening: a state comes in part by part while those who hold it train on, and nothing is held until
 * listen_end says that all of it has come. From listen_begin on the memory counts as of that step: updates
 * are received and applied as to a state that is held, to what has come and to what has not, and what comes
 * then, written over the arrays, is of the step that is counted now. Only where the arrays are near. Who dies
 * meanwhile leaves nothing. */
void state_listen_begin(struct state *s, const struct state_point *point);
/* Which step what comes is to be of; false where none is listened to. */
bool state_listens(const struct state *s, struct state_point *out);
void state_listen_end(struct state *s);

/* Whether this process may touch the words themselves. */
bool state_words_are_near(struct state *s);

/* SHA-256 of the parameters in flat order (weightsSha256); not of an image. */
int state_digest(struct state *s, uint8_t out[RM_HASH_BYTES], struct error *err);

/* ---- the spare: a snapshot that costs no copy ----
 *
 * An update reads every element and writes it again, so it may as well write elsewhere: the update to
 * state(s) is aimed at the spare, and the one to s+1 leads home again. So state(s) lies in the spare as it
 * was, for as long as nobody aims there again. The spare is never changed in place. A trainer that dies in
 * such an update leaves the old state whole where it was. */

/* Maps `fd` from `offset` (a multiple of the page's size) on as the spare: the arrays without gaps. The
 * file is large enough; its memory is taken now (ERR_MACHINE where it is not to be had). Belongs right behind
 * state_open: until then, a state in the spare is not held, and an update that was aimed there not pending.
 * fd stays the caller's, who must give the same memory to whoever opens this state next. */
int state_add_spare(struct state *s, int fd, int64_t offset, struct error *err);
/* Whether the update that is sealed next shall leave the state in the spare; nobody reads the spare then.
 * Without effect where there is none or the state lies there. */
void state_aim_spare(struct state *s, bool aim);
/* The state held lies in the spare, of which this is the start. */
bool state_in_spare(const struct state *s);

/* ---- the kept update: what led from state(step - 1) to state(step) ---- */

struct state_update {
    int64_t step;      /* the step it leads to */
    int32_t *k;        // (tensors) used for the words
    struct memory *in; /* of the words */
    struct far words;  // (words_count) = parameters; bits of fp32 in `fast`
    uint32_t *header;  // (header_count)
    int64_t words_count;
    int64_t header_count;
};

/* The update that led to the state held; false where none is kept: the state was loaded or received, or the
 * words of the next step have begun to move. Valid until then, and until receive_begin. */
bool state_kept(const struct state *s, struct state_update *out);

/* Receiving one: begin names the buffers to fill (out->k, words and header; the kept update stays); end
 * checks that it leads from the state held to the next step and fits, and makes it pending; then call
 * update_apply. Call end only after all bytes have arrived and their checksums agree. ERR_PROTOCOL where it
 * does not belong here. */
void state_update_receive_begin(struct state *s, struct state_update *out);
int state_update_receive_end(struct state *s, int64_t step, struct error *err);

#endif
