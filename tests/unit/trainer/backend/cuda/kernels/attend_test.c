/* Attention on the emulated GPU against double precision, from the same bf16 numbers.
 *
 * Tolerances. Each probability, and each gradient of a score, is rounded to bf16 once before it is
 * multiplied (2^-9 of it), so a sum of such terms may be off by that share of the sum of their sizes; the
 * result is rounded once more. Twice as much is allowed. Sums of exponentials and drift are fp32. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>

#include "model_case.h"
#include "trainer/backend/cuda/kernels/attend.h"

static const double half_share = 0x1p-8, tolerance = 1e-5;

struct attend_case {
    struct attend_args a;
    int wide;                           /* by the kernels for 128, else for 64 */
    int64_t rows, queries, keys, stats; /* numbers of each */
    uint16_t *qkv, *dqkv;
};

struct attend_shape {
    int sequences, length, heads, key_heads, size, beyond /* columns of the matrix that are nobody's */;
};

/* Query, key and value beside each other in one matrix. */
static void attend_case_init(struct attend_case *c, struct attend_shape s, int wide)
{
    const int64_t stride = (s.heads + 2 * s.key_heads) * s.size + s.beyond;
    const uint64_t seed = (uint64_t)(s.length * 1000 + s.size);
    *c = (struct attend_case){.wide = wide, .rows = s.sequences * s.length};
    c->queries = c->rows * s.heads * s.size;
    c->keys = c->rows * stride;
    c->stats = c->rows * s.heads;
    c->qkv = model_operands(c->keys, 2, 1, seed);
    c->dqkv = model_empty(c->keys, sizeof *c->dqkv);
    c->a = (struct attend_args){.mixed = model_empty(c->queries, sizeof(uint16_t)),
                                .log_sums = model_empty(c->stats, sizeof(float)),
                                .dmixed = model_operands(c->queries, 1, 1, seed + 1),
                                .drift = model_empty(c->stats, sizeof(float)),
                                .stride = stride,
                                .sequences = s.sequences,
                                .length = s.length,
                                .heads = s.heads,
                                .key_heads = s.key_heads,
                                .size = s.size,
                                .scale = (float)(1 / sqrt(s.size))};
    c->a.q = c->qkv;
    c->a.k = c->a.q + s.heads * s.size;
    c->a.v = c->a.k + s.key_heads * s.size;
    c->a.dq = c->dqkv;
    c->a.dk = c->a.dq + s.heads * s.size;
    c->a.dv = c->a.dk + s.key_heads * s.size;
}

static void attend_case_clear(struct attend_case *c)
{
    free(c->qkv);
    free(c->dqkv);
    free(c->a.mixed);
    free(c->a.log_sums);
    free((void *)c->a.dmixed);
    free(c->a.drift);
}

static struct model_run run_of(struct attend_case *c, const struct emulated_kernel *kernel, void *out,
                               int64_t bytes)
{
    return (struct model_run){kernel, &c->a, 1, true, {{out, (size_t)bytes}}};
}

static struct model_run forward_run(struct attend_case *c)
{
    struct model_run run =
        run_of(c, c->wide ? &emulated_attend_128 : &emulated_attend_64, c->a.mixed, 2 * c->queries);
    run.out[1].at = c->a.log_sums;
    run.out[1].bytes = (size_t)c->stats * sizeof(float);
    return run;
}

static struct model_run keys_run(struct attend_case *c)
{
    return run_of(c, c->wide ? &emulated_attend_keys_128 : &emulated_attend_keys_64, c->dqkv, 2 * c->keys);
}

static struct model_run queries_run(struct attend_case *c)
{
    struct model_run run =
        run_of(c, c->wide ? &emulated_attend_queries_128 : &emulated_attend_queries_64, c->dqkv, 2 * c->keys);
    run.out[1].at = c->a.drift;
    run.out[1].bytes = (size_t)c->stats * sizeof(float);
    return run;
}

