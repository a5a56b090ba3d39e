/* Lays the state out in its memfd, attaches to one that is there, and repairs what a trainer left that died
 * in an update. In place, a piece is changed only after its old content is in a slot, so it can be put back.
 */
#include "trainer/state/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "trainer/exact/proof.h"
#include "trainer/exact/verdict.h"
#include "trainer/state/state_file.h"

static const uint64_t state_magic = 0x354554415453524dull; /* "MRSTATE5" */

/* ---- shape ---- */

static size_t page_up(size_t size)
{
    return (size + 4095) & ~(size_t)4095;
}

/* Each (parameters) fp32. */
enum { ARRAYS = MODEL_ARRAYS };
_Static_assert((int)ARRAYS * sizeof(float *) == sizeof(struct state_place),
               "a place has all arrays of a state");

/* Byte offsets of the parts, each at the start of a page: in the memfd, or those from stamp to slot in
 * another memory. */
struct parts {
    size_t stamp, proof, array[ARRAYS], words[2], slot, bulk_end, said[2], size;
};

static size_t pieces_of(const struct model_layout *layout)
{
    size_t n = 0;
    for (int t = 0; t < layout->tensors; t++)
        n += (size_t)((layout->tensor[t].count + STATE_PIECE - 1) / STATE_PIECE);
    return n;
}

/* The words, and arrays that are not an image, lie in another memory than the memfd. */
static bool is_away(const struct state_shape *shape)
{
    return shape->in && !shape->image;
}

/* Arrays, words and what goes with them, from a place on; `behind`: words of the header behind each buffer.
 * An image has a place of its own, and nothing of it is ever changed in part. */
static void place_bulk(const struct state_shape *shape, size_t at, size_t behind, struct parts *p)
{
    const struct model_layout *layout = shape->layout;
    size_t count = (size_t)layout->parameters, pieces = pieces_of(layout);
    size_t array = shape->image ? 0 : page_up(count * sizeof(float));
    p->stamp = at;
    p->proof = p->stamp + page_up(pieces * sizeof(int64_t));
    at = p->proof + page_up(pieces * sizeof(uint64_t));
    for (int i = 0; i < ARRAYS; i++, at += array)
        p->array[i] = at;
    for (int b = 0; b < 2; b++, at += page_up((count + behind) * sizeof(uint32_t)))
        p->words[b] = at;
    p->slot = at;
    p->bulk_end = p->slot + (shape->image ? 0 : page_up(STATE_THREADS_MAX * sizeof(struct state_slot)));
}

static struct parts place_parts(const struct state *s)
{
    struct parts p;
    size_t count = (size_t)s->shape.layout->parameters, header = (size_t)s->header_words;
    size_t begin = page_up(sizeof(struct state_header)), said = page_up(header * sizeof(uint32_t));
    bool away = is_away(&s->shape);
    place_bulk(&s->shape, away ? 0 : begin, away ? 0 : header, &p);
    for (int b = 0; b < 2; b++)
        p.said[b] = away ? begin + (size_t)b * said : p.words[b] + count * sizeof(uint32_t);
    p.size = away ? begin + 2 * said : p.bulk_end;
    return p;
}

size_t state_bulk_bytes(const struct state_shape *shape)
{
    struct parts p;
    if (shape->image)
        return (size_t)shape->image;
    place_bulk(shape, 0, 0, &p);
    return p.bulk_end;
}

/* What two users of one memfd must agree on. */
static void make_identity(const struct state *s, uint8_t out[RM_HASH_BYTES])
{
    const struct model_layout *layout = s->shape.layout;
    int64_t numbers[] = {STATE_PIECE, STATE_THREADS_MAX, s->shape.lanes, s->shape.fast, layout->tensors};
    struct sha256 *h = sha256_open();
    sha256_add(h, numbers, sizeof numbers);
    if (s->shape.in)
        sha256_add(h, "far", 4);
    if (s->shape.image)
        sha256_add(h, &s->shape.image, sizeof s->shape.image);
    for (int t = 0; t < layout->tensors; t++) {
        const struct model_tensor *tensor = &layout->tensor[t];
        sha256_add(h, tensor->name, strlen(tensor->name) + 1);
        sha256_add(h, tensor->size, sizeof tensor->size);
    }
    sha256_finish(h, out);
}

