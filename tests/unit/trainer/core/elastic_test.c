/* The trainer's rules, one story each. */
#include <math.h>

#include "tests/unit/bits.h"
#include "tests/unit/trainer/core/play.h"

Test(elastic, from_the_seed_to_the_first_steps)
{
    struct play p;
    begin(&p, -1);
    form(&p, 1, ROLE_INIT, -1);
    cr_assert_eq(p.running, CMD_INIT);
    p.state = state_of(0);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_CONNECT);
    done(&p, OUTCOME_OK, false);
    go(&p, 1);
    cr_assert_eq(p.running, CMD_LANES);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.step, 1);
    cr_assert_eq(p.running, CMD_LANES);
    end(&p);
}

Test(elastic, a_stop_at_the_boundary_raises_the_flag_and_reports_after_that_step)
{
    struct play p;
    train_from(&p, 0);
    stop(&p, 2, STOP_BOUNDARY);
    cr_assert(did(&p, ELASTIC_RAISE_STOP));
    cr_assert_not(sent(&p, MSG_STOPPED));
    done(&p, OUTCOME_OK, true);
    done(&p, OUTCOME_OK, false); /* compared */
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 1);
    cr_assert_not(sent(&p, MSG_STOPPED)->stopped.discarded);
    cr_assert_eq(p.running, CMD_NONE);
    end(&p);
}

Test(elastic, others_flag_stops_it_too_before_its_own_stop_has_come)
{
    struct play p;
    train_from(&p, 0);
    done(&p, OUTCOME_OK, true);
    done(&p, OUTCOME_OK, false); /* compared */
    cr_assert_eq(p.running, CMD_NONE);
    cr_assert_not(sent(&p, MSG_STOPPED));
    stop(&p, 2, STOP_BOUNDARY);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.round, 2);
    end(&p);
}

Test(elastic, a_stop_at_once_aborts_the_pass_and_says_that_it_was_thrown_away)
{
    struct play p;
    train_from(&p, 0);
    stop(&p, 2, STOP_NOW);
    cr_assert(did(&p, ELASTIC_PAUSE));
    cr_assert_not(sent(&p, MSG_STOPPED));
    done(&p, OUTCOME_ABORTED, false);
    cr_assert(sent(&p, MSG_STOPPED)->stopped.discarded);
    cr_assert_not(sent(&p, MSG_FAULT), "what was asked for is no fault");
    end(&p);
}

Test(elastic, an_aborted_pass_that_completed_all_the_same_counts)
{
    struct play p;
    train_from(&p, 0);
    one_done(&p, OUTCOME_OK, false);
    stop(&p, 2, STOP_NOW);
    done(&p, OUTCOME_OK, false);
    cr_assert(sent(&p, MSG_PROGRESS));
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 1);
    cr_assert_not(sent(&p, MSG_STOPPED)->stopped.discarded);
    end(&p);
}

Test(elastic, a_peer_that_goes_while_computing_is_told_at_once)
{
    struct play p;
    train_from(&p, 0);
    step(&p, (struct elastic_event){.kind = ELASTIC_PEER_GONE, .peer = 0});
    cr_assert(did(&p, ELASTIC_PAUSE));
    cr_assert_eq(sent(&p, MSG_FAULT)->fault.peer, 0);
    done(&p, OUTCOME_ABORTED, false);
    cr_assert_not(sent(&p, MSG_FAULT), "once");
    cr_assert_eq(p.running, CMD_NONE);
    stop(&p, 2, STOP_NOW);
    cr_assert(sent(&p, MSG_STOPPED)->stopped.discarded);
    end(&p);
}

Test(elastic, a_form_that_does_not_match_what_is_held_is_refused)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_KEEP, 5);
    cr_assert_eq(p.running, CMD_NONE);
    cr_assert(strstr(sent(&p, MSG_FAULT)->fault.detail, "told to keep step 5 of 10, but step 4 is held"));
    end(&p);
}

