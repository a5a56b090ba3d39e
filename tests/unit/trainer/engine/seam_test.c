/* The engine and who computes: what it asks for, in which order, and that it touches no state that lies far
 * away but by copies. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine_rig.h"
#include "tests/unit/trainer/backend/far_memory.h"
#include "tests/unit/trainer/backend/stand_in.h"

enum { STEPS = 3 };

static void expect_asked(struct rig *rig, const char *calls)
{
    cr_assert_str_eq(stand_in_asked(rig->e[0].who), calls);
}

static void begin_alone(struct rig *rig, engine_open_backend *backend)
{
    rig_start(rig, 0, backend);
    cr_assert(rig_run(rig, 0, CMD_INIT), "%s", rig->e[0].result.text);
    rig_connect(rig, 1);
}

Test(seam, each_command_asks_who_computes_for_what_it_needs, .timeout = 60)
{
    struct rig *rig = rig_open();
    rig_start(rig, 0, stand_in_open);
    expect_asked(rig, "needs attach probe warm_up fingerprint");
    cr_assert(rig_run(rig, 0, CMD_INIT));
    expect_asked(rig, "init");
    rig_connect(rig, 1);
    rig_step(rig, 1); /* whose first scale is a guess */
    expect_asked(rig, "weights begin lane lane lane lane end decide "
                      "begin lane lane lane lane end decide words_to commit");
    cr_assert(rig_run(rig, 0, CMD_EVALUATE));
    expect_asked(rig, "weights losses losses losses");
    rig_step(rig, 1); /* with the weights that were told of */
    expect_asked(rig, "begin lane lane lane lane end decide words_to commit");
    rig_step(rig, 1);
    expect_asked(rig, "weights begin lane lane lane lane end decide words_to commit");
    cr_assert(rig_run(rig, 0, CMD_SNAPSHOT));
    expect_asked(rig, "copy_out copy_out copy_out image_sum");
    rig_digest(rig, 0);
    cr_assert(rig_run(rig, 0, CMD_DROP));
    expect_asked(rig, "");
    rig_close(rig);
}

/* Each looks first whether its own has changed since it was written. Who leaves before another ring is formed
 * leaves no state behind that could be wrong. */
Test(seam, states_whose_bits_differ_are_given_up_where_nobody_can_tell_whose_are_right, .timeout = 60)
{
    struct rig *rig = rig_open();
    for (int i = 0; i < 2; i++) {
        rig_start(rig, i, stand_in_open);
        cr_assert(rig_run(rig, i, CMD_INIT));
    }
    rig_connect(rig, 2);
    rig_all(rig, 2, CMD_COMPARE);
    rig_step(rig, 2);
    rig_all(rig, 2, CMD_COMPARE);
    stand_in_spoil(rig->e[1].who);
    rig_each(rig, 2, CMD_COMPARE);
    for (int i = 0; i < 2; i++) {
        const struct elastic_result *r = &rig->e[i].result;
        cr_assert_eq(r->outcome, OUTCOME_PROOF, "%d: %s", i, r->text);
        cr_assert(r->minority && !r->outvoted, "%d: %s", i, r->text);
        cr_assert(strstr(r->text, "no majority says whose"), "%s", r->text);
    }
    rig_close(rig);
}

/* Bits of the parameters after some steps, as text. */
static void train(int world, engine_open_backend *first, engine_open_backend *others, char out[RM_HASH_HEX],
                  double *ret_loss)
{
    struct rig *rig = rig_open();
    for (int i = 0; i < world; i++) {
        rig_start(rig, i, i ? others : first);
        cr_assert(rig_run(rig, i, CMD_INIT), "%s", rig->e[i].result.text);
    }
    rig_connect(rig, world);
    for (int i = 0; i < STEPS; i++)
        rig_step(rig, world);
    rig_all(rig, world, CMD_EVALUATE);
    *ret_loss = rig->e[0].result.loss;
    text_copy(out, RM_HASH_HEX, rig_digest(rig, 0));
    for (int i = 1; i < world; i++)
        cr_assert_str_eq(rig_digest(rig, i), out);
    rig_close(rig);
}

Test(seam, a_state_far_away_comes_to_the_same_bits, .timeout = 60)
{
    char expected[RM_HASH_HEX], digest[RM_HASH_HEX];
    double loss, other;
    train(1, NULL, NULL, expected, &loss);
    struct {
        int world;
        engine_open_backend *first, *others;
    } rings[] = {{1, stand_in_open, NULL},      {1, device_open, NULL}, {2, NULL, NULL},
                 {2, device_open, device_open}, {2, NULL, device_open}, {2, device_open, NULL}};
    for (size_t i = 0; i < sizeof rings / sizeof *rings; i++) {
        train(rings[i].world, rings[i].first, rings[i].others, digest, &other);
        cr_assert_str_eq(digest, expected, "ring %zu", i);
        cr_assert_eq(loss, other, "ring %zu", i);
    }
}

