/* Who reads what an assertion of the trainer's core says has no list of its numbers. */
#include <setjmp.h>

#include "common/base/assert.h"
#include "tests/unit/trainer/core/play.h"
#include "trainer/core/elastic_parts.h"

static char heard[512];
static jmp_buf out;

static void hear(const char *sentence)
{
    text_copy(heard, sizeof heard, sentence);
    longjmp(out, 1);
}

Test(names, each_command_outcome_mode_and_stage_has_one)
{
    struct elastic st = {0};
    for (enum elastic_command c = CMD_NONE; c <= CMD_DROP; c++)
        cr_assert(elastic_command_name(c), "command %d has none", (int)c);
    for (enum elastic_outcome o = OUTCOME_OK; o <= OUTCOME_FAILED; o++)
        cr_assert(elastic_outcome_name(o), "outcome %d has none", (int)o);
    for (st.mode = MODE_IDLE; st.mode <= MODE_FAULTED; st.mode++)
        cr_assert(elastic_mode_name(&st), "mode %d has none", (int)st.mode);
    for (st.stage = STAGE_NONE; st.stage <= STAGE_DECIDED; st.stage++)
        cr_assert(elastic_stage_name(&st), "stage %d has none", (int)st.stage);
}

Test(names, a_command_that_ends_while_another_one_runs_is_told_with_both)
{
    struct play p;
    begin(&p, -1);
    form(&p, 1, ROLE_INIT, 0);
    cr_assert_eq(p.running, CMD_INIT);
    const struct elastic_result result = {.command = CMD_DIGEST};
    const struct elastic_event event = {.kind = ELASTIC_DONE, .result = &result};
    assertion_hook = hear;
    if (!setjmp(out))
        elastic_step(p.st, &event, p.out);
    assertion_hook = NULL;
    cr_assert(strstr(heard, "command DIGEST is done, and INIT runs"), "%s", heard);
    end(&p);
}