Test(elastic, who_holds_nothing_keeps_nothing_whatever_it_is_told)
{
    struct play p;
    struct message m;
    begin(&p, -1);
    message_init(&m, MSG_FORM);
    m.generation = (struct msg_generation){1, 1};
    m.form.count = 1;
    m.form.member[0].worker = 1;
    m.form.member[0].role = ROLE_KEEP;
    step(&p, (struct elastic_event){.kind = ELASTIC_LINK, .message = &m});
    cr_assert_eq(p.running, CMD_NONE);
    cr_assert(strstr(sent(&p, MSG_FAULT)->fault.detail, "told to keep step 0 of 10, but step -1 is held"));
    end(&p);
}

Test(elastic, a_form_that_comes_to_who_has_failed_without_a_stop_between_is_not_heard)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_KEEP, 5);
    form(&p, 2, ROLE_KEEP, 4);
    cr_assert_eq(p.running, CMD_NONE);
    stop(&p, 2, STOP_NOW);
    form(&p, 3, ROLE_KEEP, 4);
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(elastic, a_save_that_names_this_worker_twice_is_one_for_its_first_part)
{
    struct play p;
    struct message m;
    begin(&p, 4);
    message_init(&m, MSG_SAVE);
    m.save.step = 4;
    m.save.count = 2;
    m.save.worker[0] = m.save.worker[1] = 1;
    step(&p, (struct elastic_event){.kind = ELASTIC_LINK, .message = &m});
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    end(&p);
}

Test(elastic, catching_up_into_another_history_falls_back_to_receiving)
{
    struct play p;
    begin(&p, 4);
    form(&p, 1, ROLE_CATCH_UP, 5);
    cr_assert_eq(p.running, CMD_CATCH_UP);
    done(&p, OUTCOME_LINEAGE, false);
    cr_assert_eq(p.running, CMD_RECEIVE);
    p.state = state_of(5);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(elastic, a_source_that_holds_something_else_is_named_as_such_and_not_as_one_that_is_not_reached)
{
    for (int source = 0; source < 2; source++) {
        struct play p;
        begin(&p, 2);
        form(&p, 1, ROLE_RECEIVE, 5);
        struct elastic_result r = {
            .command = CMD_RECEIVE, .outcome = OUTCOME_PEER, .peer = 0, .update_step = -1};
        r.class = source ? CLASS_SOURCE : CLASS_UNKNOWN;
        text_copy(r.text, sizeof r.text, "receive the state from worker 0: as the story goes");
        p.running = CMD_NONE;
        step(&p, (struct elastic_event){.kind = ELASTIC_DONE, .result = &r});
        const struct msg_fault *f = &sent(&p, MSG_FAULT)->fault;
        cr_assert_eq(f->kind, source ? FAULT_LINEAGE : FAULT_RING);
        cr_assert_eq(f->class, source ? CLASS_SOURCE : CLASS_UNKNOWN);
        cr_assert_eq(f->peer, 0);
        end(&p);
    }
}

Test(elastic, a_half_received_state_is_not_held)
{
    struct play p;
    begin(&p, 2);
    form(&p, 1, ROLE_RECEIVE, 5);
    cr_assert_eq(p.running, CMD_RECEIVE);
    stop(&p, 2, STOP_NOW);
    p.state = state_of(-1);
    done(&p, OUTCOME_ABORTED, false);
    cr_assert_not(sent(&p, MSG_STOPPED)->stopped.state.held);
    end(&p);
}

Test(elastic, evaluation_and_snapshot_come_between_the_steps)
{
    struct play p;
    train_from(&p, 2);
    done(&p, OUTCOME_OK, false); /* step 3 */
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    cr_assert_eq(did(&p, ELASTIC_RUN)->part, 1);
    cr_assert_eq(did(&p, ELASTIC_RUN)->parts, 2);
    done(&p, OUTCOME_OK, false);
    cr_assert(sent(&p, MSG_SNAPSHOT));
    cr_assert_eq(p.running, CMD_LANES);
    done(&p, OUTCOME_OK, false); /* step 4 */
    cr_assert_eq(p.running, CMD_EVALUATE);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(sent(&p, MSG_EVALUATED)->evaluated.step, 4);
    end(&p);
}

Test(elastic, a_step_whose_ring_wants_it_saved_is_followed_by_a_snapshot_but_never_the_last_one)
{
    struct play p;
    train_from(&p, 0);
    for (int64_t number = 1; number <= 10; number += 9) {
        while (p.state.step < number - 1)
            done(&p, OUTCOME_OK, false);
        while (p.running != CMD_LANES)
            done(&p, OUTCOME_OK, false);
        one_done(&p, OUTCOME_OK, false);
        struct elastic_result r = {.outcome = OUTCOME_OK, .save = true};
        done_with(&p, &r);
        one_done(&p, OUTCOME_OK, false);
        cr_assert_eq(p.running == CMD_SNAPSHOT, number < 10, "step %d runs %d", (int)number, p.running);
        if (number == 1) {
            struct message m;
            done(&p, OUTCOME_OK, false);
            message_init(&m, MSG_SNAPSHOT_FREE);
            link_message(&p, &m);
            p.state = state_of(9); /* not to go through the planned ones */
        }
    }
    end(&p);
}

Test(elastic, a_step_says_whether_a_snapshot_of_it_is_taken)
{
    struct play p;
    train_from(&p, 2);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    cr_assert(sent(&p, MSG_PROGRESS)->progress.saves);
    done(&p, OUTCOME_OK, false);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.state.step, 4);
    cr_assert_not(sent(&p, MSG_PROGRESS)->progress.saves);
    end(&p);
}