static void cut_pieces(struct state *s)
{
    const struct model_layout *layout = s->shape.layout;
    struct state_piece *p = s->piece;
    for (int t = 0; t < layout->tensors; t++) {
        const struct model_tensor *tensor = &layout->tensor[t];
        for (int64_t at = 0; at < tensor->count; at += STATE_PIECE, p++) {
            int64_t left = tensor->count - at;
            p->first = tensor->first + at;
            p->count = (int32_t)(left < STATE_PIECE ? left : STATE_PIECE);
            p->tensor = t;
        }
    }
}

static int take_scratch(struct state *s, struct error *err)
{
    s->pieces = (int)pieces_of(s->shape.layout);
    size_t n = (size_t)s->pieces;
    s->piece = calloc(n, sizeof *s->piece);
    s->scratch = calloc(n, sizeof *s->scratch);
    if (!s->piece || !s->scratch)
        return err_set(err, ERR_MACHINE, "no memory for the table of %d pieces of the state", s->pieces);
    cut_pieces(s);
    return 0;
}

/* ---- mapping ---- */

static void set_pointers(struct state *s, const struct parts *p)
{
    char *map = s->map;
    bool away = is_away(&s->shape);
    uintptr_t bulk = away ? (uintptr_t)s->shape.at.at : (uintptr_t)map;
    s->in = away ? s->shape.in : memory_here();
    s->header = (struct state_header *)map;
    s->stamp = (_Atomic int64_t *)(bulk + p->stamp);
    s->proof = (uint64_t *)(bulk + p->proof);
    s->place[STATE_HOME] = (struct state_place){(float *)(bulk + p->array[0]), (float *)(bulk + p->array[1]),
                                                (float *)(bulk + p->array[2])};
    if (s->shape.image)
        s->place[STATE_HOME] = (struct state_place){.params = (float *)(uintptr_t)s->shape.at.at};
    for (int b = 0; b < 2; b++) {
        s->words[b] = (uint32_t *)(bulk + p->words[b]);
        s->said[b] = (uint32_t *)(map + p->said[b]);
    }
    s->slot = (struct state_slot *)(bulk + p->slot);
}

static int map_all(struct state *s, int fd, const struct parts *p, struct error *err)
{
    void *map = mmap(NULL, p->size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "map the training state (%zu MiB)", p->size >> 20);
    s->map = map;
    s->map_size = p->size;
    set_pointers(s, p);
    return 0;
}

/* Takes the memory now, so that a lack of it is an error here and not a SIGBUS later. The undo slots are
 * left out: only those of threads that exist are ever touched. */
static int lay_out(struct state *s, int fd, const struct parts *p, struct error *err)
{
    size_t taken = is_away(&s->shape) ? p->size : p->slot;
    if (ftruncate(fd, 0) < 0 || ftruncate(fd, (off_t)p->size) < 0)
        return err_errno(err, ERR_MACHINE, "size the training state (%zu MiB)", p->size >> 20);
    int code;
    while ((code = posix_fallocate(fd, 0, (off_t)taken)) == EINTR)
        continue;
    if (code) {
        errno = code;
        return err_errno(err, ERR_MACHINE, "take memory for the training state (%zu MiB)", taken >> 20);
    }
    if (map_all(s, fd, p, err) < 0)
        return -1;
    make_identity(s, s->header->identity);
    FAULT("state-laid-out");
    atomic_store_explicit(&s->header->magic, state_magic, memory_order_release);
    return 0;
}

static int attach(struct state *s, int fd, const struct parts *p, size_t size, struct error *err)
{
    uint8_t wanted[RM_HASH_BYTES];
    if (size != p->size)
        return err_set(err, ERR_DATA, "the training state in memory is of another model (%zu bytes, not %zu)",
                       size, p->size);
    if (map_all(s, fd, p, err) < 0)
        return -1;
    make_identity(s, wanted);
    if (memcmp(wanted, s->header->identity, sizeof wanted) != 0)
        return err_set(err, ERR_DATA, "the training state in memory is of another model or job");
    return 0;
}

/* True where the file was laid out to its end. */
static bool is_laid_out(int fd, size_t size)
{
    uint64_t magic = 0;
    return size >= sizeof magic && pread(fd, &magic, sizeof magic, 0) == (ssize_t)sizeof magic &&
           magic == state_magic;
}

/* ---- repair ---- */

/* Puts the old values of a half-written piece back. May itself be cut off and done again: the slot is
 * cleared last. */
