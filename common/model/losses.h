/* The losses of a run's newest steps, with those of their evaluations, as far as they are known: of who makes
 * a step each rank knows the loss, and who only hears of it has to be told, or nobody knows it any more once
 * those who made it are gone. */
#ifndef RM_MODEL_LOSSES_H
#define RM_MODEL_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

enum { LOSSES_KEPT = 32 };

struct losses {
    int64_t step;                 /* the newest */
    int count;                    /* of steps up to that one, without a gap; 0: none is known */
    double loss[LOSSES_KEPT];     /* the oldest of them first */
    double held_out[LOSSES_KEPT]; /* of their evaluations; NaN: none is known */
};

/* The step is that behind the newest, or any other one: then what was known is of another past, and is
 * forgotten. */
void losses_add(struct losses *l, int64_t step, double loss);
/* The step's evaluation is kept where the step is known. */
void losses_evaluate(struct losses *l, int64_t step, double held_out);
/* What another one knows, up to a step that is not older: whatever it adds to what is known here. */
void losses_take(struct losses *l, const struct losses *from);
bool losses_know(const struct losses *l, int64_t step, double *ret);
bool losses_know_evaluation(const struct losses *l, int64_t step, double *ret);

#endif