Test(elastic, how_long_to_train_between_two_checkpoints_is_for_who_has_the_clock)
{
    struct play p;
    struct message m;
    train_from(&p, 2);
    message_init(&m, MSG_SAVE_EVERY);
    m.save_every.every = 90 * RM_S;
    link_message(&p, &m);
    cr_assert_eq(did(&p, ELASTIC_SAVE_EVERY)->every, 90 * RM_S);
    cr_assert_eq(p.running, CMD_LANES, "the step goes on");
    end(&p);
}

Test(elastic, a_snapshot_waits_until_the_agent_is_done_with_the_last_one)
{
    struct play p;
    train_from(&p, 2);
    done(&p, OUTCOME_OK, false);
    done(&p, OUTCOME_OK, false); /* snapshot of 3 */
    for (int i = 0; i < 2; i++) {
        done(&p, OUTCOME_OK, false);
        if (p.running == CMD_EVALUATE)
            done(&p, OUTCOME_OK, false);
    }
    cr_assert_eq(p.running, CMD_LANES); /* 6 */
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_NONE);
    cr_assert(sent(&p, MSG_SNAPSHOT_WANTED), "its agent may keep what the store does not take");
    struct message m;
    message_init(&m, MSG_SNAPSHOT_FREE);
    link_message(&p, &m);
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    end(&p);
}

/* Who leaves may have less time than the store needs for that. */
Test(elastic, who_is_to_stop_at_the_boundary_makes_that_step_without_a_snapshot_that_would_have_to_wait)
{
    struct play p;
    train_from(&p, 2);
    done(&p, OUTCOME_OK, false);
    while (p.running != CMD_NONE)
        done(&p, OUTCOME_OK, false); /* the snapshot of 3, and on to 6 */
    cr_assert_eq(p.state.step, 6);
    stop(&p, 2, STOP_BOUNDARY);
    cr_assert(did(&p, ELASTIC_RAISE_STOP));
    cr_assert_eq(p.running, CMD_LANES, "the others wait for it in that step");
    done(&p, OUTCOME_OK, true);
    done(&p, OUTCOME_OK, false); /* compared */
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 7);
    end(&p);
}

/* Others' flag may come in the step of which a snapshot is due. */
Test(elastic, nor_does_it_wait_behind_the_step_that_it_stops_at)
{
    struct play p;
    train_from(&p, 2);
    while (p.state.step < 5 || p.running != CMD_LANES)
        done(&p, OUTCOME_OK, false);
    stop(&p, 2, STOP_BOUNDARY);
    done(&p, OUTCOME_OK, true);
    cr_assert_eq(p.state.step, 6);
    if (p.running == CMD_EVALUATE)
        done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_COMPARE);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 6);
    end(&p);
}

static void until_commit(struct play *p)
{
    do
        one_done(p, OUTCOME_OK, false);
    while (p->running != CMD_COMMIT);
}

