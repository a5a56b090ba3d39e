/* Real trainers, 1 to 5 of them, through stops, losses, joins and restarts: one digest comes out. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "trainer_rig.h"

static const int all[RIG_TRAINERS] = {0, 1, 2, 3, 4, 5, 6, 7};

static void spawn_all(struct rig *rig, int n)
{
    for (int w = 0; w < n; w++)
        rig_spawn(rig, w, NULL);
}

static void undisturbed(int world, char out[RM_HASH_HEX], double *ret_evaluated)
{
    struct rig *rig = rig_open();
    spawn_all(rig, world);
    rig_form(rig, all, world);
    rig_finish(rig, all, world, out);
    cr_assert_eq(rig->evaluations, world * (RIG_STEPS / 4), "%d evaluations were told", rig->evaluations);
    *ret_evaluated = rig->evaluated[RIG_STEPS];
    rig_close(rig);
}

static void reference(char out[RM_HASH_HEX])
{
    double ignored;
    undisturbed(1, out, &ignored);
}

static void expect_digest(struct rig *rig, const int *workers, int n)
{
    char expected[RM_HASH_HEX], digest[RM_HASH_HEX];
    rig_finish(rig, workers, n, digest);
    reference(expected);
    cr_assert_str_eq(digest, expected);
}

Test(trainer, any_number_of_trainers_ends_with_the_same_bits_and_the_same_evaluation)
{
    char expected[RM_HASH_HEX], digest[RM_HASH_HEX];
    double loss, other;
    undisturbed(1, expected, &loss);
    cr_assert(loss > 0 && loss < 5.5, "the model learns nothing: %f", loss);
    static const int worlds[] = {2, 3, 5, 7};
    for (size_t i = 0; i < sizeof worlds / sizeof *worlds; i++) {
        undisturbed(worlds[i], digest, &other);
        cr_assert_str_eq(digest, expected, "%d trainers", worlds[i]);
        cr_assert_eq(loss, other, "%d trainers", worlds[i]);
    }
}

Test(trainer, fast_sums_depend_on_the_number_of_trainers)
{
    char digest[2][RM_HASH_HEX];
    for (int i = 0; i < 2; i++) {
        struct rig *rig = rig_open();
        rig->spec.reduction = JOB_FAST;
        spawn_all(rig, i ? 3 : 1);
        rig_form(rig, all, i ? 3 : 1);
        rig_finish(rig, all, i ? 3 : 1, digest[i]);
        rig_close(rig);
    }
    cr_assert_str_neq(digest[0], digest[1]);
}

Test(trainer, an_announced_leave_loses_no_step)
{
    struct rig *rig = rig_open();
    static const int rest[] = {0, 2};
    spawn_all(rig, 3);
    rig_form(rig, all, 3);
    rig_until(rig, 0, 3);
    rig_stop(rig, all, 3, STOP_BOUNDARY);
    for (int w = 1; w < 3; w++)
        cr_assert(msg_state_equal(&rig->t[w].state, &rig->t[0].state), "all stop at one boundary");
    struct message release = {.type = MSG_RELEASE};
    rig_send(rig, 1, &release);
    cr_assert_eq(rig_wait(rig, 1), 0);
    rig_form(rig, rest, 2);
    expect_digest(rig, rest, 2);
    rig_close(rig);
}

Test(trainer, a_newcomer_receives_the_state_in_slices_and_joins_at_the_boundary)
{
    struct rig *rig = rig_open();
    spawn_all(rig, 2);
    rig_form(rig, all, 2);
    rig_until(rig, 1, 2);
    rig_spawn(rig, 2, NULL);
    rig_spawn(rig, 3, NULL);
    cr_assert_not(rig->t[3].up.state.held);
    rig_stop(rig, all, 2, STOP_BOUNDARY);
    cr_assert_eq(rig_send_form(rig, all, 4), 2, "both survivors serve");
    rig_go(rig, all, 4);
    expect_digest(rig, all, 4);
    rig_close(rig);
}

/* Kills worker 2 where the fault says, recovers with the other two, and finishes. Returns whether one of the
 * two had to catch up. */
static bool lose_worker_2(const char *fault)
{
    struct rig *rig = rig_open();
    rig_spawn(rig, 0, NULL);
    rig_spawn(rig, 1, NULL);
    rig_spawn(rig, 2, fault);
    rig_form(rig, all, 3);
    while (rig_expect(rig, 2, MSG_PROGRESS))
        continue;
    cr_assert_eq(rig_wait(rig, 2), -SIGKILL);
    rig_stop(rig, all, 2, STOP_NOW);
    bool behind = rig->t[0].state.step != rig->t[1].state.step;
    rig_form(rig, all, 2);
    expect_digest(rig, all, 2);
    rig_close(rig);
    return behind;
}

Test(trainer, a_loss_at_any_turn_of_the_ring_changes_no_bit)
{
    char fault[48];
    for (int turn = 40; turn <= 76; turn += 6) {
        snprintf(fault, sizeof fault, "ring-turn:%d", turn);
        lose_worker_2(fault);
    }
}

