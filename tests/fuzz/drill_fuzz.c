/* Drills, one a line. A plan that is accepted hands every drill out once, by steps or by times, in order. */
#include <stdlib.h>
#include <string.h>

#include "cli/core/drill.h"
#include "tests/fuzz/fuzz.h"

static void check_drill(const struct drill *drill, const struct drill_terms *terms)
{
    if (drill->worker < -1 || drill->worker >= terms->workers_max || !drill_cause(drill->kind))
        fuzz_broken("a drill is against a worker that there may be");
}

static int hand_out_by_steps(struct drill_list *plan, const struct drill_terms *terms)
{
    const struct drill *drill;
    int seen = 0;
    for (int64_t step = 0; step <= terms->steps; step++)
        for (; (drill = drill_due(plan, step)); seen++) {
            check_drill(drill, terms);
            if (drill->step != step)
                fuzz_broken("a drill is due at its step");
        }
    return seen;
}

static int hand_out_by_times(struct drill_list *plan, const struct drill_terms *terms)
{
    int seen = 0;
    for (rm_time next, last = 0; (next = drill_next_after(plan)) != RM_NEVER; last = next, seen++) {
        if (next < last || drill_due_after(plan, next - 1))
            fuzz_broken("a drill is due at its time, and none before the one ahead of it");
        const struct drill *drill = drill_due_after(plan, next);
        if (!drill)
            fuzz_broken("a drill whose time has come is due");
        check_drill(drill, terms);
    }
    return seen;
}

static void check(struct drill_list plan, const struct drill_terms *terms)
{
    struct error err = {0};
    if (drill_list_check(&plan, terms, &err) < 0) {
        fuzz_refused(&err);
        return;
    }
    if (!terms->steps && plan.count && !plan.timed)
        fuzz_broken("where nobody knows the steps, drills have times");
    int seen = plan.timed ? hand_out_by_times(&plan, terms) : hand_out_by_steps(&plan, terms);
    if (seen != plan.count || drill_due(&plan, INT64_MAX) || drill_due_after(&plan, RM_NEVER - 1))
        fuzz_broken("every drill is handed out once");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct drill_list plan; /* large */
    struct drill_terms model = {
        .workers_min = 1, .workers_max = 6, .workers_target = 3, .steps = 200, .resume_step = 0};
    struct drill_terms program = {.workers_min = 1, .workers_max = 6, .workers_target = 3};
    struct error err = {0};
    char *text = fuzz_text(data, size);
    char *rest = text;
    plan = (struct drill_list){0};
    while (rest)
        if (drill_add(&plan, strsep(&rest, "\n"), &err) < 0)
            fuzz_refused(&err);
    check(plan, &model);
    check(plan, &program);
    free(text);
    return 0;
}