Test(elastic, a_step_towards_a_snapshot_leads_into_its_memory_only_while_nobody_reads_there)
{
    struct play p;
    train_from(&p, 1);
    until_commit(&p);
    cr_assert_not(did(&p, ELASTIC_RUN)->to_snapshot, "nothing is due at 2");
    cr_assert(did(&p, ELASTIC_RUN)->snapshot_free, "but a clock may say otherwise");
    until_commit(&p);
    cr_assert(did(&p, ELASTIC_RUN)->to_snapshot, "step 3 is saved, and the memory is free");
    one_done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    cr_assert_not(did(&p, ELASTIC_RUN)->to_snapshot);
    for (int step = 4; step <= 6; step++) {
        until_commit(&p);
        cr_assert_not(did(&p, ELASTIC_RUN)->to_snapshot, "the agent still reads that of step 3, at %d", step);
        cr_assert_not(did(&p, ELASTIC_RUN)->snapshot_free);
    }
    end(&p);
}

Test(elastic, a_save_without_writers_asks_all_for_one_after_the_next_step_and_nobody_who_does_not_train)
{
    struct play p;
    struct message m;
    train_from(&p, 0);
    message_init(&m, MSG_SAVE);
    link_message(&p, &m);
    cr_assert(did(&p, ELASTIC_RAISE_SAVE));
    cr_assert_not(sent(&p, MSG_FAULT));
    stop(&p, 2, STOP_BOUNDARY);
    done(&p, OUTCOME_OK, true);
    done(&p, OUTCOME_OK, false); /* compared */
    link_message(&p, &m);
    cr_assert_not(did(&p, ELASTIC_RAISE_SAVE));
    cr_assert_not(sent(&p, MSG_FAULT));
    end(&p);
}

Test(elastic, the_last_step_ends_with_the_digest_and_a_final_slice_when_asked)
{
    struct play p;
    train_from(&p, 9);
    cr_assert_eq(p.running, CMD_SNAPSHOT, "that of step 9, which nobody has published yet");
    done(&p, OUTCOME_OK, false);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_COMPARE);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_DIGEST);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(sent(&p, MSG_FINISHED)->finished.step, 10);
    struct message m;
    message_init(&m, MSG_SAVE);
    m.save.step = 10;
    m.save.final = true;
    m.save.count = 1;
    m.save.worker[0] = 1;
    link_message(&p, &m);
    cr_assert_eq(p.running, CMD_NONE, "the agent still reads the slice of step 9");
    struct message unused;
    message_init(&unused, MSG_SNAPSHOT_FREE);
    link_message(&p, &unused);
    cr_assert_eq(p.running, CMD_SNAPSHOT);
    cr_assert(did(&p, ELASTIC_RUN)->final);
    step(&p, (struct elastic_event){.kind = ELASTIC_PEER_GONE, .peer = 0});
    cr_assert_not(sent(&p, MSG_FAULT), "the ring has done its work");
    message_init(&m, MSG_RELEASE);
    link_message(&p, &m);
    cr_assert_eq(did(&p, ELASTIC_EXIT)->exit_code, 0);
    end(&p);
}

Test(elastic, a_nan_is_told_and_nothing_runs_after_it)
{
    struct play p;
    train_from(&p, 0);
    done(&p, OUTCOME_NOT_FINITE, false);
    cr_assert_eq(sent(&p, MSG_FAULT)->fault.kind, FAULT_NOT_FINITE);
    cr_assert_eq(p.running, CMD_NONE);
    end(&p);
}

/* The state stands, but where it is that which has other bits than most. */
Test(elastic, what_does_not_prove_or_is_disputed_is_told_and_not_committed)
{
    static const enum elastic_outcome outcome[] = {OUTCOME_PROOF, OUTCOME_PROOF, OUTCOME_DISPUTED};
    for (int i = 0; i < 3; i++) {
        struct play p;
        train_from(&p, 2);
        one_done(&p, OUTCOME_OK, false);
        if (i == 0)
            stop(&p, 2, STOP_NOW); /* for what another one saw: it is said all the same */
        done_with(&p, &(struct elastic_result){.outcome = outcome[i], .minority = i == 1});
        const struct msg_fault *f = &sent(&p, MSG_FAULT)->fault;
        cr_assert(f->kind == (i < 2 ? FAULT_PROOF : FAULT_LINEAGE) && f->peer == -1, "%s", f->detail);
        cr_assert_eq(f->class, i < 2 ? CLASS_UNKNOWN : CLASS_JOB);
        cr_assert_eq(p.running, i == 1 ? CMD_DROP : CMD_NONE);
        end(&p);
    }
}