static void run_all(struct attend_case *c, int orders)
{
    const struct model_run forward = forward_run(c), keys = keys_run(c), queries = queries_run(c);
    model_run_some(&forward, 1, orders);
    model_run_some(&queries, 1, orders);
    model_run_some(&keys, 1, orders);
}

/* ---- the slow and obvious way ---- */

/* One head of one sequence; what is added to a place comes with the sum of its terms' sizes. */
struct twin {
    const struct attend_case *c;
    int sequence, head, key_head;
    double *dk, *dv, *dk_size, *dv_size; // (length, size) of the key head
};

static int64_t row_of(const struct twin *t, int row)
{
    return (int64_t)t->sequence * t->c->a.length + row;
}

static double at(const struct twin *t, const uint16_t *matrix, int row, int head, int j)
{
    return model_half(matrix[row_of(t, row) * t->c->a.stride + head * t->c->a.size + j]);
}

static double mixed_at(const struct twin *t, const uint16_t *matrix, int row, int j)
{
    return model_half(matrix[(row_of(t, row) * t->c->a.heads + t->head) * t->c->a.size + j]);
}

static int64_t stat_of(const struct twin *t, int row)
{
    return ((int64_t)t->sequence * t->c->a.heads + t->head) * t->c->a.length + row;
}

/* p[key] of one query, and the log of the sum. */
static double soften(const struct twin *t, int row, double *p)
{
    double most = -1e300, sum = 0;
    for (int key = 0; key <= row; key++) {
        p[key] = 0;
        for (int j = 0; j < t->c->a.size; j++)
            p[key] += at(t, t->c->a.q, row, t->head, j) * at(t, t->c->a.k, key, t->key_head, j);
        p[key] *= (double)t->c->a.scale;
        most = fmax(most, p[key]);
    }
    for (int key = 0; key <= row; key++)
        sum += p[key] = exp(p[key] - most);
    for (int key = 0; key <= row; key++)
        p[key] /= sum;
    return most + log(sum);
}

static void check_mixed(const struct twin *t, int row, const double *p)
{
    for (int j = 0; j < t->c->a.size; j++) {
        double sum = 0, size = 0;
        for (int key = 0; key <= row; key++) {
            const double term = p[key] * at(t, t->c->a.v, key, t->key_head, j);
            sum += term;
            size += fabs(term);
        }
        model_near(mixed_at(t, t->c->a.mixed, row, j), sum, half_share, half_share * size, "mixed", row);
    }
}

/* The gradients of one query's scores, from the rounded `mixed` that the kernels see; adds up those of keys
 * and values, and checks its own. */
static void check_query(const struct twin *t, int row, const double *p)
{
    const struct attend_args *a = &t->c->a;
    double *ds = calloc((size_t)row + 1, sizeof *ds), drift = 0;
    for (int j = 0; j < a->size; j++)
        drift += mixed_at(t, a->mixed, row, j) * mixed_at(t, a->dmixed, row, j);
    model_near((double)a->drift[stat_of(t, row)], drift, tolerance, tolerance, "drift", row);
    for (int key = 0; key <= row; key++) {
        for (int j = 0; j < a->size; j++)
            ds[key] += mixed_at(t, a->dmixed, row, j) * at(t, a->v, key, t->key_head, j);
        ds[key] = p[key] * (ds[key] - drift) * (double)a->scale;
    }
    for (int j = 0; j < a->size; j++) {
        double dq = 0, size = 0;
        for (int key = 0; key <= row; key++) {
            const int64_t i = (int64_t)key * a->size + j;
            const double to_k = ds[key] * at(t, a->q, row, t->head, j),
                         to_v = p[key] * mixed_at(t, a->dmixed, row, j);
            dq += ds[key] * at(t, a->k, key, t->key_head, j);
            size += fabs(ds[key] * at(t, a->k, key, t->key_head, j));
            t->dk[i] += to_k;
            t->dk_size[i] += fabs(to_k);
            t->dv[i] += to_v;
            t->dv_size[i] += fabs(to_v);
        }
        model_near(at(t, a->dq, row, t->head, j), dq, half_share, half_share * size + tolerance, "dq", row);
    }
    free(ds);
}