/* After a step; bytes for free(). */
static float *snapshot(engine_open_backend *backend, int part, int parts, size_t *ret_bytes)
{
    struct rig *rig = rig_open();
    begin_alone(rig, backend);
    rig_step(rig, 1);
    float *bytes = rig_snapshot(rig, 0, part, parts, ret_bytes);
    rig_close(rig);
    return bytes;
}

Test(seam, a_snapshot_of_a_far_state_has_the_bytes_of_a_near_one, .timeout = 60)
{
    size_t size = 0;
    float *whole = snapshot(NULL, 0, 1, &size);
    for (int part = 0; part < 3; part++) {
        float *near = snapshot(NULL, part, 3, &size), *far = snapshot(device_open, part, 3, &size);
        size_t count = size / sizeof *near / 3, first = count + count / 3 * (size_t)part + 1;
        cr_assert(near[first] != 0, "part %d of m is there", part);
        cr_assert_eq(memcmp(near, far, size), 0, "part %d", part);
        for (size_t i = 0; i < 3 * count; i++)
            cr_assert(near[i] == 0 || near[i] == whole[i], "element %zu of part %d", i, part);
        free(near);
        free(far);
    }
    free(whole);
}

Test(seam, a_far_state_goes_on_from_a_checkpoint_that_was_read_beside_it, .timeout = 60)
{
    struct rig *rig = rig_open();
    char expected[RM_HASH_HEX];
    size_t size;
    begin_alone(rig, device_open);
    rig_step(rig, 1);
    float *bytes = rig_snapshot(rig, 0, 0, 1, &size);
    struct msg_snapshot snapshot = rig->e[0].result.snapshot;
    rig_step(rig, 1);
    text_copy(expected, sizeof expected, rig_digest(rig, 0));
    stand_in_asked(rig->e[0].who);
    cr_assert(rig_load(rig, 0, &snapshot, bytes), "%s", rig->e[0].result.text);
    expect_asked(rig, "copy_in copy_in copy_in");
    cr_assert_eq(rig->e[0].result.state.step, 1);
    rig_connect(rig, 1);
    rig_step(rig, 1);
    cr_assert_str_eq(rig_digest(rig, 0), expected);
    free(bytes);
    rig_close(rig);
}

/* From near to far and from far to near. */
static void newcomer(engine_open_backend *old, engine_open_backend *new)
{
    struct rig *rig = rig_open();
    char digest[RM_HASH_HEX];
    begin_alone(rig, old);
    rig_step(rig, 1);
    rig_start(rig, 1, new);
    cr_assert(rig_take(rig, 1, 0, CMD_RECEIVE), "%s", rig->e[1].result.text);
    text_copy(digest, sizeof digest, rig_digest(rig, 0));
    cr_assert_str_eq(rig_digest(rig, 1), digest);
    rig_step(rig, 1); /* without the other one, who misses it */
    cr_assert(rig_take(rig, 1, 0, CMD_CATCH_UP), "%s", rig->e[1].result.text);
    text_copy(digest, sizeof digest, rig_digest(rig, 0));
    cr_assert_str_eq(rig_digest(rig, 1), digest);
    rig_connect(rig, 2);
    rig_step(rig, 2);
    text_copy(digest, sizeof digest, rig_digest(rig, 0));
    cr_assert_str_eq(rig_digest(rig, 1), digest);
    rig_close(rig);
}

Test(seam, a_far_state_is_received_given_and_caught_up_with, .timeout = 60)
{
    newcomer(NULL, device_open);
    newcomer(device_open, NULL);
    newcomer(device_open, device_open);
}