Test(elastic, the_minority_of_a_disagreement_drops_its_state)
{
    struct play p;
    train_from(&p, 2);
    one_done(&p, OUTCOME_OK, false);
    struct elastic_result r = {.outcome = OUTCOME_LINEAGE, .minority = true};
    done_with(&p, &r);
    cr_assert_eq(sent(&p, MSG_FAULT)->fault.kind, FAULT_LINEAGE);
    cr_assert_eq(p.running, CMD_DROP);
    stop(&p, 2, STOP_NOW);
    p.state = state_of(-1);
    done(&p, OUTCOME_OK, false);
    cr_assert_not(sent(&p, MSG_STOPPED)->stopped.state.held);
    end(&p);
}

Test(elastic, who_holds_the_state_that_counts_names_who_does_not)
{
    struct play p;
    train_from(&p, 2);
    one_done(&p, OUTCOME_OK, false);
    struct elastic_result r = {
        .command = CMD_EXCHANGE, .outcome = OUTCOME_LINEAGE, .peer = 3, .state = p.state, .update_step = -1};
    cr_assert_eq(p.running, CMD_EXCHANGE);
    p.running = CMD_NONE;
    step(&p, (struct elastic_event){.kind = ELASTIC_DONE, .result = &r});
    const struct msg_fault *f = &sent(&p, MSG_FAULT)->fault;
    cr_assert(f->kind == FAULT_LINEAGE && f->class == CLASS_UNKNOWN && f->peer == 3);
    cr_assert_eq(p.running, CMD_NONE, "its state stays");
    end(&p);
}

static void loaded(struct play *p, int64_t n, int64_t step, uint64_t shares)
{
    static struct message m;
    message_init(&m, MSG_LOADED);
    m.generation = (struct msg_generation){1, n};
    m.loaded.state = state_of(step);
    m.loaded.parts = 2;
    m.loaded.shares = set_of_bits(shares);
    link_message(p, &m);
}

Test(elastic, only_the_loaded_checkpoint_that_the_form_names_is_taken)
{
    struct play p;
    begin(&p, -1);
    form(&p, 1, ROLE_LOAD, 6);
    cr_assert_eq(p.running, CMD_NONE);
    loaded(&p, 1, 5, 2);
    cr_assert_eq(p.running, CMD_NONE);
    loaded(&p, 0, 6, 2);
    cr_assert_eq(p.running, CMD_NONE, "what was read for another ring");
    loaded(&p, 1, 6, 2);
    cr_assert_eq(p.running, CMD_LOAD);
    cr_assert_eq(bits_of_set(did(&p, ELASTIC_RUN)->shares), 2);
    end(&p);
}

Test(elastic, shares_that_do_not_come_are_read_by_the_agent)
{
    struct play p;
    begin(&p, -1);
    form(&p, 1, ROLE_LOAD, 6);
    loaded(&p, 1, 6, 2);
    struct elastic_result r = {
        .command = CMD_LOAD, .outcome = OUTCOME_MISSING, .missing = set_of(0), .update_step = -1, .peer = -1};
    p.running = CMD_NONE;
    step(&p, (struct elastic_event){.kind = ELASTIC_DONE, .result = &r});
    cr_assert_eq(bits_of_set(sent(&p, MSG_LOAD)->load.shares), 1);
    cr_assert_eq(p.running, CMD_NONE);
    loaded(&p, 1, 6, 1);
    cr_assert_eq(p.running, CMD_LOAD);
    cr_assert_eq(bits_of_set(did(&p, ELASTIC_RUN)->shares), 3, "all are there now");
    p.state = state_of(6);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_CONNECT);
    end(&p);
}

Test(elastic, the_state_is_not_touched_while_the_agent_may_still_read_a_checkpoint_into_it)
{
    struct play p;
    begin(&p, -1);
    form(&p, 1, ROLE_LOAD, 6);
    stop(&p, 2, STOP_NOW);
    cr_assert(sent(&p, MSG_STOPPED), "that is answered at once");
    form(&p, 2, ROLE_RECEIVE, 6);
    cr_assert_eq(p.running, CMD_NONE);
    loaded(&p, 1, -1, 0); /* given up */
    cr_assert_eq(p.running, CMD_RECEIVE);
    end(&p);
}