static void restore_piece(struct state *s, struct state_slot *slot)
{
    const struct state_piece *p = &s->piece[slot->piece];
    const struct state_place *at = &s->place[STATE_HOME];
    size_t bytes = (size_t)p->count * sizeof(float);
    memcpy(at->params + p->first, slot->params, bytes);
    memcpy(at->m + p->first, slot->m, bytes);
    memcpy(at->v + p->first, slot->v, bytes);
    s->proof[slot->piece] = proof_piece(slot->params, slot->m, slot->v, p->count);
    FAULT("slot-restored");
    atomic_store_explicit(&s->stamp[slot->piece], state_current(s)->step, memory_order_release);
    FAULT("slot-restamped");
    atomic_store_explicit(&slot->valid, 0, memory_order_release);
    FAULT("slot-forgotten");
}

static void restore_pieces(struct state *s)
{
    for (int i = 0; i < STATE_THREADS_MAX; i++) {
        struct state_slot *slot = &s->slot[i];
        if (atomic_load_explicit(&slot->valid, memory_order_acquire))
            restore_piece(s, slot);
    }
}

/* ---- open ---- */

static bool is_partial(const struct state *s)
{
    return atomic_load_explicit(&s->header->partial, memory_order_acquire);
}

int state_forget(struct state *s, struct error *err)
{
    state_receive_begin(s);
    if (s->shape.image)
        return 0;
    return memory_zero(s->in, far_here(s->slot), STATE_THREADS_MAX * sizeof *s->slot, err);
}

static int open_mapping(struct state *s, int fd, struct error *err)
{
    struct stat about;
    struct parts p = place_parts(s);
    if (fstat(fd, &about) < 0)
        return err_errno(err, ERR_MACHINE, "look at the training state");
    bool there = is_laid_out(fd, (size_t)about.st_size);
    if (there && attach(s, fd, &p, (size_t)about.st_size, err) < 0)
        return -1;
    if (!there && lay_out(s, fd, &p, err) < 0)
        return -1;
    /* Arrays that were not in the memfd have gone with their process, unless somebody kept them. */
    if (s->shape.in)
        return s->shape.kept && state_current(s) ? 0 : state_forget(s, err);
    if (there && is_partial(s))
        state_receive_begin(s);
    else if (there && state_current(s))
        restore_pieces(s);
    return 0;
}

int state_open(struct state **ret, int fd, const struct state_shape *shape, struct error *err)
{
    struct state *s = calloc(1, sizeof *s);
    if (!s)
        return err_set(err, ERR_MACHINE, "no memory for the training state");
    s->shape = *shape;
    s->header_words = header_count(shape->layout->tensors, shape->lanes);
    if (take_scratch(s, err) < 0 || open_mapping(s, fd, err) < 0) {
        state_free(s);
        return -1;
    }
    *ret = s;
    return 0;
}

void state_free(struct state *s)
{
    if (!s)
        return;
    if (s->map)
        munmap(s->map, s->map_size);
    if (s->spare_map)
        munmap(s->spare_map, s->spare_size);
    free(s->piece);
    free(s->scratch);
    free(s);
}

/* ---- what is held ---- */

const struct state_point *state_current(const struct state *s)
{
    uint32_t current = atomic_load_explicit(&s->header->current, memory_order_acquire);
    bool mapped = current && s->place[s->header->place[current - 1]].params;
    return mapped ? &s->header->point[current - 1] : NULL;
}

enum state_place_of state_placed(const struct state *s)
{
    const struct state_point *now = state_current(s);
    return now ? (enum state_place_of)s->header->place[now - s->header->point] : STATE_HOME;
}

/* The valid update that leads to that step, -1 where there is none. */
static int find_update(const struct state *s, int64_t step)
{
    for (int b = 0; b < 2; b++) {
        const struct state_record_update *u = &s->header->update[b];
        if (atomic_load_explicit(&u->valid, memory_order_acquire) && u->step == step)
            return b;
    }
    return -1;
}

int state_pending_buffer(const struct state *s)
{
    const struct state_point *now = state_current(s);
    int b = now ? find_update(s, now->step + 1) : -1;
    return b >= 0 && s->place[s->header->update[b].to].params ? b : -1;
}

bool state_pending(const struct state *s)
{
    return state_pending_buffer(s) >= 0;
}

