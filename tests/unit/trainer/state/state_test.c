#include "trainer/state/state.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/base/prng.h"
#include "tests/unit/trainer/backend/cpu/sums/exact_case.h"
#include "trainer/backend/cpu/sums/rest.h"
#include "trainer/state/state_file.h"

enum { STEPS = 6 };

/* State after STEPS steps of that ring, lanes dealt anew at each step. */
static struct case_hash run_ring(int world, bool fast, int threads, uint64_t seed)
{
    struct ring r;
    ring_open(&r, world, fast, threads);
    for (int i = 0; i < STEPS; i++) {
        if (seed)
            ring_deal(&r, seed + (uint64_t)i);
        ring_step(&r, 0);
    }
    struct case_hash first = case_hash(r.state[0]);
    for (int rank = 1; rank < world; rank++)
        cr_assert(case_same(first, case_hash(r.state[rank])), "rank %d of %d has other bits", rank, world);
    ring_close(&r);
    return first;
}

Test(state, any_number_of_workers_and_any_split_of_lanes_gives_the_same_state)
{
    struct case_hash one = run_ring(1, false, 0, 0);
    const int stride = CASE_SHARE > 1 ? 3 : 1;
    for (int world = 1; world <= CASE_WORLD_MAX; world += stride)
        for (uint64_t seed = 0; seed < 3; seed += (uint64_t)stride)
            cr_assert(case_same(one, run_ring(world, false, 0, seed * 100)), "world %d seed %d", world,
                      (int)seed);
}

Test(state, fast_sums_depend_on_the_world)
{
    struct case_hash one = run_ring(1, true, 0, 0);
    for (int world = 2; world <= 5; world++) /* from 6 on, these rings add lane by lane, as one worker does */
        cr_assert_not(case_same(one, run_ring(world, true, 0, 0)), "world %d", world);
    cr_assert(case_same(one, run_ring(1, true, 0, 0)), "but a repeated run does not");
}

Test(state, threads_change_no_bit)
{
    struct case_hash one = run_ring(1, false, 0, 0);
    for (int threads = 1; threads <= 3; threads++)
        cr_assert(case_same(one, run_ring(2, false, threads, 0)), "%d threads", threads);
}

Test(state, first_step_takes_one_rescaled_pass_and_later_ones_none)
{
    struct ring r;
    ring_open(&r, 2, false, 0);
    ring_step(&r, 0);
    cr_assert_eq(r.passes, 2);
    for (int i = 1; i < STEPS; i++)
        ring_step(&r, 0);
    cr_assert_eq(r.passes, STEPS + 1);
    ring_close(&r);
}

static void explode(int64_t step, int lane, float *grads, float *loss)
{
    const struct model_tensor *t = &case_layout()->tensor[2];
    (void)loss;
    for (int64_t i = t->first; step == 3 && lane == 1 && i < t->first + t->count; i++)
        grads[i] *= 1e6f;
}

Test(state, a_gradient_that_outgrows_its_headroom_costs_one_pass_and_no_bit)
{
    struct case_hash first = {{0}};
    for (int world = 1; world <= 4; world++) {
        struct ring r;
        ring_open(&r, world, false, 0);
        r.meddle = explode;
        for (int i = 0; i < STEPS; i++)
            ring_step(&r, 0);
        cr_assert_eq(r.passes, STEPS + 3, "the first, the explosion, and the way back: %d", r.passes);
        if (world == 1)
            first = case_hash(r.state[0]);
        cr_assert(case_same(first, case_hash(r.state[0])));
        ring_close(&r);
    }
}

static int64_t spike_at;

static void spike(int64_t step, int lane, float *grads, float *loss)
{
    (void)loss;
    if (step == 2 && lane == 1)
        grads[spike_at] = -1e4f;
}

Test(state, the_largest_element_counts_wherever_in_its_tensor_it_lies)
{
    const struct model_layout *layout = case_layout();
    int wte = model_layout_find(layout, "wte.weight");
    const struct model_tensor *t = &layout->tensor[wte];
    struct verdict v;
    struct ring r;
    ring_open(&r, 2, false, 2);
    r.meddle = spike;
    ring_step(&r, 0);
    for (spike_at = t->first; spike_at < t->first + t->count; spike_at += t->count / 5) {
        ring_pass(&r, NULL, &v);
        cr_assert_eq(v.kind, VERDICT_RESCALE);
        cr_assert_eq(v.rescaled, 1);
        cr_assert_eq(v.k[wte], verdict_k_for(1e4 / CASE_LANES, CASE_LANES, 0), "element %d", (int)spike_at);
    }
    ring_close(&r);
}