/* What led to a state stands until the sum of the next step is written over it. */
Test(seam, who_follows_gets_the_update_while_another_computes_the_next_steps_lanes, .timeout = 60)
{
    struct rig *rig = rig_open(), *undisturbed = rig_open();
    char digest[RM_HASH_HEX];
    begin_alone(undisturbed, NULL);
    for (int i = 0; i < STEPS; i++)
        rig_step(undisturbed, 1);
    begin_alone(rig, NULL);
    rig_step(rig, 1);
    rig_start(rig, 1, NULL);
    cr_assert(rig_take(rig, 1, 0, CMD_RECEIVE), "%s", rig->e[1].result.text);
    rig_step(rig, 1); /* without the other one, who misses it */
    rig->form.form.resume = rig->e[0].result.state;
    rig->form.form.lanes_count = RIG_LANES; /* rank 0's, all */
    rig_connect(rig, 2);
    bool again = false;
    do {
        cr_assert(
            rig_run_action(
                rig, 0, &(struct elastic_action){.command = CMD_LANES, .form = &rig->form, .again = again}),
            "%s", rig->e[0].result.text);
        if (!again)
            cr_assert(rig_take(rig, 1, 0, CMD_CATCH_UP), "%s", rig->e[1].result.text);
        cr_assert(
            rig_run_action(
                rig, 1, &(struct elastic_action){.command = CMD_LANES, .form = &rig->form, .again = again}),
            "%s", rig->e[1].result.text);
        rig_each(rig, 2, CMD_EXCHANGE);
        again = rig->e[0].result.outcome == OUTCOME_RESCALE;
    } while (again);
    rig_all(rig, 2, CMD_COMMIT);
    text_copy(digest, sizeof digest, rig_digest(undisturbed, 0));
    cr_assert_str_eq(rig_digest(rig, 0), digest);
    cr_assert_str_eq(rig_digest(rig, 1), digest);
    rig_close(rig);
    rig_close(undisturbed);
}

static void *catches_up(void *arg)
{
    struct rig *rig = arg;
    rig_take(rig, 1, 0, CMD_CATCH_UP);
    return NULL;
}

/* The others are told to go at the same moment, and each hears it at its own. */
Test(seam, an_update_on_its_way_to_who_follows_goes_on_when_its_source_begins_the_next_step, .timeout = 60)
{
    struct rig *rig = rig_open();
    pthread_t thread;
    rig->spec.model.shape.width = 256; /* an update of dozens of chunks */
    begin_alone(rig, NULL);
    rig_step(rig, 1);
    rig_start(rig, 1, NULL);
    cr_assert(rig_take(rig, 1, 0, CMD_RECEIVE), "%s", rig->e[1].result.text);
    rig_step(rig, 1);
    rig->form.form.resume = rig->e[0].result.state;
    rig->form.form.lanes_count = RIG_LANES; /* rank 0's, all */
    rig_connect(rig, 2);
    int64_t before = engine_pulse(rig->e[1].engine).bytes;
    cr_assert_eq(pthread_create(&thread, NULL, catches_up, rig), 0);
    while (engine_pulse(rig->e[1].engine).bytes == before)
        continue;
    cr_assert(rig_run(rig, 0, CMD_LANES), "%s", rig->e[0].result.text);
    pthread_join(thread, NULL);
    cr_assert_eq(rig->e[1].result.outcome, OUTCOME_OK, "%s", rig->e[1].result.text);
    char digest[RM_HASH_HEX];
    text_copy(digest, sizeof digest, rig_digest(rig, 0));
    cr_assert_str_eq(rig_digest(rig, 1), digest);
    rig_close(rig);
}

Test(seam, what_lay_on_a_device_is_gone_with_its_trainer_and_what_lay_in_the_memfd_is_not, .timeout = 60)
{
    struct rig *rig = rig_open();
    char digest[RM_HASH_HEX];
    begin_alone(rig, NULL);
    rig_step(rig, 1);
    text_copy(digest, sizeof digest, rig_digest(rig, 0));
    rig_end(rig, 0);
    rig_start(rig, 0, stand_in_open);
    cr_assert(rig->e[0].up.state.held && rig->e[0].up.params_at > 0);
    cr_assert_str_eq(rig_digest(rig, 0), digest);
    rig_close(rig);

    rig = rig_open();
    begin_alone(rig, device_open);
    rig_step(rig, 1);
    rig_end(rig, 0);
    rig_start(rig, 0, device_open);
    cr_assert_not(rig->e[0].up.state.held);
    cr_assert_eq(rig->e[0].up.params_at, -1, "the agent may not write there");
    cr_assert(rig_run(rig, 0, CMD_INIT), "and it may begin anew: %s", rig->e[0].result.text);
    rig_connect(rig, 1);
    rig_step(rig, 1);
    cr_assert_str_eq(rig_digest(rig, 0), digest);
    rig_close(rig);
}

static void expect_lost(struct rig *rig, enum elastic_command command, const char *where)
{
    char sentence[96];
    struct rig_engine *e = &rig->e[0];
    snprintf(sentence, sizeof sentence, "the device is lost in %s", where);
    stand_in_fail(e->who, where);
    cr_assert_not(rig_run(rig, 0, command), "command %d does not say that %s failed", (int)command, where);
    stand_in_fail(e->who, NULL);
    cr_assert_eq(e->result.outcome, OUTCOME_FAILED);
    cr_assert_eq(e->result.code, ERR_MACHINE);
    cr_assert_str_eq(e->result.text, sentence);
}

