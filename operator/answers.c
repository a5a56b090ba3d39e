/* Reads answers in portions. */
#include "operator/answers.h"

#include <stdlib.h>

#include "common/base/assert.h"
#include "common/os/clock.h"

TAILQ_HEAD(answers_line, answers_place);

struct answers {
    struct loop_bell *bell; /* rung in a turn it is heard in the next one */
    struct answers_line line;
};

static void read_some(void *ctx)
{
    struct answers *answers = ctx;
    rm_time until = clock_now() + ANSWERS_PORTION;
    struct answers_place *first;
    while ((first = TAILQ_FIRST(&answers->line)) && clock_now() < until) {
        answers_remove(answers, first);
        first->read(first->ctx);
    }
    if (!TAILQ_EMPTY(&answers->line))
        loop_wake(answers->bell);
}

void answers_add(struct answers *answers, struct answers_place *place)
{
    RM_ASSERT(place->read, "nobody reads the answer of %p", (void *)place);
    if (place->waits)
        return;
    place->waits = true;
    TAILQ_INSERT_TAIL(&answers->line, place, others);
    loop_wake(answers->bell);
}

void answers_remove(struct answers *answers, struct answers_place *place)
{
    if (place->waits)
        TAILQ_REMOVE(&answers->line, place, others);
    place->waits = false;
}

int answers_open(struct answers **ret, struct loop *loop, struct error *err)
{
    struct answers *answers = calloc(1, sizeof *answers);
    if (!answers)
        return err_set(err, ERR_MACHINE, "no memory for answers");
    TAILQ_INIT(&answers->line);
    if (loop_bell_open(&answers->bell, loop, read_some, answers, err) < 0) {
        free(answers);
        return -1;
    }
    *ret = answers;
    return 0;
}

void answers_free(struct answers *answers)
{
    if (!answers)
        return;
    RM_ASSERT(TAILQ_EMPTY(&answers->line), "answers are freed while some wait, as %p", (void *)answers);
    loop_bell_free(answers->bell);
    free(answers);
}
