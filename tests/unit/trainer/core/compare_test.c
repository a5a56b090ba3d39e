/* When a ring compares its states where no step of it follows. */
#include "tests/unit/trainer/core/play.h"

/* Nobody receives it, saves it or ends with it before. */
Test(compare, states_that_no_step_of_the_ring_follows_are_compared_first)
{
    for (int64_t held = 0; held <= 9; held += 9) {
        struct play p;
        train_from(&p, held);
        while (p.running == CMD_SNAPSHOT)
            done(&p, OUTCOME_OK, false);
        done(&p, OUTCOME_OK, held == 0);
        cr_assert_eq(p.running, CMD_COMPARE, "step %d", (int)held + 1);
        cr_assert_not(sent(&p, MSG_STOPPED) || sent(&p, MSG_FINISHED));
        struct elastic_result r = {
            .outcome = OUTCOME_PROOF, .class = CLASS_MACHINE, .minority = true, .outvoted = true};
        done_with(&p, &r);
        cr_assert_eq(sent(&p, MSG_FAULT)->fault.kind, FAULT_PROOF);
        cr_assert_eq(sent(&p, MSG_FAULT)->fault.class, CLASS_MACHINE);
        cr_assert_eq(p.running, CMD_DROP);
        end(&p);
    }
}

Test(compare, a_stop_at_once_does_not_wait_for_states_to_be_compared)
{
    struct play p;
    train_from(&p, 0);
    done(&p, OUTCOME_OK, true);
    cr_assert_eq(p.running, CMD_COMPARE);
    stop(&p, 2, STOP_NOW);
    cr_assert_eq(did(&p, ELASTIC_ABORT)->command, CMD_COMPARE);
    done(&p, OUTCOME_ABORTED, false);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 1);
    cr_assert_not(sent(&p, MSG_FAULT));
    end(&p);
}