Test(elastic, a_new_trainer_waits_for_the_end_of_a_load_that_its_predecessor_asked_for)
{
    struct play p = {.out = calloc(1, sizeof *p.out)};
    struct elastic_settings s = {.worker = 1, .steps = 10, .load_busy = true};
    struct message up;
    p.st = elastic_open(&s);
    p.state = state_of(-1);
    message_init(&up, MSG_UP);
    step(&p, (struct elastic_event){.kind = ELASTIC_OPENED, .message = &up, .update_step = -1});
    form(&p, 1, ROLE_RECEIVE, 6);
    cr_assert_eq(p.running, CMD_NONE);
    loaded(&p, 0, -1, 0);
    cr_assert_eq(p.running, CMD_RECEIVE);
    end(&p);
}

Test(elastic, a_restarted_trainer_tells_again_the_step_that_it_holds)
{
    struct play p;
    struct elastic_settings s = {.worker = 1, .steps = 10};
    struct message up;
    p.st = elastic_open(&s);
    p.out = calloc(1, sizeof *p.out);
    message_init(&up, MSG_UP);
    up.up.state = state_of(7);
    step(&p, (struct elastic_event){
                 .kind = ELASTIC_OPENED, .message = &up, .update_step = 7, .loss_known = true, .loss = 2.25});
    cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.step, 7);
    cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.loss, 2.25);
    const struct msg_numbers *numbers = &sent(&p, MSG_PROGRESS)->progress.numbers;
    cr_assert(isnan(numbers->norm) && isnan(numbers->clip) && isnan(numbers->rate), "no state keeps them");
    end(&p);
}

Test(elastic, a_step_tells_how_long_it_took_and_waited_for_data)
{
    struct play p;
    begin(&p, 1);
    form(&p, 1, ROLE_KEEP, 1);
    done(&p, OUTCOME_OK, false); /* the ring is connected */
    go(&p, 1);
    cr_assert_eq(p.running, CMD_LANES);
    struct elastic_result lanes = {.took = 20 * RM_MS, .data_wait = 7 * RM_MS};
    struct elastic_result unfit = {.outcome = OUTCOME_RESCALE, .took = RM_MS, .reduce_time = RM_MS};
    struct elastic_result exchange = {.took = 6 * RM_MS, .reduce_time = 5 * RM_MS, .reduce_bytes = 4096};
    struct elastic_result commit = {
        .took = 3 * RM_MS, .tokens = 64, .rescaled = 2, .numbers = {.norm = 1.5, .clip = 0.5, .rate = 6e-4}};
    done_with(&p, &lanes);
    done_with(&p, &unfit);
    done_with(&p, &lanes);
    done_with(&p, &exchange);
    done_with(&p, &commit);
    const struct message *m = sent(&p, MSG_PROGRESS);
    cr_assert(m);
    cr_assert_eq(m->progress.step, 2);
    cr_assert_eq(m->progress.step_time, 50 * RM_MS);
    cr_assert_eq(m->progress.data_wait, 14 * RM_MS);
    cr_assert_eq(m->progress.reduce_time, 6 * RM_MS);
    cr_assert_eq(m->progress.reduce_bytes, 4096);
    cr_assert_eq(m->progress.rescaled, 2);
    cr_assert(m->progress.numbers.norm == 1.5 && m->progress.numbers.clip == 0.5 &&
              m->progress.numbers.rate == 6e-4);
    end(&p);
}

Test(elastic, a_probe_is_made_beside_the_step_under_way_and_disturbs_nothing)
{
    struct play p;
    train_from(&p, 2);
    cr_assert_eq(p.running, CMD_LANES);
    struct message m;
    message_init(&m, MSG_PROBE);
    m.probe.id = 7;
    m.probe.count = 1;
    m.probe.member[0].worker = 4;
    link_message(&p, &m);
    const struct elastic_action *a = did(&p, ELASTIC_PROBE);
    cr_assert(a);
    cr_assert_eq(p.out->count, 1);
    cr_assert_eq(a->message->probe.id, 7);
    cr_assert_eq(a->message->probe.member[0].worker, 4);
    end(&p);
}