Test(seam, a_lost_device_is_a_sentence_wherever_it_is_noticed, .timeout = 60)
{
    struct rig *rig = rig_open();
    rig_start(rig, 0, device_open);
    expect_lost(rig, CMD_INIT, "init");
    expect_lost(rig, CMD_INIT, "copy_in");
    cr_assert_not(rig->e[0].result.state.held, "half of a state is none");
    begin_alone((rig_end(rig, 0), rig), device_open);
    expect_lost(rig, CMD_LANES, "weights");
    expect_lost(rig, CMD_LANES, "begin");
    expect_lost(rig, CMD_LANES, "lane");
    expect_lost(rig, CMD_LANES, "end");
    expect_lost(rig, CMD_EVALUATE, "losses");
    expect_lost(rig, CMD_SNAPSHOT, "copy_out");
    rig_step(rig, 1);
    cr_assert(rig_run(rig, 0, CMD_LANES) && rig_run(rig, 0, CMD_EXCHANGE));
    expect_lost(rig, CMD_COMMIT, "commit");
    far_memory_lose_after(stand_in_memory(rig->e[0].who), 0);
    cr_assert_not(rig_run(rig, 0, CMD_DIGEST));
    cr_assert_eq(rig->e[0].result.code, ERR_MACHINE);
    cr_assert_not(rig_run(rig, 0, CMD_INIT));
    rig_close(rig);
}

Test(seam, a_program_that_knows_lanes_alone_is_not_asked_for_more, .timeout = 60)
{
    struct rig *rig = rig_open();
    begin_alone(rig, program_open);
    cr_assert_str_eq(rig->e[0].up.probe, "", "and nothing can be measured");
    rig_step(rig, 1);
    cr_assert_not(rig_run(rig, 0, CMD_EVALUATE));
    cr_assert_eq(rig->e[0].result.outcome, OUTCOME_FAILED);
    cr_assert_str_eq(rig->e[0].result.text, "who computes here knows no loss but that of a lane");
    rig_step(rig, 1);
    rig_close(rig);
}

Test(seam, two_trainers_of_one_machine_say_one_probe, .timeout = 60)
{
    struct rig *rig = rig_open();
    rig_start(rig, 0, stand_in_open);
    rig_start(rig, 1, device_open);
    cr_assert_eq(strlen(rig->e[0].up.probe), RM_PROBE_MAX - 1);
    cr_assert_str_eq(rig->e[0].up.probe, rig->e[1].up.probe);
    rig_close(rig);
}

/* Another thread is woken for it where more than a few words go round, as here. */
Test(seam, who_made_the_lanes_exchanges_too_where_words_are_few, .timeout = 60)
{
    struct rig *rig = rig_open();
    rig_start(rig, 0, stand_in_open);
    int64_t words = engine_words(rig->e[0].engine), few = ELASTIC_FEW_WORDS;
    cr_assert_eq(words, rig->e[0].up.parameters);
    cr_assert_gt(words, few);
    cr_assert_eq(elastic_thread_after(CMD_EXCHANGE, words), ELASTIC_TALKS);
    cr_assert_eq(elastic_thread_after(CMD_EXCHANGE, few), ELASTIC_COMPUTES);
    cr_assert_eq(elastic_thread_after(CMD_COMMIT, words), ELASTIC_COMPUTES);
    cr_assert_eq(elastic_thread_after(CMD_COMMIT, few), ELASTIC_COMPUTES);
    rig_close(rig);
}

/* Each thread has its own: what was given up there is not taken up again because something begins here. */
Test(seam, an_abort_of_what_exchanges_stands_while_lanes_begin, .timeout = 60)
{
    struct rig *rig = rig_open();
    rig_start(rig, 0, stand_in_open);
    rig_start(rig, 1, stand_in_open);
    rig_all(rig, 2, CMD_INIT);
    rig_connect(rig, 2);
    engine_abort(rig->e[0].engine, ELASTIC_TALKS);
    engine_clear_abort(rig->e[0].engine, ELASTIC_COMPUTES);
    cr_assert(rig_run(rig, 0, CMD_LANES), "%s", rig->e[0].result.text);
    rig->form.generation.n++;
    cr_assert_not(rig_run(rig, 0, CMD_CONNECT)); /* to one that does not come */
    cr_assert_eq(rig->e[0].result.outcome, OUTCOME_ABORTED, "%s", rig->e[0].result.text);
    engine_clear_abort(rig->e[0].engine, ELASTIC_TALKS);
    rig_connect(rig, 2);
    rig_step(rig, 2);
    rig_close(rig);
}

