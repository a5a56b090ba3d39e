/* Words of a coordinator that can't be meant, or come at another time than they should: they fail no
 * assertion of the trainer, and nothing waits for ever by them. */
#include "tests/unit/trainer/core/play.h"

static void save(struct play *p, int64_t at)
{
    struct message m;
    message_init(&m, MSG_SAVE);
    m.save.step = at;
    m.save.count = 1;
    m.save.worker[0] = 1;
    link_message(p, &m);
}

Test(untimely, a_form_that_comes_to_who_is_in_a_ring_without_a_stop_between_is_not_heard)
{
    struct play p;
    begin(&p, -1);
    form(&p, 1, ROLE_LOAD, 4);
    cr_assert_eq(p.running, CMD_NONE, "it waits for what its agent reads");
    form(&p, 2, ROLE_INIT, 0);
    cr_assert_eq(p.running, CMD_NONE);
    stop(&p, 2, STOP_NOW);
    cr_assert(sent(&p, MSG_STOPPED));
    form(&p, 3, ROLE_INIT, 0);
    end(&p);
}

Test(untimely, a_form_that_comes_before_a_stop_is_answered_is_begun_with_that_answer)
{
    struct play p;
    begin(&p, 4);
    save(&p, 4);
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    stop(&p, 2, STOP_BOUNDARY);
    form(&p, 1, ROLE_KEEP, 4);
    done(&p, OUTCOME_OK, false);
    cr_assert(sent(&p, MSG_STOPPED));
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(untimely, a_form_that_comes_before_the_last_step_waits_for_the_stop_and_is_begun_then)
{
    struct play p;
    train_from(&p, 9);
    stop(&p, 2, STOP_BOUNDARY);
    form(&p, 2, ROLE_KEEP, 10);
    done(&p, OUTCOME_OK, true);
    for (int i = 0; i < 4 && !sent(&p, MSG_STOPPED); i++)
        done(&p, OUTCOME_OK, false);
    cr_assert(sent(&p, MSG_STOPPED));
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(untimely, a_save_that_fails_while_a_form_waits_is_told_and_a_stop_asked_for)
{
    struct play p;
    begin(&p, 4);
    save(&p, 4);
    form(&p, 1, ROLE_KEEP, 4);
    done(&p, OUTCOME_FAILED, false);
    cr_assert(sent(&p, MSG_FAULT));
    stop(&p, 2, STOP_NOW);
    cr_assert(sent(&p, MSG_STOPPED));
    form(&p, 2, ROLE_KEEP, 4);
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(untimely, a_state_from_behind_the_last_step_is_taken_from_nobody)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_RECEIVE, 11);
    cr_assert_eq(p.running, CMD_NONE);
    cr_assert_eq(sent(&p, MSG_FAULT)->fault.kind, FAULT_LINEAGE);
    end(&p);
}