Test(elastic, a_pass_that_does_not_fit_has_its_lanes_done_again)
{
    struct play p;
    train_from(&p, 2);
    cr_assert_not(did(&p, ELASTIC_RUN)->again);
    one_done(&p, OUTCOME_OK, false);
    one_done(&p, OUTCOME_RESCALE, false);
    cr_assert_eq(p.running, CMD_LANES);
    cr_assert(did(&p, ELASTIC_RUN)->again);
    done(&p, OUTCOME_OK, false);
    cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.step, 3);
    end(&p);
}

/* Its exponents are those of a ring that is no more: the next one begins with the state's own. */
Test(elastic, a_pass_that_did_not_fit_is_forgotten_with_its_ring)
{
    struct play p;
    train_from(&p, 2);
    one_done(&p, OUTCOME_OK, false);
    stop(&p, 2, STOP_NOW);
    one_done(&p, OUTCOME_RESCALE, false);
    cr_assert(sent(&p, MSG_STOPPED)->stopped.discarded);
    form(&p, 2, ROLE_KEEP, 2);
    one_done(&p, OUTCOME_OK, false);
    go(&p, 2);
    cr_assert_eq(p.running, CMD_LANES);
    cr_assert_not(did(&p, ELASTIC_RUN)->again);
    end(&p);
}

static void lose_a_peer(struct play *p)
{
    step(p, (struct elastic_event){.kind = ELASTIC_PEER_GONE, .peer = 0});
}

Test(elastic, a_step_that_all_have_the_words_of_is_made_whatever_comes)
{
    for (int what = 0; what < 4; what++) {
        struct play p;
        train_from(&p, 2);
        one_done(&p, OUTCOME_OK, false);
        if (what == 0)
            stop(&p, 2, STOP_NOW);
        if (what == 1)
            lose_a_peer(&p);
        one_done(&p, OUTCOME_OK, false);
        cr_assert_eq(p.running, CMD_COMMIT, "%d", what);
        if (what == 2)
            stop(&p, 2, STOP_NOW);
        if (what == 3)
            lose_a_peer(&p);
        cr_assert_not(did(&p, ELASTIC_ABORT), "others may have made it");
        one_done(&p, OUTCOME_OK, false);
        cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.step, 3, "%d", what);
        if (what % 2)
            stop(&p, 2, STOP_NOW);
        cr_assert_not(sent(&p, MSG_STOPPED)->stopped.discarded, "%d", what);
        end(&p);
    }
}

Test(elastic, lanes_whose_ring_is_lost_meanwhile_are_not_exchanged)
{
    struct play p;
    train_from(&p, 2);
    lose_a_peer(&p);
    cr_assert_eq(did(&p, ELASTIC_PAUSE)->command, CMD_LANES);
    one_done(&p, OUTCOME_OK, false);
    cr_assert_eq(p.running, CMD_NONE);
    stop(&p, 2, STOP_NOW);
    cr_assert(sent(&p, MSG_STOPPED)->stopped.discarded);
    end(&p);
}

Test(elastic, an_abort_names_what_it_gives_up)
{
    struct play p;
    train_from(&p, 2);
    one_done(&p, OUTCOME_OK, false);
    stop(&p, 2, STOP_NOW);
    cr_assert_eq(did(&p, ELASTIC_ABORT)->command, CMD_EXCHANGE);
    cr_assert_eq(elastic_thread(CMD_EXCHANGE), ELASTIC_TALKS);
    cr_assert_eq(elastic_thread(CMD_LANES), ELASTIC_COMPUTES);
    cr_assert_eq(elastic_thread(CMD_COMMIT), ELASTIC_COMPUTES);
    end(&p);
}

/* As the shell tells them: together, at the end. */
static void done_in_a_row(struct play *p, enum elastic_outcome exchange)
{
    struct elastic_result lanes = {0}, exchanged = {.outcome = exchange}, commit = {0};
    lanes.followed = true;
    exchanged.followed = exchange == OUTCOME_OK;
    done_with(p, &lanes);
    cr_assert_eq(p->running, CMD_NONE, "the exchange has begun already");
    p->running = CMD_EXCHANGE;
    done_with(p, &exchanged);
    if (exchange != OUTCOME_OK)
        return;
    cr_assert_eq(p->running, CMD_NONE, "so has the commit");
    p->running = CMD_COMMIT;
    done_with(p, &commit);
}

