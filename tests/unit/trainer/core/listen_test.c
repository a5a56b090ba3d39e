/* Who listens, and to whom nobody has to wait. */
#include "tests/unit/trainer/core/play.h"

static void listen_to(struct play *p)
{
    struct message m;
    message_init(&m, MSG_LISTEN);
    m.listen.sources_count = 2;
    m.listen.source[1].worker = 3;
    link_message(p, &m);
}

static void all_came(struct play *p, int64_t step)
{
    p->state = state_of(step);
    done(p, OUTCOME_OK, false);
}

Test(listen, a_newcomer_listens_says_so_once_it_holds_a_state_and_goes_on)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    cr_assert_eq(p.running, CMD_LISTEN);
    cr_assert_eq(did(&p, ELASTIC_RUN)->form->listen.source[1].worker, 3);
    all_came(&p, 7);
    cr_assert_eq(sent(&p, MSG_HEARD)->heard.state.step, 7);
    cr_assert_eq(p.running, CMD_LISTEN, "it hears what is made behind that");
    end(&p);
}

/* It has heard steps up to `step`, `known` of them with their losses. */
static void all_came_with(struct play *p, enum elastic_outcome outcome, int64_t step, int known)
{
    struct elastic_result r = {.outcome = outcome, .tokens = 64};
    for (int64_t s = step - known + 1; s <= step; s++)
        losses_add(&r.heard, s, (double)s / 8);
    p->state = state_of(step);
    done_with(p, &r);
}

/* From the first that is told on, each step with its loss. */
static int told_from(const struct play *p, int64_t first)
{
    int told = 0;
    for (int i = 0; i < p->out->count; i++) {
        const struct elastic_action *a = &p->out->action[i];
        if (a->kind != ELASTIC_SEND || a->message->type != MSG_PROGRESS)
            continue;
        const struct msg_progress *said = &a->message->progress;
        cr_assert_eq(said->step, first + told);
        cr_assert(said->loss_known && said->loss == (double)said->step / 8);
        cr_assert_eq(said->tokens, 64);
        told++;
    }
    return told;
}

/* Those who made them may have gone before they told it. */
Test(listen, who_holds_a_state_tells_the_steps_that_led_there_with_their_losses)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    all_came_with(&p, OUTCOME_OK, 7, 3);
    cr_assert_eq(told_from(&p, 5), 3);
    cr_assert_eq(p.out->action[0].message->type, MSG_PROGRESS, "before it says that it holds it");
    stop(&p, 1, STOP_NOW);
    all_came_with(&p, OUTCOME_ABORTED, 9, 5);
    cr_assert_eq(told_from(&p, 8), 2);
    cr_assert(sent(&p, MSG_STOPPED));
    end(&p);
}

/* What it evaluated it knew only later. */
Test(listen, evaluations_that_were_heard_are_told_once_each)
{
    struct play p;
    struct elastic_result r = {.outcome = OUTCOME_OK};
    begin(&p, -1);
    listen_to(&p);
    for (int64_t s = 3; s <= 7; s++)
        losses_add(&r.heard, s, 1);
    losses_evaluate(&r.heard, 4, 0.5);
    p.state = state_of(7);
    done_with(&p, &r);
    cr_assert_eq(sent(&p, MSG_EVALUATED)->evaluated.step, 4);
    cr_assert_eq(sent(&p, MSG_EVALUATED)->evaluated.loss, 0.5);
    stop(&p, 1, STOP_NOW);
    r.outcome = OUTCOME_ABORTED;
    losses_add(&r.heard, 8, 1);
    losses_evaluate(&r.heard, 7, 0.25);
    p.state = state_of(8);
    done_with(&p, &r);
    cr_assert_eq(sent(&p, MSG_EVALUATED)->evaluated.step, 7, "the other one is told already");
    end(&p);
}

Test(listen, as_many_steps_as_are_known_are_told_at_once)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    stop(&p, 1, STOP_NOW);
    all_came_with(&p, OUTCOME_ABORTED, 100, LOSSES_KEPT);
    cr_assert_eq(told_from(&p, 100 - LOSSES_KEPT + 1), LOSSES_KEPT);
    end(&p);
}

Test(listen, of_a_state_that_is_not_held_nothing_is_told)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    stop(&p, 1, STOP_NOW);
    struct elastic_result r = {.outcome = OUTCOME_ABORTED};
    losses_add(&r.heard, 7, 1);
    done_with(&p, &r);
    cr_assert_null(sent(&p, MSG_PROGRESS));
    cr_assert(sent(&p, MSG_STOPPED));
    end(&p);
}

/* It was left out of the ring that made the last step anew. */
Test(listen, who_has_made_the_last_step_before_may_listen_too)
{
    struct play p;
    train_from(&p, 9);
    done(&p, OUTCOME_OK, false);
    while (p.running != CMD_NONE)
        done(&p, OUTCOME_OK, false);
    cr_assert(sent(&p, MSG_FINISHED));
    stop(&p, 1, STOP_NOW);
    listen_to(&p);
    cr_assert_eq(p.running, CMD_DROP);
    p.state = state_of(-1);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_LISTEN);
    end(&p);
}

