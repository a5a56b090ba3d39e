#include "trainer/backend/cpu/model/sample.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

Test(sample, without_temperature_the_likeliest_token_is_taken)
{
    float logits[5] = {0.5f, 3, -1, 3, 2};
    cr_assert_eq(sample_token(logits, 5, 0, 0.99), 1);
}

Test(sample, tokens_are_drawn_as_often_as_softmax_says)
{
    enum { N = 37, DRAWS = 20000 };
    int seen[N] = {0};
    double sum = 0;
    for (int i = 0; i < N; i++)
        sum += exp(sin(i) / 0.7);
    for (int d = 0; d < DRAWS; d++) {
        float logits[N];
        for (int i = 0; i < N; i++)
            logits[i] = (float)sin(i);
        seen[sample_token(logits, N, 0.7f, (d + 0.5) / DRAWS)]++;
    }
    for (int i = 0; i < N; i++)
        cr_assert(fabs(seen[i] - DRAWS * exp(sin(i) / 0.7) / sum) < 3, "token %d: %d times", i, seen[i]);
}

Test(sample, the_first_and_the_last_place_are_tokens_too)
{
    float logits[3] = {0, 0, 0};
    cr_assert_eq(sample_token(logits, 3, 1, 0), 0);
    memset(logits, 0, sizeof logits);
    cr_assert_eq(sample_token(logits, 3, 1, 0.999999999), 2);
}

Test(sample, logits_that_are_no_numbers_still_give_a_token)
{
    float logits[3] = {NAN, NAN, NAN};
    int token = sample_token(logits, 3, 1, 0.5);
    cr_assert(token >= 0 && token < 3);
}