static void poison(int64_t step, int lane, float *grads, float *loss)
{
    (void)loss;
    if (step == 2 && lane == 4)
        grads[case_layout()->tensor[5].first + 3] = 0.0f / (grads[0] - grads[0]);
}

Test(state, a_nan_commits_nothing_and_comes_out_the_same_again)
{
    struct ring r;
    struct verdict v;
    ring_open(&r, 3, false, 0);
    r.meddle = poison;
    ring_step(&r, 0);
    struct case_hash before = case_hash(r.state[0]);
    for (int again = 0; again < 2; again++) {
        ring_pass(&r, NULL, &v);
        cr_assert_eq(v.kind, VERDICT_NOT_FINITE);
        cr_assert(v.lane == 4 && v.tensor == 5);
        cr_assert(case_same(before, case_hash(r.state[0])));
    }
    ring_close(&r);
}

Test(state, a_pass_given_up_leaves_no_trace)
{
    struct ring r;
    struct verdict v;
    struct case_hash wanted = run_ring(2, false, 0, 0);
    ring_open(&r, 2, false, 0);
    for (int i = 0; i < STEPS; i++) {
        ring_pass(&r, NULL, &v); /* reduced, decided, never committed */
        lanes_begin(r.lanes[0], &(struct lanes_pass){.rank = 0});
        ring_step(&r, 0);
    }
    cr_assert(case_same(wanted, case_hash(r.state[0])));
    ring_close(&r);
}

/* Whole gradients and weights in double, lanes summed as they come. */
Test(state, training_agrees_with_adamw_in_double_precision)
{
    struct ring r;
    const struct update_rule rule = case_rule();
    const struct model_layout *layout = case_layout();
    size_t n = (size_t)layout->parameters;
    ring_open(&r, 2, false, 0);
    struct near_arrays a = near_arrays(r.state[0]);
    double *p = calloc(n, sizeof *p), *m = calloc(n, sizeof *m), *v = calloc(n, sizeof *v),
           *g = calloc(n, sizeof *g);
    float *lane_grads = calloc(n, sizeof *lane_grads), loss;
    for (size_t i = 0; i < n; i++)
        p[i] = (double)a.params[i];
    for (int64_t step = 1; step <= STEPS; step++) {
        double norm = 0, losses = 0;
        memset(g, 0, n * sizeof *g);
        for (int lane = 0; lane < CASE_LANES; lane++) {
            case_gradient(a.params, step, lane, lane_grads, &loss);
            losses += (double)loss / CASE_LANES;
            for (size_t i = 0; i < n; i++)
                g[i] += (double)lane_grads[i] / CASE_LANES;
        }
        for (size_t i = 0; i < n; i++)
            norm += g[i] * g[i];
        norm = sqrt(norm);
        double clip = norm > rule.clip_norm ? rule.clip_norm / (norm + 1e-6) : 1;
        double rate = schedule_rate(&rule.schedule, step);
        for (size_t i = 0; i < n; i++) {
            double x = g[i] * clip;
            bool decay = layout->tensor[model_layout_at(layout, (int64_t)i)].decay;
            m[i] = rule.beta1 * m[i] + (1 - rule.beta1) * x;
            v[i] = rule.beta2 * v[i] + (1 - rule.beta2) * x * x;
            double size = sqrt(v[i] / (1 - pow(rule.beta2, (double)step))) + rule.epsilon;
            p[i] -= decay ? rate * rule.weight_decay * p[i] : 0;
            p[i] -= rate / (1 - pow(rule.beta1, (double)step)) * m[i] / size;
        }
        struct update_info info = ring_step(&r, 0);
        cr_assert_float_eq(info.norm, norm, norm * 1e-5);
        cr_assert_float_eq(info.clip, clip, clip * 1e-5);
        cr_assert_float_eq(info.loss, losses, 1e-6);
        cr_assert_lt(info.clip, 1, "clipping takes part in this test");
    }
    for (size_t i = 0; i < n; i++)
        cr_assert_float_eq(a.params[i], p[i], 2e-3 * rule.schedule.rate + 1e-6,
                           "element %zu: %.9g is not %.9g", i, (double)a.params[i], p[i]);
    free(p), free(m), free(v), free(g), free(lane_grads);
    ring_close(&r);
}

