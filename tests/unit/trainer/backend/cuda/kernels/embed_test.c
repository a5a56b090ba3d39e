/* Embeddings on the emulated GPU: every bit is that of the rows added one after the other. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "common/base/prng.h"
#include "model_case.h"
#include "trainer/backend/cuda/kernels/embed.h"
#include "trainer/backend/cuda/tokens.h"

struct embed_case {
    int sequences, length, rows, vocabulary;
    int64_t width;
    int32_t *tokens;
    float *wte, *wpe, *x;
};

/* Few different tokens, so that most come more than once, and the last one of the vocabulary. */
static void embed_case_init(struct embed_case *c, int sequences, int length, int64_t width, int vocabulary)
{
    uint64_t seed = (uint64_t)(sequences * 1000 + length);
    *c =
        (struct embed_case){sequences, length, sequences * length, vocabulary, width, NULL, NULL, NULL, NULL};
    c->tokens = model_empty(c->rows, sizeof *c->tokens);
    for (int i = 0; i < c->rows; i++)
        c->tokens[i] = vocabulary - 1 - (int)prng_below(&seed, 7) % vocabulary;
    c->wte = model_floats(vocabulary * width, 1, seed);
    c->wpe = model_floats((length + 1) * width, 1, seed + 1);
    c->x = model_empty(c->rows * width, sizeof *c->x);
}

static void embed_case_clear(struct embed_case *c)
{
    free(c->tokens);
    free(c->wte);
    free(c->wpe);
    free(c->x);
}

static void forward(struct embed_case *c, bool places)
{
    const struct embed_args args = {c->tokens, c->wte,   places ? c->wpe : NULL, c->x, c->width,
                                    c->rows,   c->length};
    const struct model_run run = {
        &emulated_embed, &args, 1, true, {{c->x, (size_t)(c->rows * c->width) * sizeof(float)}}};
    model_run_orders(&run, 0);
    for (int n = 0; n < c->rows; n++)
        for (int64_t j = 0; j < c->width; j++) {
            float token = c->wte[c->tokens[n] * c->width + j], place = c->wpe[n % c->length * c->width + j];
            cr_assert_eq(c->x[n * c->width + j], places ? token + place : token, "row %d, %d", n, (int)j);
        }
}

/* x is the gradient now: it has numbers of its own in each row. */
static void backward_places(struct embed_case *c)
{
    const int64_t count = (c->length + 1) * c->width;
    float *dwpe = model_empty(count, sizeof *dwpe);
    const struct embed_places_args args = {c->x, dwpe, c->width, c->sequences, c->length};
    const struct model_run run = {
        &emulated_embed_places, &args, 1, true, {{dwpe, (size_t)count * sizeof *dwpe}}};
    model_run_orders(&run, 0);
    for (int64_t i = 0; i < c->length * c->width; i++) {
        float sum = 0;
        for (int b = 0; b < c->sequences; b++)
            sum += c->x[b * c->length * c->width + i];
        cr_assert_eq(dwpe[i], sum, "%d", (int)i);
    }
    for (int64_t i = c->length * c->width; i < count; i++)
        cr_assert_neq(dwpe[i], dwpe[i], "%d behind the last position", (int)i);
    free(dwpe);
}

static void backward_tokens(struct embed_case *c)
{
    const int64_t count = c->vocabulary * c->width;
    float *dwte = model_floats(count, 1, 77), *wanted = model_floats(count, 1, 77);
    int32_t *spare = model_empty(c->rows, sizeof *spare);
    struct cuda_token_groups g = {model_empty(c->rows, sizeof *g.order),
                                  model_empty(c->rows + 1, sizeof *g.first), 0};
    cuda_tokens_group(&g, c->tokens, c->rows, c->vocabulary, spare);
    const struct embed_tokens_args args = {c->tokens, g.order, g.first, &g.groups, c->x, dwte, c->width};
    const struct model_run run = {
        &emulated_embed_tokens, &args, 1, true, {{dwte, (size_t)count * sizeof *dwte}}};
    model_run_orders(&run, 0);
    for (int n = 0; n < c->rows; n++)
        for (int64_t j = 0; j < c->width; j++)
            wanted[c->tokens[n] * c->width + j] += c->x[n * c->width + j];
    for (int64_t i = 0; i < count; i++)
        cr_assert_eq(dwte[i], wanted[i], "token %d, %d", (int)(i / c->width), (int)(i % c->width));
    free(dwte);
    free(wanted);
    free(spare);
    free(g.order);
    free(g.first);
}

static void check(int sequences, int length, int64_t width, int vocabulary)
{
    struct embed_case c;
    embed_case_init(&c, sequences, length, width, vocabulary);
    forward(&c, true);
    backward_places(&c);
    backward_tokens(&c);
    forward(&c, false);
    embed_case_clear(&c);
}

Test(embed, both_ways_are_the_rows_one_after_the_other_at_every_small_size)
{
    for (int size = 1; size <= 70; size++)
        check(1 + size % 3, size, 1 + size * 5 % 70, size);
}

Test(embed, both_ways_are_right_for_wide_rows_and_a_large_vocabulary)
{
    check(3, 37, 80, 50257);
    check(2, 5, 255, 300);
    check(2, 5, 257, 300);
    check(1, 40, 600, 1);
}

/* Each row once, those of one token together and in order, one group for each token. */
static void check_groups(int rows, int vocabulary, uint64_t seed)
{
    int32_t *tokens = model_empty(rows, sizeof *tokens), *spare = model_empty(rows, sizeof *spare);
    struct cuda_token_groups g = {model_empty(rows, sizeof *g.order), model_empty(rows + 1, sizeof *g.first),
                                  0};
    for (int i = 0; i < rows; i++)
        tokens[i] = (int32_t)prng_below(&seed, (uint64_t)vocabulary);
    cuda_tokens_group(&g, tokens, rows, vocabulary, spare);
    cr_assert(g.first[0] == 0 && g.first[g.groups] == rows);
    for (int i = 0; i < g.groups; i++) {
        cr_assert_lt(g.first[i], g.first[i + 1]);
        for (int j = g.first[i] + 1; j < g.first[i + 1]; j++)
            cr_assert(tokens[g.order[j]] == tokens[g.order[j - 1]] && g.order[j] > g.order[j - 1]);
        cr_assert(!i || tokens[g.order[g.first[i]]] > tokens[g.order[g.first[i] - 1]], "group %d", i);
    }
    free(tokens);
    free(spare);
    free(g.order);
    free(g.first);
}

Test(tokens, rows_of_one_token_come_together_in_order)
{
    const int vocabularies[] = {1, 2, 255, 256, 257, 50257, 65536, 65537, 1 << 24, INT32_MAX};
    for (size_t i = 0; i < sizeof vocabularies / sizeof *vocabularies; i++)
        for (int rows = 1; rows <= 3000; rows = rows * 3 + 1)
            check_groups(rows, vocabularies[i], i);
}