bool state_holds(const struct state *s, struct state_point *out)
{
    const struct state_point *now = state_current(s);
    if (!now || is_partial(s) || state_pending(s))
        return false;
    if (out)
        *out = *now;
    return true;
}

void state_home(const struct state *s, int64_t *ret_params_at, int64_t *ret_array_step)
{
    struct parts p = place_parts(s);
    *ret_params_at = s->shape.in ? -1 : (int64_t)p.array[0];
    *ret_array_step = s->shape.in ? 0 : (int64_t)(p.array[1] - p.array[0]);
}

struct state_arrays state_arrays(struct state *s)
{
    const struct state_place *p = &s->place[state_placed(s)];
    const float *const at[ARRAYS] = {p->params, p->m, p->v};
    int64_t image = s->shape.image / (int64_t)sizeof(float);
    if (image)
        return (struct state_arrays){.in = s->shape.in,
                                     .count = image,
                                     .arrays = 1,
                                     .array = {{"image", STATE_F32, 0, image, s->shape.at}}};
    struct state_arrays a = {.in = s->in, .count = s->shape.layout->parameters, .arrays = ARRAYS};
    for (int i = 0; i < ARRAYS; i++)
        a.array[i] = (struct state_array){model_array(i)->name, STATE_F32, 0, a.count, far_here(at[i])};
    return a;
}

size_t state_type_bytes(enum state_type type)
{
    static const size_t bytes[] = {[STATE_F32] = sizeof(float)};
    return bytes[type];
}

struct far state_range_at(const struct state_array *a, int64_t first, int64_t count)
{
    RM_ASSERT(first >= a->first && count >= 0 && count <= a->count - (first - a->first),
              "%lld of %s from %lld on, held are %lld from %lld on", (long long)count, a->name,
              (long long)first, (long long)a->count, (long long)a->first);
    return far_add(a->at, (first - a->first) * (int64_t)state_type_bytes(a->type));
}

const struct state_array *state_array_named(const struct state_arrays *a, const char *name)
{
    for (int i = 0; i < a->arrays; i++)
        if (!strcmp(a->array[i].name, name))
            return &a->array[i];
    return NULL;
}

static void hash_part(void *ctx, const void *at, size_t bytes)
{
    sha256_add(ctx, at, bytes);
}

int state_digest(struct state *s, uint8_t out[RM_HASH_BYTES], struct error *err)
{
    struct state_arrays a = state_arrays(s);
    const struct state_array *params = state_array_named(&a, "params");
    struct sha256 *h = sha256_open();
    int result = memory_visit(a.in, params->at, (size_t)params->count * state_type_bytes(params->type),
                              hash_part, h, err);
    sha256_finish(h, out);
    return result;
}

bool state_words_are_near(struct state *s)
{
    return memory_near(s->in, far_here(s->words[0]));
}

/* Who has an image keeps no sums of its bits. */
bool state_proven(const struct state *s)
{
    if (s->shape.image)
        return true;
    return atomic_load_explicit(&s->header->proven, memory_order_acquire);
}

void state_set_proven(struct state *s)
{
    atomic_store_explicit(&s->header->proven, 1, memory_order_release);
}

uint64_t state_sum(const struct state *s)
{
    return s->resting * PROOF_FACTOR + state_sum_of(s, s->proof);
}

uint64_t state_sum_of(const struct state *s, const uint64_t *proof)
{
    uint64_t sum = 0;
    const struct state_point *now = state_current(s);
    for (int i = 0; i < s->pieces; i++)
        sum += proof[i];
    for (int t = 0; now && t < s->shape.layout->tensors; t++)
        sum += (uint64_t)PROOF_FACTOR * proof_word((uint64_t)t, (uint32_t)now->k[t]);
    return sum;
}

/* ---- receiving a state ---- */

static void forget_update(struct state *s, int b)
{
    atomic_store_explicit(&s->header->update[b].valid, 0, memory_order_release);
    state_order();
}

void state_receive_begin(struct state *s)
{
    forget_update(s, 0);
    forget_update(s, 1);
    atomic_store_explicit(&s->header->current, 0, memory_order_release);
    state_order();
    atomic_store_explicit(&s->header->partial, 0, memory_order_release);
    atomic_store_explicit(&s->header->proven, 0, memory_order_release);
    state_order();
    for (int i = 0; i < STATE_THREADS_MAX && !s->shape.in; i++) /* far away there are none between updates */
        if (atomic_load_explicit(&s->slot[i].valid, memory_order_relaxed))
            atomic_store_explicit(&s->slot[i].valid, 0, memory_order_release);
    FAULT("receive-begun");
}