static void remember(const char *sentence)
{
    _exit(strstr(sentence, "their lanes' checksums") ? 42 : 43);
}

/* Exit code of a process that makes a step of one worker and flips a bit of its words (at < 0: none) before
 * it commits. */
static int commit_with_flip(int64_t at, bool fast)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct ring r;
        struct verdict v;
        const struct update_rule rule = case_rule();
        ring_open(&r, 1, fast, 0);
        ring_step(&r, 0);
        ring_pass(&r, NULL, &v);
        ring_words(&r);
        assertion_hook = remember;
        if (at >= 0)
            r.state[0]->words[state_received_buffer(r.state[0])][at] ^= 1u << 7;
        update_commit(r.lanes[0], &rule, NULL);
        _exit(0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WEXITSTATUS(status);
}

Test(state, a_bit_of_a_lanes_words_that_changes_before_the_commit_is_seen_where_one_worker_is_alone)
{
    const int64_t last = case_layout()->parameters - 1;
    cr_assert_eq(commit_with_flip(-1, false), 0);
    for (int64_t at = 0; at <= last; at += last / 7)
        cr_assert_eq(commit_with_flip(at, false), 42, "element %d", (int)at);
    cr_assert_eq(commit_with_flip(5, true), 0, "fast sums have no checksum");
}

static void copy_update(struct state *to, struct state *from)
{
    struct state_update theirs, ours;
    struct error err = {0};
    cr_assert(state_kept(from, &theirs));
    state_update_receive_begin(to, &ours);
    memcpy(ours.k, theirs.k, (size_t)case_layout()->tensors * sizeof *ours.k);
    memcpy(near_words(&ours), near_words(&theirs),
           (size_t)(ours.words_count + ours.header_count) * sizeof *ours.header);
    cr_assert_eq(state_update_receive_end(to, theirs.step, &err), 0, "%s", err.text);
}

Test(state, whoever_missed_an_update_gets_the_same_bits_from_one_who_kept_it)
{
    const struct update_rule rule = case_rule();
    for (int missed = 0; missed < STEPS; missed++) {
        struct ring r;
        ring_open(&r, 3, false, 0);
        for (int i = 0; i < STEPS; i++) {
            ring_step(&r, i == missed ? 1 << 2 : 0);
            if (i != missed)
                continue;
            copy_update(r.state[2], r.state[0]);
            cr_assert_not(state_holds(r.state[2], NULL), "not before it is applied");
            update_apply(r.state[2], &rule, NULL, NULL);
            cr_assert(case_same(case_hash(r.state[0]), case_hash(r.state[2])));
        }
        cr_assert(case_same(case_hash(r.state[0]), case_hash(r.state[2])));
        ring_close(&r);
    }
}

/* Of the state that a rank worked on in the newest pass, as its header said. */
static uint64_t said_sum(const struct ring *r, int rank)
{
    struct header_rank said;
    cr_assert(header_rank_read(r->sums[0].header_to, case_layout()->tensors, CASE_LANES, rank, &said));
    cr_assert_eq(said.flags, LANES_HOLDS);
    return said.state_sum;
}

Test(state, all_ranks_say_the_same_sum_of_their_states_bits_whichever_way_led_there)
{
    const struct update_rule rule = case_rule();
    struct ring r;
    struct state_point point;
    struct verdict v;
    ring_open(&r, 3, false, 0);
    ring_step(&r, 1 << 1 | 1 << 2);
    copy_update(r.state[1], r.state[0]); /* 1 catches up, 2 receives, 0 has made it */
    update_apply(r.state[1], &rule, NULL, NULL);
    struct near_arrays from = near_arrays(r.state[0]), to = near_arrays(r.state[2]);
    cr_assert(state_holds(r.state[0], &point));
    state_receive_begin(r.state[2]);
    cr_assert_not(state_proven(r.state[2]), "what arrives nobody has summed");
    memcpy(to.params, from.params, (size_t)from.count * sizeof(float));
    memcpy(to.m, from.m, (size_t)from.count * sizeof(float));
    memcpy(to.v, from.v, (size_t)from.count * sizeof(float));
    state_receive_end(r.state[2], &point, NULL);
    ring_pass(&r, NULL, &v);
    cr_assert_neq(said_sum(&r, 0), 0);
    cr_assert_eq(said_sum(&r, 1), said_sum(&r, 0));
    cr_assert_eq(said_sum(&r, 2), said_sum(&r, 0));
    ring_close(&r);
}