Test(elastic, what_follows_by_itself_is_not_started_again)
{
    struct play p;
    train_from(&p, 1);
    cr_assert_not(did(&p, ELASTIC_RUN)->to_snapshot);
    done_in_a_row(&p, OUTCOME_OK);
    cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.step, 2);
    cr_assert_eq(p.running, CMD_LANES);
    cr_assert(did(&p, ELASTIC_RUN)->to_snapshot, "it is known from the start that step 3 is saved");
    done_in_a_row(&p, OUTCOME_RESCALE);
    cr_assert_eq(p.running, CMD_LANES);
    cr_assert(did(&p, ELASTIC_RUN)->again);
    end(&p);
}

Test(elastic, what_follows_may_have_been_done_before_the_order_to_stop_was_heard)
{
    struct play p;
    train_from(&p, 2);
    stop(&p, 2, STOP_NOW);
    done_in_a_row(&p, OUTCOME_OK);
    cr_assert_eq(sent(&p, MSG_PROGRESS)->progress.step, 3);
    cr_assert_eq(sent(&p, MSG_STOPPED)->stopped.state.step, 3);
    cr_assert_not(sent(&p, MSG_STOPPED)->stopped.discarded);
    end(&p);
}

Test(elastic, only_a_step_goes_on_by_itself)
{
    static const struct {
        enum elastic_command command;
        enum elastic_outcome outcome;
        enum elastic_command next;
    } rows[] = {{CMD_LANES, OUTCOME_OK, CMD_EXCHANGE},     {CMD_LANES, OUTCOME_ABORTED, CMD_NONE},
                {CMD_EXCHANGE, OUTCOME_OK, CMD_COMMIT},    {CMD_EXCHANGE, OUTCOME_PEER, CMD_NONE},
                {CMD_EXCHANGE, OUTCOME_RESCALE, CMD_NONE}, {CMD_COMMIT, OUTCOME_OK, CMD_NONE},
                {CMD_CONNECT, OUTCOME_OK, CMD_NONE},       {CMD_EVALUATE, OUTCOME_OK, CMD_NONE}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct elastic_result r = {.command = rows[i].command, .outcome = rows[i].outcome};
        cr_assert_eq(elastic_follows(&r), rows[i].next, "row %zu", i);
    }
}

/* What a trainer keeps of a pass is told with the state that it is behind, and is not thrown away. */
Test(elastic, lanes_that_are_kept_are_told_and_gone_with_their_state)
{
    struct play p;
    struct elastic_result paused = {.outcome = OUTCOME_ABORTED}, made = {.outcome = OUTCOME_OK};
    train_from(&p, 0);
    stop(&p, 2, STOP_NOW);
    cr_assert_eq(did(&p, ELASTIC_PAUSE)->command, CMD_LANES);
    lane_set_add(&paused.kept, 5);
    lane_set_add(&paused.kept, 700);
    done_with(&p, &paused);
    const struct msg_stopped *told = &sent(&p, MSG_STOPPED)->stopped;
    cr_assert(lane_set_has(&told->lanes, 5) && lane_set_count(&told->lanes) == 2 && !told->discarded);
    stop(&p, 3, STOP_NOW);
    cr_assert_eq(lane_set_count(&sent(&p, MSG_STOPPED)->stopped.lanes), 2, "again, as nothing has changed");
    form(&p, 2, ROLE_KEEP, 0);
    done_with(&p, &(struct elastic_result){.outcome = OUTCOME_OK, .kept = paused.kept});
    go(&p, 2);
    cr_assert_eq(p.running, CMD_LANES);
    cr_assert_eq(did(&p, ELASTIC_RUN)->form->generation.n, 2, "which says whose lanes they are");
    done_with(&p, &(struct elastic_result){.outcome = OUTCOME_OK, .kept = paused.kept});
    done_with(&p, &(struct elastic_result){.outcome = OUTCOME_OK, .kept = paused.kept});
    done_with(&p, &made);
    stop(&p, 4, STOP_NOW);
    done_with(&p, &(struct elastic_result){.outcome = OUTCOME_ABORTED});
    told = &sent(&p, MSG_STOPPED)->stopped;
    cr_assert(lane_set_is_empty(&told->lanes) && told->discarded);
    end(&p);
}
