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