/* In a tie it says of itself that it is the one who is wrong, or that it is not. */
Test(state, a_bit_that_changed_in_a_state_since_it_was_written_is_seen_by_who_holds_it)
{
    struct ring r;
    ring_open(&r, 2, false, 0);
    ring_step(&r, 0);
    ring_step(&r, 0);
    struct near_arrays a = near_arrays(r.state[0]);
    float *const array[] = {a.params, a.m, a.v};
    cr_assert(rest_sound(r.state[0], NULL));
    cr_assert(rest_written(r.state[0], NULL) &&
              rest_written(r.state[0], NULL) == rest_written(r.state[1], NULL));
    for (int i = 0; i < 3; i++) {
        uint32_t *word = (uint32_t *)(void *)(array[i] + a.count / 2);
        *word ^= 1u << 7;
        cr_assert_not(rest_sound(r.state[0], NULL), "array %d", i);
        cr_assert(rest_sound(r.state[1], NULL));
        *word ^= 1u << 7;
    }
    cr_assert_eq(rest_written(r.state[0], NULL), rest_written(r.state[1], NULL),
                 "what was written did not change");
    ring_close(&r);
}

/* Whichever weight changed at rest, it is seen when its part is read, and by nobody who does not read it. */
Test(state, weights_that_are_read_in_parts_are_all_read_in_so_many_steps)
{
    struct ring r;
    ring_open(&r, 1, false, 0);
    float *params = near_arrays(r.state[0]).params;
    int64_t count = near_arrays(r.state[0]).count;
    cr_assert_eq(rest_parts(REST_TOKENS), 1);
    cr_assert_eq(rest_parts(1 << 30), 1);
    cr_assert_eq(rest_parts(REST_TOKENS - 1), 2);
    cr_assert_eq(rest_parts(REST_TOKENS / 4), 4);
    cr_assert_eq(rest_parts(0), REST_PARTS_MAX);
    int seen[2] = {0};
    for (int step = 0; step < 3; step++) {
        for (int at = 0; at < 2; at++) {
            uint32_t *word = (uint32_t *)(void *)(params + (at ? count - 1 : 0));
            rest_say(r.state[0], 3, NULL);
            uint64_t before = state_sum(r.state[0]);
            *word ^= 1;
            rest_say(r.state[0], 3, NULL);
            seen[at] += state_sum(r.state[0]) != before;
            *word ^= 1;
        }
        ring_step(&r, 0);
    }
    cr_assert(seen[0] == 1 && seen[1] == 1, "seen %d and %d times", seen[0], seen[1]);
    ring_close(&r);
}

Test(state, an_update_that_does_not_belong_here_is_refused)
{
    struct ring r;
    struct state_update got;
    struct error err = {0};
    ring_open(&r, 2, false, 0);
    ring_step(&r, 0);
    struct case_hash before = case_hash(r.state[1]);
    state_update_receive_begin(r.state[1], &got);
    memset(near_words(&got), 0, (size_t)(got.words_count + got.header_count) * sizeof *got.header);
    cr_assert_lt(state_update_receive_end(r.state[1], 3, &err), 0);
    cr_assert_str_eq(err.text, "an update to step 3 does not lead on from step 1");
    got.header[0] = 0x7fc00000;
    cr_assert_lt(state_update_receive_end(r.state[1], 2, &err), 0);
    cr_assert_str_eq(err.text, "the update to step 2 that was received does not fit");
    cr_assert(case_same(before, case_hash(r.state[1])), "and nothing is lost by it");
    cr_assert(state_kept(r.state[1], &got) && got.step == 1);
    ring_close(&r);
}

/* Two that were at the same step with different histories, or words that were changed in the source's memory:
 * found out before the state held here is changed. */