static int stamp_far(struct state *s, int64_t step, struct error *err)
{
    int64_t *stamps = malloc((size_t)s->pieces * sizeof *stamps);
    if (!stamps)
        return err_set(err, ERR_MACHINE, "no memory for the stamps of %d pieces", s->pieces);
    for (int i = 0; i < s->pieces; i++)
        stamps[i] = step;
    int result = memory_write(s->in, far_here((const void *)s->stamp), stamps,
                              (size_t)s->pieces * sizeof *stamps, err);
    free(stamps);
    return result;
}

/* ---- listening ---- */

void state_listen_begin(struct state *s, const struct state_point *point)
{
    RM_ASSERT(!s->shape.in, "step %lld is listened to by a state whose arrays lie far away",
              (long long)point->step);
    state_receive_begin(s);
    atomic_store_explicit(&s->header->partial, 1, memory_order_release);
    state_order();
    for (int i = 0; i < s->pieces; i++)
        atomic_store_explicit(&s->stamp[i], point->step, memory_order_relaxed);
    s->header->point[0] = *point;
    s->header->place[0] = STATE_HOME;
    atomic_store_explicit(&s->header->current, 1, memory_order_release);
}

bool state_listens(const struct state *s, struct state_point *out)
{
    const struct state_point *now = state_current(s);
    if (!now || !is_partial(s))
        return false;
    if (out)
        *out = *now;
    return true;
}

/* What its pieces' sums say of them was worked out before all of them had come. */
void state_listen_end(struct state *s)
{
    RM_ASSERT(state_current(s) && is_partial(s), "%d pieces have come, and nobody listens", s->pieces);
    atomic_store_explicit(&s->header->proven, 0, memory_order_release);
    state_order();
    FAULT("listen-whole");
    atomic_store_explicit(&s->header->partial, 0, memory_order_release);
}

int state_receive_end(struct state *s, const struct state_point *point, struct error *err)
{
    if (is_away(&s->shape) && stamp_far(s, point->step, err) < 0)
        return -1;
    for (int i = 0; i < s->pieces && !s->shape.in; i++)
        atomic_store_explicit(&s->stamp[i], point->step, memory_order_relaxed);
    s->header->point[0] = *point;
    s->header->place[0] = STATE_HOME;
    FAULT("receive-record");
    atomic_store_explicit(&s->header->current, 1, memory_order_release);
    FAULT("receive-held");
    return 0;
}

int state_zero_moments(struct state *s, struct error *err)
{
    struct state_arrays a = state_arrays(s);
    for (int i = 0; i < a.arrays; i++) {
        const struct state_array *array = &a.array[i];
        size_t bytes = (size_t)array->count * state_type_bytes(array->type);
        if (strcmp(array->name, "params") != 0 && memory_zero(a.in, array->at, bytes, err) < 0)
            return -1;
    }
    return 0;
}

/* ---- the spare ---- */

/* A part at a time: whoever else maps something is let in between. */
enum { TAKE_AT_ONCE = 16 << 20 };

static int take_memory(char *map, size_t size, int fd, int64_t offset, struct error *err)
{
    int code = 0;
    for (size_t at = 0; at < size && !code; at += TAKE_AT_ONCE) {
        size_t length = size - at < TAKE_AT_ONCE ? size - at : TAKE_AT_ONCE;
        code = madvise(map + at, length, MADV_POPULATE_WRITE) < 0 ? errno : 0;
    }
    if (code == EINVAL) /* a kernel that does not know it */
        while ((code = posix_fallocate(fd, offset, (off_t)size)) == EINTR)
            continue;
    errno = code;
    return code ? err_errno(err, ERR_MACHINE, "take memory for snapshots (%zu MiB)", size >> 20) : 0;
}