Test(trainer, a_loss_in_the_compute_phase_is_noticed_and_changes_no_bit)
{
    lose_worker_2("lane-done:9");
    lose_worker_2("before-reduce:4");
}

Test(trainer, a_loss_after_the_sum_changes_no_bit)
{
    lose_worker_2("after-reduce:4");
    lose_worker_2("piece-updated:30");
}

/* A ring whose stop flag is raised before its start: one step, and no more. */
static void one_step(struct rig *rig, int world)
{
    struct message go = {.type = MSG_GO};
    rig_send_form(rig, all, world);
    go.generation = rig->generation;
    for (int w = 0; w < world; w++)
        cr_assert(rig_expect(rig, w, MSG_READY));
    rig_send_stop(rig, all, world, STOP_BOUNDARY);
    for (int w = 0; w < world; w++)
        rig_send(rig, w, &go);
    for (int w = 0; w < world; w++)
        cr_assert(rig_expect(rig, w, MSG_STOPPED));
}

/* Two workers do a step together; then worker 0 does `steps` alone. */
static struct rig *leave_worker_1_behind(int steps)
{
    struct rig *rig = rig_open();
    spawn_all(rig, 2);
    one_step(rig, 2);
    for (int i = 0; i < steps; i++)
        one_step(rig, 1);
    cr_assert_eq(rig->t[1].state.step, 1);
    cr_assert_eq(rig->t[0].state.step, 1 + steps);
    return rig;
}

Test(trainer, one_who_missed_an_update_gets_it_from_one_who_has_it)
{
    struct rig *rig = leave_worker_1_behind(1);
    cr_assert_eq(rig->t[0].update_step, rig->t[0].state.step);
    rig_form(rig, all, 2);
    cr_assert_eq(rig->role[1], ROLE_CATCH_UP);
    expect_digest(rig, all, 2);
    rig_close(rig);
}

Test(trainer, one_who_is_further_behind_receives_everything)
{
    struct rig *rig = leave_worker_1_behind(2);
    rig_form(rig, all, 2);
    cr_assert_eq(rig->role[1], ROLE_RECEIVE);
    expect_digest(rig, all, 2);
    rig_close(rig);
}

/* Killed there, worker 1 still holds the step before or has the newest, and nobody has gone on without it. */
static void kill_worker_1_behind(const char *point, bool follows)
{
    struct rig *rig = leave_worker_1_behind(1);
    static const int first[] = {0};
    rig_kill(rig, 1);
    rig->t[1].restarts = 0;
    rig_spawn(rig, 1, point);
    cr_assert_eq(rig->t[1].state.step, rig->t[0].state.step - 1);
    rig->follows = follows;
    rig_send_form(rig, all, 2);
    if (follows)
        rig_go(rig, all, 2);
    while (rig_expect(rig, 1, MSG_READY))
        continue;
    cr_assert_eq(rig_wait(rig, 1), -SIGKILL, "%s", point);
    rig_spawn(rig, 1, NULL);
    cr_assert(rig->t[1].state.held, "%s", point);
    rig_stop(rig, first, 1, STOP_NOW);
    cr_assert_eq(rig->t[0].state.step, 2, "%s: no step is made without it", point);
    rig->follows = false;
    rig_form(rig, all, 2);
    expect_digest(rig, all, 2);
    rig_close(rig);
}

static const char *const while_behind[] = {"receive-chunk:1", "update-received", "update-valid",
                                           "slot-valid:9", "before-commit"};

Test(trainer, one_who_is_killed_while_it_catches_up_does_so_again)
{
    for (size_t i = 0; i < sizeof while_behind / sizeof *while_behind; i++)
        kill_worker_1_behind(while_behind[i], false);
}

Test(trainer, one_who_missed_an_update_gets_it_while_the_other_one_goes_on)
{
    struct rig *rig = leave_worker_1_behind(1);
    rig->follows = true;
    rig_form(rig, all, 2);
    cr_assert_eq(rig->role[1], ROLE_FOLLOW);
    expect_digest(rig, all, 2);
    rig_close(rig);
}

Test(trainer, one_who_is_killed_while_it_follows_goes_on_from_what_it_held)
{
    for (size_t i = 0; i < sizeof while_behind / sizeof *while_behind; i++)
        kill_worker_1_behind(while_behind[i], true);
}

Test(trainer, a_trainer_killed_inside_its_update_goes_on_from_its_memory)
{
    static const char *const points[] = {"words-complete:3", "update-valid:3",   "slot-valid:20",
                                         "piece-updated:31", "piece-stamped:32", "before-commit:3",
                                         "after-commit:3"};
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        struct rig *rig = rig_open();
        rig_spawn(rig, 0, points[i]);
        rig_form(rig, all, 1);
        while (rig_expect(rig, 0, MSG_PROGRESS))
            continue;
        cr_assert_eq(rig_wait(rig, 0), -SIGKILL, "%s", points[i]);
        rig_spawn(rig, 0, NULL);
        cr_assert(rig->t[0].up.state.held, "%s", points[i]);
        rig_form(rig, all, 1);
        expect_digest(rig, all, 1);
        rig_close(rig);
    }
}