Test(listen, told_to_stop_it_takes_what_is_there_and_answers_with_what_it_holds)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    all_came(&p, 7);
    stop(&p, 1, STOP_NOW);
    cr_assert_eq(did(&p, ELASTIC_PAUSE)->command, CMD_LISTEN);
    cr_assert_null(sent(&p, MSG_STOPPED));
    p.state = state_of(8);
    done(&p, OUTCOME_ABORTED, false);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 8);
    cr_assert_null(sent(&p, MSG_FAULT));
    cr_assert_null(did(&p, ELASTIC_RUN), "it does not listen any more");
    form(&p, 1, ROLE_KEEP, 8);
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(listen, what_is_told_to_stop_before_all_has_come_holds_nothing)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    stop(&p, 1, STOP_NOW);
    done(&p, OUTCOME_ABORTED, false);
    cr_assert_not(sent(&p, MSG_STOPPED)->stopped.state.held);
    cr_assert_null(sent(&p, MSG_HEARD));
    end(&p);
}

Test(listen, where_it_can_t_it_says_so_and_nothing_is_broken)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    done(&p, OUTCOME_PEER, false);
    cr_assert_not(sent(&p, MSG_HEARD)->heard.state.held);
    cr_assert_null(sent(&p, MSG_FAULT));
    cr_assert_null(did(&p, ELASTIC_RUN));
    stop(&p, 1, STOP_NOW);
    cr_assert(sent(&p, MSG_STOPPED));
    form(&p, 1, ROLE_RECEIVE, 8);
    cr_assert_eq(p.running, CMD_RECEIVE);
    end(&p);
}

Test(listen, who_has_lost_all_it_listened_to_keeps_what_it_holds)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    all_came(&p, 7);
    done(&p, OUTCOME_PEER, false);
    cr_assert_null(sent(&p, MSG_HEARD), "it said so, and holds it still");
    cr_assert_null(sent(&p, MSG_FAULT));
    stop(&p, 1, STOP_NOW);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 7);
    end(&p);
}

Test(listen, an_older_state_is_dropped_for_it)
{
    struct play p;
    begin(&p, 3);
    listen_to(&p);
    cr_assert_eq(p.running, CMD_DROP);
    p.state = state_of(-1);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_LISTEN);
    end(&p);
}

Test(listen, told_again_it_says_again_what_it_said)
{
    struct play p;
    begin(&p, -1);
    listen_to(&p);
    listen_to(&p);
    cr_assert_null(sent(&p, MSG_HEARD), "nothing yet");
    all_came(&p, 7);
    listen_to(&p);
    cr_assert_eq(sent(&p, MSG_HEARD)->heard.state.step, 7);
    cr_assert_null(did(&p, ELASTIC_RUN), "it listens already");
    end(&p);
}

Test(listen, who_is_in_a_ring_says_that_it_can_t)
{
    struct play p;
    train_from(&p, 2);
    listen_to(&p);
    cr_assert_not(sent(&p, MSG_HEARD)->heard.state.held);
    cr_assert_null(did(&p, ELASTIC_RUN));
    end(&p);
}

/* ---- a step behind, in the ring ---- */

/* It is ready before it has the step that the others made, and has it before its first lanes. */
Test(listen, who_follows_is_ready_at_once_and_catches_up_when_the_others_go)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_FOLLOW, 5);
    cr_assert_eq(p.running, CMD_CONNECT);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(sent(&p, MSG_READY)->ready.state.step, 4);
    go(&p, 1);
    cr_assert_eq(p.running, CMD_CATCH_UP);
    p.state = state_of(5);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_LANES);
    end(&p);
}

/* All do, so it would be missed. */
Test(listen, what_is_due_at_the_step_that_was_followed_to_is_done_behind_it)
{
    struct play p;
    begin(&p, 3);
    form(&p, 1, ROLE_FOLLOW, 4);
    done(&p, OUTCOME_OK, false);
    go(&p, 1);
    p.state = state_of(4);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_EVALUATE);
    end(&p);
}

Test(listen, who_follows_into_another_history_holds_nothing_any_more)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_FOLLOW, 5);
    done(&p, OUTCOME_OK, false);
    go(&p, 1);
    done(&p, OUTCOME_LINEAGE, false);
    cr_assert_eq(sent(&p, MSG_FAULT)->fault.kind, FAULT_LINEAGE);
    cr_assert_eq(p.running, CMD_DROP, "else it would follow again, and again");
    end(&p);
}

Test(listen, who_follows_and_is_told_to_stop_says_what_it_holds)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_FOLLOW, 5);
    done(&p, OUTCOME_OK, false);
    go(&p, 1);
    stop(&p, 2, STOP_NOW);
    cr_assert_eq(did(&p, ELASTIC_ABORT)->command, CMD_CATCH_UP);
    done(&p, OUTCOME_ABORTED, false);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 4);
    cr_assert_not(sent(&p, MSG_FAULT));
    form(&p, 2, ROLE_CATCH_UP, 5);
    cr_assert_eq(p.running, CMD_CATCH_UP);
    p.state = state_of(5);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}
