/* The learning rate of a step, from + - * / alone: the C library's cos and pow differ between CPUs, and a
 * last bit in the rate is a last bit in every weight. Pure. */
#ifndef RM_TRAINER_SCHEDULE_H
#define RM_TRAINER_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

struct schedule {
    double rate;     /* after warm-up */
    double rate_min; /* cosine only: at the last step */
    int64_t warmup;  /* steps; step i of them uses rate * i / warmup */
    int64_t steps;   /* of the whole job */
    bool cosine;     /* false: rate stays as it is after warm-up */
};

/* The rate of step 1..steps (the step that leads from state(step - 1) to state(step)). */
double schedule_rate(const struct schedule *s, int64_t step);

/* cos(pi * t) for 0 <= t <= 1, within 1e-15. */
double schedule_cos_pi(double t);

/* base^exponent by squaring, exponent >= 0. */
double schedule_power(double base, int64_t exponent);

#endif