int state_add_spare(struct state *s, int fd, int64_t offset, struct error *err)
{
    size_t count = (size_t)s->shape.layout->parameters;
    RM_ASSERT(!s->shape.in, "a spare at %lld of the memfd for arrays that lie elsewhere", (long long)offset);
    s->spare_size = ARRAYS * count * sizeof(float);
    void *map = mmap(NULL, s->spare_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    if (map == MAP_FAILED)
        return err_errno(err, ERR_MACHINE, "map the memory for snapshots");
    s->spare_map = map;
    if (take_memory(map, s->spare_size, fd, offset, err) < 0)
        return -1;
    float *at = map;
    s->place[STATE_SPARE] = (struct state_place){at, at + count, at + 2 * count};
    return 0;
}

void state_aim_spare(struct state *s, bool aim)
{
    s->aim_spare = aim;
}

bool state_in_spare(const struct state *s)
{
    return state_placed(s) == STATE_SPARE;
}

/* ---- updates ---- */

static void describe_update(const struct state *s, int b, struct state_update *out)
{
    struct state_record_update *u = &s->header->update[b];
    *out = (struct state_update){
        .step = u->step,
        .k = u->k,
        .in = s->in,
        .words = far_here(s->words[b]),
        .header = state_header_words(s, b),
        .words_count = s->shape.layout->parameters,
        .header_count = s->header_words,
    };
}

bool state_kept(const struct state *s, struct state_update *out)
{
    const struct state_point *now = state_current(s);
    int b = now && !is_partial(s) ? find_update(s, now->step) : -1;
    if (b < 0)
        return false;
    describe_update(s, b, out);
    return true;
}

int state_take_spare(struct state *s)
{
    int buffer = state_received_buffer(s);
    forget_update(s, buffer);
    return buffer;
}

void state_update_begin(struct state *s, int b, const uint32_t *header, const int32_t *k)
{
    forget_update(s, b);
    FAULT("kept-forgotten");
    memcpy(state_header_words(s, b), header, (size_t)s->header_words * sizeof *header);
    memcpy(s->header->update[b].k, k, (size_t)s->shape.layout->tensors * sizeof *k);
    FAULT("header-copied");
}

void state_seal(struct state *s, int b)
{
    struct state_record_update *u = &s->header->update[b];
    bool away = s->aim_spare && s->place[STATE_SPARE].params && !state_in_spare(s);
    RM_ASSERT(state_current(s), "an update is sealed in buffer %d, and nothing is held", b);
    FAULT("words-complete");
    u->step = state_current(s)->step + 1;
    u->to = away ? STATE_SPARE : STATE_HOME;
    s->aim_spare = false;
    FAULT("update-record");
    atomic_store_explicit(&u->valid, 1, memory_order_release);
    state_order();
    FAULT("update-valid");
}

void state_commit(struct state *s, const struct state_point *next, enum state_place_of place)
{
    FAULT("before-commit");
    uint32_t now = atomic_load_explicit(&s->header->current, memory_order_relaxed);
    uint32_t other = now == 1 ? 2 : 1;
    RM_ASSERT(now && next->step == s->header->point[now - 1].step + 1,
              "step %lld is committed, and record %u counts", (long long)next->step, now);
    s->header->point[other - 1] = *next;
    s->header->place[other - 1] = (uint32_t)place;
    FAULT("record-written");
    atomic_store_explicit(&s->header->current, other, memory_order_release);
    state_order();
    FAULT("after-commit");
}

int state_received_buffer(const struct state *s)
{
    const struct state_point *now = state_current(s);
    return now && find_update(s, now->step) == 0 ? 1 : 0;
}

void state_update_receive_begin(struct state *s, struct state_update *out)
{
    describe_update(s, state_take_spare(s), out);
}

int state_update_fits(const struct state *s, int64_t step, struct error *err)
{
    const struct model_layout *layout = s->shape.layout;
    const struct state_point *now = state_current(s);
    if (!now || now->step + 1 != step)
        return err_set(err, ERR_PROTOCOL, "an update to step %lld does not lead on from step %lld",
                       (long long)step, now ? (long long)now->step : -1ll);
    int b = state_received_buffer(s);
    struct verdict verdict;
    verdict_decide(&verdict, state_header_words(s, b), layout->tensors, s->shape.lanes, s->shape.fast,
                   s->header->update[b].k);
    if (verdict.kind == VERDICT_FITS)
        return 0;
    return err_set(err, ERR_PROTOCOL, "the update to step %lld that was received does not fit",
                   (long long)step);
}

int state_update_receive_end(struct state *s, int64_t step, struct error *err)
{
    if (state_update_fits(s, step, err) < 0)
        return -1;
    state_seal(s, state_received_buffer(s));
    return 0;
}
