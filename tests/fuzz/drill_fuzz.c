/* Drills, one a line. A plan that is accepted hands every drill out once, in the order of steps. */
#include <stdlib.h>
#include <string.h>

#include "cli/core/drill.h"
#include "tests/fuzz/fuzz.h"

static void check_accepted(struct drill_plan *plan, const struct drill_terms *terms)
{
    const struct drill *drill;
    int seen = 0;
    for (int64_t step = 0; step <= terms->steps; step++)
        for (; (drill = drill_due(plan, step)); seen++)
            if (drill->step != step || drill->worker < -1 || drill->worker >= terms->workers_max ||
                !drill_cause(drill->kind))
                fuzz_broken("a drill is due at its step, against a worker that there may be");
    if (seen != plan->count)
        fuzz_broken("every drill is handed out once");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct drill_plan plan; /* large */
    struct drill_terms terms = {
        .workers_min = 1, .workers_max = 6, .workers_target = 3, .steps = 200, .resume_step = 0};
    struct error err = {0};
    char *text = fuzz_text(data, size);
    char *rest = text;
    plan = (struct drill_plan){0};
    while (rest)
        if (drill_add(&plan, strsep(&rest, "\n"), &err) < 0)
            fuzz_refused(&err);
    if (drill_plan_check(&plan, &terms, &err) == 0)
        check_accepted(&plan, &terms);
    else
        fuzz_refused(&err);
    free(text);
    return 0;
}
