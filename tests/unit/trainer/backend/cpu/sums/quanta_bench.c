/* What sums in integers lose (docs/exactness.md, "Small elements"): a model with a large vocabulary trained
 * twice from the same weights on the same words, with the sums of trainer/backend/cpu/sums and with sums in
 * 64 bits that lose nothing that matters, and the same AdamW. quanta_bench [STEPS] [LANES] [VOCABULARY]
 * [WIDTH] [LAYERS] [THREADS] */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "tests/unit/trainer/state/near_arrays.h"
#include "trainer/backend/cpu/model/gpt.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/update.h"

enum { CONTEXT = 32, SEED = 7, FEW = 16, LAST = 20 };

static const struct update_rule rule = {
    .schedule = {.rate = 2e-3, .warmup = 10, .steps = 1000},
    .beta1 = 0.9,
    .beta2 = 0.95,
    .epsilon = 1e-8,
    .weight_decay = 0.1,
    .clip_norm = 1,
};

struct bench {
    int steps, lanes, vocabulary, width, layers, threads;
    struct model_layout layout;
    struct pool *pool;
    struct gpt *gpt;
    float *grads, *params, *m, *v; /* params, m, v: of the run with sums in 64 bits */
    int64_t *sums;
    int32_t tokens[CONTEXT + 1];
    int64_t few, nonzero, rescaled;
    struct state *state;
    struct lanes *sum;
};

static void die(const char *why)
{
    fprintf(stderr, "quanta_bench: %s\n", why);
    _exit(4);
}

/* Words as rare as in a language: the i-th most frequent one comes about 1 / i as often as the first; each is
 * followed by one of three that it decides. */
static void tell(struct bench *b, int step, int lane)
{
    uint64_t state = ((uint64_t)step << 32 | (uint64_t)lane) * 0x9E3779B97F4A7C15u + SEED;
    int word = 0;
    for (int i = 0; i <= CONTEXT; i++) {
        if (i % 8 == 0)
            word = (int)pow(b->vocabulary, prng_unit(&state)) - 1;
        else
            word = (int)(((int64_t)word * 31 + 17 * (int64_t)prng_below(&state, 3) + 1) % b->vocabulary);
        b->tokens[i] = word;
    }
}

static float lane(struct bench *b, const float *params, int step, int lane)
{
    struct error err = {0};
    float loss;
    tell(b, step, lane);
    if (gpt_lane(b->gpt, params, b->tokens, b->grads, &loss, NULL, &err) < 0)
        die(err.text);
    return loss;
}

/* ---- as Ringmaster does it ---- */

static void count_small(struct bench *b, const struct lanes_sums *words)
{
    for (int64_t i = 0; i < b->layout.parameters; i++) {
        int64_t size = llabs((int64_t)(int32_t)words->words[i]);
        b->few += size > 0 && size < FEW;
        b->nonzero += size > 0;
    }
}

static double exact_step(struct bench *b, int step, const int32_t *k)
{
    const float *params = near_arrays(b->state).params;
    struct lanes_sums words;
    struct verdict verdict;
    struct update_info info;
    lanes_begin(b->sum, &(struct lanes_pass){.k = k});
    for (int i = 0; i < b->lanes; i++) {
        float loss = lane(b, params, step, i);
        lanes_add(b->sum, i, b->grads, loss);
    }
    lanes_end(b->sum, &words);
    memcpy(words.header_to, words.header, (size_t)words.header_count * sizeof *words.header);
    lanes_decide(b->sum, &verdict);
    if (verdict.kind == VERDICT_RESCALE) {
        b->rescaled += verdict.rescaled;
        return exact_step(b, step, verdict.k);
    }
    if (verdict.kind != VERDICT_FITS)
        die("the gradient is not finite");
    count_small(b, &words);
    lanes_words_to(b->sum);
    update_commit(b->sum, &rule, &info);
    gpt_weights_changed(b->gpt, near_arrays(b->state).params);
    return info.loss;
}

/* ---- with nothing lost ---- */

static double total_norm(const struct bench *b, double unit)
{
    double square = 0;
    for (int64_t i = 0; i < b->layout.parameters; i++)
        square += (double)b->sums[i] * unit * ((double)b->sums[i] * unit);
    return sqrt(square);
}

static void plain_update(struct bench *b, int step, double unit)
{
    double norm = total_norm(b, unit), rate = schedule_rate(&rule.schedule, step);
    double clip = norm > rule.clip_norm ? rule.clip_norm / (norm + 1e-6) : 1;
    double left1 = 1 - pow(rule.beta1, step), left2 = 1 - pow(rule.beta2, step);
    for (int t = 0; t < b->layout.tensors; t++) {
        const struct model_tensor *tensor = &b->layout.tensor[t];
        double keep = tensor->decay ? 1 - rate * rule.weight_decay : 1;
        for (int64_t i = tensor->first; i < tensor->first + tensor->count; i++) {
            double g = (double)b->sums[i] * unit * clip;
            b->m[i] = (float)(rule.beta1 * (double)b->m[i] + (1 - rule.beta1) * g);
            b->v[i] = (float)(rule.beta2 * (double)b->v[i] + (1 - rule.beta2) * g * g);
            double change = (double)b->m[i] / left1 / (sqrt((double)b->v[i] / left2) + rule.epsilon);
            b->params[i] = (float)((double)b->params[i] * keep - rate * change);
        }
    }
}