static void expect_kept(struct rig *rig, int i, const char *lanes)
{
    const struct lane_set *kept = &rig->e[i].result.kept;
    for (int lane = 0; lane < RIG_LANES; lane++)
        cr_assert_eq(lane_set_has(kept, lane), lanes[lane] == 'x', "engine %d, lane %d", i, lane);
}

static void deal(struct rig *rig, int64_t step, const int *ranks)
{
    rig->form.form.resume = (struct msg_state){.held = true, .step = step};
    rig->form.form.lanes_count = RIG_LANES;
    memcpy(rig->form.form.lane_rank, ranks, RIG_LANES * sizeof *ranks);
}

/* A ring of three makes a step; then one goes, before or in the exchange of the next one: the lanes of the
 * others are not computed again, and the bits are those of a run in which nobody went. */
static void lose_one(bool in_exchange, bool taken)
{
    char expected[RM_HASH_HEX];
    double loss;
    train(1, NULL, NULL, expected, &loss);
    struct rig *rig = rig_open();
    for (int i = 0; i < 3; i++) {
        rig_start(rig, i, stand_in_open);
        cr_assert(rig_run(rig, i, CMD_INIT), "%s", rig->e[i].result.text);
    }
    rig_connect(rig, 3);
    rig_step(rig, 3);
    rig_each(rig, 2, CMD_LANES);
    expect_kept(rig, 0, "x...");
    expect_kept(rig, 1, ".x..");
    if (in_exchange) {
        rig_end(rig, 2);
        rig_each(rig, 2, CMD_EXCHANGE);
        cr_assert_eq(rig->e[0].result.outcome, OUTCOME_PEER, "%s", rig->e[0].result.text);
        expect_kept(rig, 0, "x...");
    }
    stand_in_asked(rig->e[0].who);
    deal(rig, 1, (const int[]){0, taken ? 0 : 1, 1, 0});
    rig_connect(rig, 2);
    expect_kept(rig, 1, ".x..");
    rig_each(rig, 2, CMD_LANES);
    expect_asked(rig, taken ? "resume lane lane end" : "resume lane end");
    expect_kept(rig, 0, taken ? "xx.x" : "x..x");
    rig_each(rig, 2, CMD_EXCHANGE);
    cr_assert_eq(rig->e[0].result.outcome, OUTCOME_OK, "%s", rig->e[0].result.text);
    rig_each(rig, 2, CMD_COMMIT);
    expect_kept(rig, 0, "....");
    rig_step(rig, 2);
    cr_assert_str_eq(rig_digest(rig, 0), expected);
    cr_assert_str_eq(rig_digest(rig, 1), expected);
    rig_close(rig);
}

Test(seam, lanes_outlive_a_ring_that_somebody_left_before_its_exchange, .timeout = 60)
{
    lose_one(false, false);
}

Test(seam, lanes_outlive_a_ring_that_somebody_left_in_its_exchange)
{
    lose_one(true, false);
}

/* Who is dealt another one's lane computes it; that one, whose lanes are not all its own any more, all of its
 * share. */
Test(seam, who_may_not_keep_all_that_it_has_begins_anew)
{
    lose_one(true, true);
}

/* Ranks that were told other shares: nobody commits, and nothing is kept. */
Test(seam, a_lane_in_two_sums_or_in_none_is_never_committed)
{
    static const int shares[2][2][RIG_LANES] = {{{0, 0, 0, 1}, {0, 1, 0, 1}}, {{0, 0, 1, 1}, {0, 0, 0, 1}}};
    for (int which = 0; which < 2; which++) {
        struct rig *rig = rig_open();
        for (int i = 0; i < 2; i++) {
            rig_start(rig, i, NULL);
            cr_assert(rig_run(rig, i, CMD_INIT));
        }
        rig_connect(rig, 2);
        for (int i = 0; i < 2; i++) {
            deal(rig, 0, shares[which][i]);
            cr_assert(rig_run(rig, i, CMD_LANES), "%s", rig->e[i].result.text);
        }
        rig_each(rig, 2, CMD_EXCHANGE);
        for (int i = 0; i < 2; i++) {
            cr_assert_eq(rig->e[i].result.outcome, OUTCOME_PROOF, "%s", rig->e[i].result.text);
            cr_assert(strstr(rig->e[i].result.text, "added up once"), "%s", rig->e[i].result.text);
            cr_assert_eq(rig->e[i].result.state.step, 0);
            expect_kept(rig, i, "....");
        }
        rig_close(rig);
    }
}