Test(state, an_update_that_leads_to_another_history_costs_the_state_held_nothing)
{
    const struct update_rule rule = case_rule();
    struct ring r;
    struct state_update theirs, ours;
    struct state_point wanted;
    struct error err = {0};
    ring_open(&r, 2, false, 0);
    ring_step(&r, 0);
    ring_step(&r, 1 << 1);
    struct case_hash before = case_hash(r.state[1]);
    cr_assert(state_holds(r.state[0], &wanted) && state_kept(r.state[0], &theirs));
    state_update_receive_begin(r.state[1], &ours);
    memcpy(ours.k, theirs.k, (size_t)case_layout()->tensors * sizeof *ours.k);
    memcpy(near_words(&ours), near_words(&theirs),
           (size_t)(ours.words_count + ours.header_count) * sizeof *ours.header);
    near_words(&ours)[5] ^= 1;
    cr_assert_lt(update_check_received(r.state[1], &rule, NULL, &wanted, &err), 0);
    cr_assert(strstr(err.text, "another history"), "%s", err.text);
    cr_assert(case_same(before, case_hash(r.state[1])), "the state is the one held before");
    cr_assert(state_holds(r.state[1], NULL), "and nothing waits to be applied to it");
    near_words(&ours)[5] ^= 1;
    cr_assert_eq(update_check_received(r.state[1], &rule, NULL, &wanted, &err), 0, "%s", err.text);
    cr_assert_eq(state_update_receive_end(r.state[1], wanted.step, &err), 0, "%s", err.text);
    update_apply(r.state[1], &rule, NULL, NULL);
    cr_assert(case_same(case_hash(r.state[0]), case_hash(r.state[1])));
    ring_close(&r);
}

Test(state, a_newcomer_that_received_the_state_goes_on_with_the_same_bits)
{
    struct ring r;
    struct state_point point;
    struct state_update none;
    ring_open(&r, 2, false, 0);
    for (int i = 0; i < 3; i++)
        ring_step(&r, 0);
    struct near_arrays from = near_arrays(r.state[0]), to = near_arrays(r.state[1]);
    size_t bytes = (size_t)from.count * sizeof(float);
    cr_assert(state_holds(r.state[0], &point));
    state_receive_begin(r.state[1]);
    cr_assert_not(state_holds(r.state[1], NULL), "a state only partly received is never held");
    memcpy(to.params, from.params, bytes);
    memcpy(to.m, from.m, bytes);
    memcpy(to.v, from.v, bytes);
    state_receive_end(r.state[1], &point, NULL);
    cr_assert_not(state_kept(r.state[1], &none), "what led here is not known here");
    for (int i = 3; i < STEPS; i++)
        ring_step(&r, 0);
    cr_assert(case_same(case_hash(r.state[1]), run_ring(1, false, 0, 0)));
    ring_close(&r);
}

Test(state, another_models_memory_is_refused)
{
    struct ring r;
    struct state *s = NULL;
    struct error err = {0};
    struct model_layout other = *case_layout();
    ring_open(&r, 1, false, 0);
    other.tensor[0].size[0]++; /* the same size in bytes, another shape */
    struct state_shape shape = {.layout = &other, .lanes = CASE_LANES};
    cr_assert_lt(state_open(&s, r.fd[0], &shape, &err), 0);
    cr_assert_eq(err.code, ERR_DATA);
    shape = (struct state_shape){.layout = case_layout(), .lanes = CASE_LANES, .fast = true};
    cr_assert_lt(state_open(&s, r.fd[0], &shape, &err), 0, "fast and exact do not share a state");
    shape = (struct state_shape){.layout = case_layout(), .lanes = CASE_LANES + 1, .fast = false};
    cr_assert_lt(state_open(&s, r.fd[0], &shape, &err), 0);
    cr_assert(state_holds(r.state[0], NULL));
    ring_close(&r);
}

Test(state, ranks_that_hold_other_bits_at_the_same_step_are_found_before_anything_is_committed)
{
    struct ring r;
    struct verdict v;
    struct state_point point;
    ring_open(&r, 3, false, 0);
    ring_step(&r, 0);
    cr_assert(state_holds(r.state[1], &point));
    point.lineage[0] ^= 1;
    state_receive_begin(r.state[1]);
    state_receive_end(r.state[1], &point, NULL);
    ring_pass(&r, NULL, &v);
    cr_assert_eq(v.kind, VERDICT_LINEAGE);
    cr_assert(set_equals(v.minority, set_of(1)));
    ring_close(&r);
}

Test(state, memory_per_parameter_is_twenty_bytes)
{
    struct model_layout layout;
    const struct model_shape shape = {2, 4, 256, 256, 8192};
    struct state *s = NULL;
    struct error err = {0};
    int fd = case_memfd();
    model_layout_init(&layout, &shape);
    cr_assert_eq(
        state_open(&s, fd, &(struct state_shape){.layout = &layout, .lanes = 64, .fast = false}, &err), 0,
        "%s", err.text);
    double each = (double)((char *)s->slot - (char *)s->map) / (double)layout.parameters;
    cr_assert_leq(each, 20.1, "%g", each);
    state_free(s);
    close(fd);
}