static void check_keys(const struct twin *t)
{
    const struct attend_args *a = &t->c->a;
    for (int key = 0; key < a->length; key++)
        for (int j = 0; j < a->size; j++) {
            const int64_t i = (int64_t)key * a->size + j;
            model_near(at(t, a->dk, key, t->key_head, j), t->dk[i], half_share,
                       half_share * t->dk_size[i] + tolerance, "dk", key);
            model_near(at(t, a->dv, key, t->key_head, j), t->dv[i], half_share,
                       half_share * t->dv_size[i] + tolerance, "dv", key);
        }
}

static void check_group(const struct attend_case *c, int sequence, int key_head)
{
    const int64_t count = (int64_t)c->a.length * c->a.size;
    double *sums = calloc((size_t)(4 * count), sizeof *sums), *p = calloc((size_t)c->a.length, sizeof *p);
    struct twin t = {c, sequence, 0, key_head, sums, sums + count, sums + 2 * count, sums + 3 * count};
    const int group = c->a.heads / c->a.key_heads;
    for (t.head = key_head * group; t.head < (key_head + 1) * group; t.head++)
        for (int row = 0; row < c->a.length; row++) {
            const double log_sum = soften(&t, row, p);
            model_near((double)c->a.log_sums[stat_of(&t, row)], log_sum, tolerance, tolerance,
                       "log of the sum", row);
            check_mixed(&t, row, p);
            check_query(&t, row, p);
        }
    check_keys(&t);
    free(sums);
    free(p);
}

/* What is not a query's, a key's or a value's column stays what it was. */
static void check_beyond(const struct attend_case *c)
{
    const int64_t width = (c->a.heads + 2 * c->a.key_heads) * c->a.size;
    for (int64_t i = 0; i < c->keys; i++)
        cr_assert(i % c->a.stride < width || c->dqkv[i] == 0xffff, "row %d, column %d",
                  (int)(i / c->a.stride), (int)(i % c->a.stride));
}

static void check(struct attend_shape shape, int wide, int orders)
{
    struct attend_case c;
    attend_case_init(&c, shape, wide);
    run_all(&c, orders);
    for (int b = 0; b < shape.sequences; b++)
        for (int h = 0; h < shape.key_heads; h++)
            check_group(&c, b, h);
    check_beyond(&c);
    attend_case_clear(&c);
}

Test(attend, both_ways_are_those_in_double_precision_at_every_small_size)
{
    for (int size = 1; size <= 70; size++)
        check((struct attend_shape){1, size, 1, 1, 1 + size * 11 % 70, size % 2}, 1 + size * 11 % 70 > 64, 1);
}

Test(attend, both_ways_are_right_in_ten_orders)
{
    check((struct attend_shape){2, 37, 2, 2, 16, 0}, 0, MODEL_ORDERS);
    check((struct attend_shape){1, 37, 1, 1, 80, 0}, 1, MODEL_ORDERS);
    check((struct attend_shape){1, 70, 1, 1, 64, 0}, 0, MODEL_ORDERS);
}

Test(attend, heads_may_share_keys_and_values)
{
    check((struct attend_shape){1, 70, 4, 2, 8, 3}, 0, 2);
    check((struct attend_shape){2, 5, 3, 1, 7, 0}, 1, 2);
}

Test(attend, many_tiles_are_one_row)
{
    check((struct attend_shape){1, 200, 1, 1, 40, 0}, 0, 1);
}

Test(attend, each_barrier_is_missed)
{
    struct attend_case c;
    attend_case_init(&c, (struct attend_shape){1, 130, 1, 1, 8, 0}, 0);
    run_all(&c, 1);
    const struct model_run runs[] = {forward_run(&c), keys_run(&c), queries_run(&c)};
    for (int i = 0; i < 3; i++)
        model_run_planted(&runs[i]);
    attend_case_clear(&c);
}