/* Quanta of 2^-54: far below what fp32 can tell apart in gradients of this size. */
static double plain_step(struct bench *b, int step)
{
    const double unit = ldexp(1, -54);
    double loss = 0;
    memset(b->sums, 0, (size_t)b->layout.parameters * sizeof *b->sums);
    for (int i = 0; i < b->lanes; i++) {
        loss += (double)lane(b, b->params, step, i);
        for (int64_t j = 0; j < b->layout.parameters; j++)
            b->sums[j] += llrint((double)b->grads[j] / unit / b->lanes);
    }
    plain_update(b, step + 1, unit);
    gpt_weights_changed(b->gpt, b->params);
    return loss / b->lanes;
}

/* ---- both ---- */

static void open_all(struct bench *b)
{
    struct error err = {0};
    const struct model_shape shape = {
        .layers = b->layers, .heads = 4, .width = b->width, .context = CONTEXT, .vocabulary = b->vocabulary};
    const struct state_point point = {.step = 0};
    const struct gpt_options options = {.sequences = 1, .isa = "Auto", .precision = GPT_FP32};
    model_layout_init(&b->layout, &shape);
    size_t count = (size_t)b->layout.parameters;
    b->grads = malloc(count * sizeof *b->grads), b->params = malloc(count * sizeof *b->params);
    b->m = calloc(count, sizeof *b->m), b->v = calloc(count, sizeof *b->v);
    b->sums = malloc(count * sizeof *b->sums);
    if (!b->grads || !b->params || !b->m || !b->v || !b->sums)
        die("no memory");
    if (pool_open(&b->pool, b->threads, &err) < 0 ||
        gpt_open(&b->gpt, &b->layout, &options, b->pool, &err) < 0 ||
        state_open(&b->state, memfd_create("state", MFD_CLOEXEC),
                   &(struct state_shape){.layout = &b->layout, .lanes = b->lanes}, &err) < 0 ||
        lanes_open(&b->sum, b->state, b->pool, &err) < 0)
        die(err.text);
    gpt_init_weights(&b->layout, SEED, b->params);
    state_receive_begin(b->state);
    memcpy(near_arrays(b->state).params, b->params, count * sizeof *b->params);
    state_zero_moments(b->state, NULL);
    state_receive_end(b->state, &point, NULL);
    gpt_weights_changed(b->gpt, b->params);
}

static void run(struct bench *b, bool exact)
{
    double last = 0, all = 0, first = 0;
    for (int step = 0; step < b->steps; step++) {
        double loss = exact ? exact_step(b, step, NULL) : plain_step(b, step);
        first = step ? first : loss;
        all += loss;
        last += step >= b->steps - LAST ? loss : 0;
    }
    printf("%-8s loss %.4f at first, %.4f on average, %.4f over the last %d steps\n",
           exact ? "integers" : "64 bits", first, all / b->steps, last / LAST, LAST);
}

int main(int argc, char **argv)
{
    static struct bench b = {
        .steps = 100, .lanes = 64, .vocabulary = 50257, .width = 64, .layers = 2, .threads = 1};
    int *option[] = {&b.steps, &b.lanes, &b.vocabulary, &b.width, &b.layers, &b.threads};
    for (int i = 1; i < argc && i <= (int)(sizeof option / sizeof *option); i++)
        *option[i - 1] = (int)strtol(argv[i], NULL, 10);
    if (b.steps < LAST || b.lanes < 1 || b.vocabulary < 2 || b.width < 4 || b.layers < 1 || b.threads < 1)
        die("[STEPS from 20 on] [LANES] [VOCABULARY] [WIDTH] [LAYERS] [THREADS]");
    open_all(&b);
    printf("%d layers, width %d, %d words, %.1f M parameters; %d steps of %d lanes of %d tokens\n", b.layers,
           b.width, b.vocabulary, (double)b.layout.parameters / 1e6, b.steps, b.lanes, CONTEXT);
    run(&b, true);
    run(&b, false);
    printf("%.1f %% of the elements that are not 0 were below %d quanta; tensors rescaled: %lld\n",
           100 * (double)b.few / (double)b.nonzero, FEW, (long long)b.rescaled);
    printf("%.1f %% of all elements were 0\n",
           100 - 100 * (double)b.nonzero / ((double)b.layout.parameters * b.steps));
    return 0;
}