Test(trainer, a_source_that_dies_while_it_serves_is_named_and_nothing_is_held)
{
    struct rig *rig = rig_open();
    rig_spawn(rig, 0, NULL);
    rig_spawn(rig, 1, "transfer-chunk:2");
    rig_spawn(rig, 2, NULL);
    rig_form(rig, all, 2);
    rig_until(rig, 0, 2);
    rig_stop(rig, all, 2, STOP_BOUNDARY);
    rig_send_form(rig, all, 3);
    cr_assert(rig_expect(rig, 2, MSG_FAULT));
    cr_assert_eq(rig->message.fault.kind, FAULT_RING);
    cr_assert_eq(rig->message.fault.peer, 1);
    cr_assert_eq(rig_wait(rig, 1), -SIGKILL);
    static const int rest[] = {0, 2};
    rig_stop(rig, rest, 2, STOP_NOW);
    cr_assert_not(rig->t[2].state.held, "a part of a state is no state");
    rig_form(rig, rest, 2);
    expect_digest(rig, rest, 2);
    rig_close(rig);
}

Test(trainer, a_receiver_killed_while_it_receives_holds_nothing_afterwards)
{
    struct rig *rig = rig_open();
    spawn_all(rig, 1);
    rig_form(rig, all, 1);
    rig_until(rig, 0, 3);
    rig_stop(rig, all, 1, STOP_BOUNDARY);
    rig_spawn(rig, 1, "received");
    rig_send_form(rig, all, 2);
    while (rig_expect(rig, 1, MSG_READY))
        continue;
    cr_assert_eq(rig_wait(rig, 1), -SIGKILL);
    rig_spawn(rig, 1, NULL);
    cr_assert_not(rig->t[1].up.state.held);
    static const int first[] = {0};
    rig_stop(rig, first, 1, STOP_NOW);
    rig_form(rig, all, 2);
    expect_digest(rig, all, 2);
    rig_close(rig);
}

Test(trainer, a_snapshot_loaded_elsewhere_continues_to_the_same_bits)
{
    struct rig *rig = rig_open();
    struct message *m = calloc(1, sizeof *m);
    spawn_all(rig, 2);
    rig_form(rig, all, 2);
    rig_until(rig, 0, 5);
    rig_stop(rig, all, 2, STOP_BOUNDARY);
    m->type = MSG_SAVE;
    m->save.step = rig->t[0].state.step;
    m->save.count = 1;
    rig_send(rig, 0, m);
    cr_assert(rig_expect(rig, 0, MSG_SNAPSHOT));
    struct msg_snapshot taken = rig->message.snapshot;
    cr_assert_eq(taken.first, 0);
    cr_assert_eq(taken.count, rig->t[0].up.parameters);
    cr_assert(taken.exact);
    rig_kill(rig, 0);
    rig_kill(rig, 1);
    /* A new process for worker 0 with new state memory; the snapshot's memory stays. */
    rig_forget(rig, 0);
    rig_spawn(rig, 0, NULL);
    cr_assert_not(rig->t[0].up.state.held);
    size_t bytes;
    float *snapshot = rig_map_area(rig, 0, SNAPSHOT_TAKEN, &bytes);
    rig_load(rig, 0, &taken, snapshot);
    munmap(snapshot, bytes);
    expect_digest(rig, all, 1);
    free(m);
    rig_close(rig);
}

Test(trainer, a_trainer_ends_when_its_link_does)
{
    struct rig *rig = rig_open();
    spawn_all(rig, 2);
    rig_form(rig, all, 2);
    rig_until(rig, 0, 1);
    shutdown(rig->t[0].link, SHUT_RDWR);
    cr_assert_geq(rig_wait(rig, 0), 0);
    rig_close(rig);
}

/* To read its data, or to wait for a program, may take minutes, and an agent ends one that says nothing. */
Test(trainer, one_that_is_not_up_yet_says_that_it_lives)
{
    struct rig *rig = rig_open();
    rig_spawn(rig, 0, NULL);
    cr_assert_gt(rig->t[0].beats, 0);
    rig_close(rig);
}

Test(trainer, data_that_are_not_there_are_named)
{
    struct rig *rig = rig_open();
    text_copy(rig->spec.data.uri, sizeof rig->spec.data.uri, "file:///nowhere/at-all");
    rig_spawn(rig, 0, NULL);
    cr_assert_eq(rig->message.type, MSG_FAULT);
    cr_assert_eq(rig->message.fault.kind, FAULT_DATA);
    cr_assert_not_null(strstr(rig->message.fault.detail, "/nowhere/at-all"), "%s", rig->message.fault.detail);
    cr_assert_eq(rig_wait(rig, 0), 3);
    rig_close(rig);
}
