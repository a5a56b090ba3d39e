#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdlib.h>
#include <string.h>

#include "common/wire/json.h"
#include "operator/core/read.h"
#include "world.h"

/* In parts, which run side by side, each within its time under the sanitizers as well. */
enum { PARTS = 4, ENOUGH = 30 /* that of each harm some are among them */ };
/* Under a sanitizer each takes four times as long; what a seed decides is looked at without. */
#ifdef __SANITIZE_ADDRESS__
enum { SEEDS = 20 / PARTS, DELETED = 10 };
#else
enum { SEEDS = 120 / PARTS, DELETED = 40 };
#endif
enum { MIXED = 20 };
enum { ROUNDS = 400, CALM_ROUNDS = 3000 };

struct run {
    struct world *w;
    struct process *o;
    uint64_t seed;
};

static struct run begin(uint64_t seed)
{
    struct run r = {.w = world_open(seed, 3, 2), .o = calloc(1, sizeof(struct process)), .seed = seed};
    r.w->launched = seed % 5 == 2;
    r.w->elastic = seed % 5 == 4;
    r.w->mixed = seed % 3 == 0 && !r.w->launched;
    r.w->sidecars = seed % 4 == 3;
    r.w->spot = seed % 2 == 1;
    r.w->idles = seed % 7 < 4;
    r.w->single = seed % 7 == 0;
    process_start(r.w, r.o);
    return r;
}

static void end(struct run *r)
{
    world_free(r->w);
    process_end(r->o);
}

static bool chance(struct run *r, int percent)
{
    return (int)world_draw(r->w, 100) < percent;
}

static bool expectations_met(const struct run *r)
{
    const struct process *o = r->o;
    bool seen = o->seen[0] >= o->expect_log && o->seen[1] >= o->expect_log;
    return seen || r->w->now_ms >= o->expect_until_ms;
}

/* One turn of everything that moves, with what may go wrong. */
static void turn(struct run *r, bool faults)
{
    struct world *w = r->w;
    w->now_ms += (int64_t)world_draw(w, 4000);
    world_kubelets(w);
    if (faults && chance(r, 15))
        world_fault(w);
    if (faults && chance(r, 3))
        world_user(w);
    world_check(w);
    process_late_writes(w, r->o);
    world_check(w);
    process_catch_up(w, r->o, !faults);
    if (!expectations_met(r) && !(faults && chance(r, 5)))
        return;
    int die = faults && chance(r, 20) ? (int)world_draw(w, 6) : -1;
    process_reconcile(w, r->o, die, chance(r, 50));
    if (die >= 0)
        process_start(w, r->o);
    world_check(w);
}

static bool is_finished(const struct world *w)
{
    return strstr(w->truth.job.status, "\"type\":\"Finished\",\"status\":\"True\"") != NULL;
}

static void calm_down(struct run *r)
{
    world_repair_nodes(r->w);
    if (r->w->truth.job.suspend) {
        r->w->truth.job.suspend = false;
        r->w->truth.job.generation++;
        r->w->truth.job.revision++;
        world_note(r->w, CHANGE_JOB, 0);
    }
}

static int live_pods(const struct world *w)
{
    int live = 0;
    for (int i = 0; i < w->truth.pods_count; i++)
        live += w->truth.pod[i].exists && !pod_is_spent(&w->truth.pod[i].view);
    return live;
}

static void run_to_end(struct run *r)
{
    calm_down(r);
    for (int i = 0; i < CALM_ROUNDS && (!is_finished(r->w) || live_pods(r->w)); i++)
        turn(r, false);
    cr_assert_str_eq(r->w->wrong, "", "seed %llu: %s", (unsigned long long)r->seed, r->w->wrong);
    cr_assert(is_finished(r->w), "seed %llu never finished: %s", (unsigned long long)r->seed,
              r->w->truth.job.status);
    cr_assert(strstr(r->w->truth.job.status, "\"type\":\"Complete\",\"status\":\"True\""), "seed %llu: %s",
              (unsigned long long)r->seed, r->w->truth.job.status);
    cr_assert(strstr(r->w->truth.job.status,
                     r->w->launched ? "\"result\":{\"exitCode\":0}" : "\"weightsSha256\":\"ab\""));
    cr_assert(!r->w->launched || !strstr(r->w->truth.job.status, "progress"));
    cr_assert_eq(live_pods(r->w), 0, "seed %llu: pods outlive the job", (unsigned long long)r->seed);
}

/* A finished job is left alone. */
static void expect_quiet(struct run *r)
{
    int writes = r->w->creates + r->w->deletes + r->w->status_writes;
    for (int i = 0; i < 50; i++)
        turn(r, false);
    cr_assert_leq(r->w->creates + r->w->deletes + r->w->status_writes, writes + 1, "seed %llu keeps writing",
                  (unsigned long long)r->seed);
}

static void expect_nothing_left(struct run *r)
{
    world_delete_job(r->w);
    for (int i = 0; i < 400; i++) {
        turn(r, false);
        world_collect(r->w);
    }
    for (int i = 0; i < r->w->truth.pods_count; i++)
        cr_assert(!r->w->truth.pod[i].exists, "seed %llu: %s is left over", (unsigned long long)r->seed,
                  r->w->truth.pod[i].view.name);
}

Test(operator_sim, a_calm_run_makes_each_pod_once_and_is_over)
{
    struct run r = begin(1);
    run_to_end(&r);
    cr_assert_eq(r.w->creates, 4, "%d pods for one coordinator and three workers", r.w->creates);
    cr_assert_eq(r.w->conflicts, 0);
    expect_quiet(&r);
    expect_nothing_left(&r);
    end(&r);
}

static void play_part(int part)
{
    int refused = 0, hung = 0, fell = 0, idled = 0;
    for (uint64_t seed = 1 + (uint64_t)part * SEEDS; seed <= (uint64_t)(part + 1) * SEEDS; seed++) {
        struct run r = begin(seed);
        for (int i = 0; i < ROUNDS && !is_finished(r.w); i++)
            turn(&r, true);
        run_to_end(&r);
        expect_quiet(&r);
        expect_nothing_left(&r);
        refused += r.w->refused;
        hung += r.w->hung;
        fell += r.w->fell;
        idled += r.w->idled;
        cr_assert(r.w->idles || !r.w->idled, "seed %llu: nobody wants that", (unsigned long long)seed);
        end(&r);
    }
    if ((int)SEEDS < (int)ENOUGH)
        return;
    cr_assert_gt(refused, SEEDS / 10, "machines that don't fit are among what happens");
    cr_assert_gt(hung, SEEDS / 10, "coordinators that hang are among what happens");
    cr_assert_gt(fell, SEEDS / 10, "spot machines that go again and again are among what happens");
    cr_assert_gt(idled, SEEDS / 10, "too few machines for long are among what happens: %d", idled);
}

ParameterizedTestParameters(operator_sim, whatever_happens_there_is_one_pod_an_index_and_the_same_end)
{
    static int parts[PARTS] = {0, 1, 2, 3};
    return cr_make_param_array(int, parts, PARTS);
}

ParameterizedTest(int *part, operator_sim, whatever_happens_there_is_one_pod_an_index_and_the_same_end,
                  .timeout = 300)
{
    play_part(*part);
}

/* How many workers are on machines that may go. */
static int uneasy(const struct world *w)
{
    int count = 0;
    for (int i = 0; i < w->truth.pods_count; i++)
        for (int node = 0; node < WORLD_NODES && w->truth.pod[i].exists; node++)
            count += w->truth.pod[i].view.role == OP_WORKER && *w->truth.node[node].view.may_leave &&
                     !strcmp(w->truth.pod[i].view.node, w->truth.node[node].view.name);
    return count;
}

/* Any number of machines may go, and may not after all, while the operator is killed and deposed: once all
 * three train there are never fewer, and who trains on such a machine has been replaced in the end. */
Test(operator_sim, warnings_alone_never_cost_a_place, .timeout = 300)
{
    int moved = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run r = begin(seed);
        r.w->mixed = r.w->sidecars = r.w->single = false;
        for (int i = 0; i < ROUNDS && world_training(r.w) < 3; i++)
            turn(&r, false);
        int creates = r.w->creates;
        for (int i = 0; i < ROUNDS && !r.w->released; i++) {
            r.w->step = 0;
            if (i < ROUNDS / 2 && chance(&r, 10))
                world_cordon(r.w, (int)world_draw(r.w, 4), chance(&r, 70));
            if (i == ROUNDS / 2)
                world_cordon(r.w, 0, false);
            int die = chance(&r, 10) ? (int)world_draw(r.w, 6) : -1;
            turn(&r, false);
            if (die >= 0 && expectations_met(&r)) {
                process_reconcile(r.w, r.o, die, chance(&r, 50));
                process_start(r.w, r.o);
            }
            cr_assert_geq(world_training(r.w), 3, "seed %llu, round %d: %s", (unsigned long long)seed, i,
                          r.w->truth.job.status);
        }
        cr_assert_eq(uneasy(r.w), 0, "seed %llu: %s", (unsigned long long)seed, r.w->truth.job.status);
        moved += r.w->creates > creates;
        end(&r);
    }
    cr_assert_gt(moved, SEEDS / 2, "machines with workers are among those that may go");
}

static void crash_now_and_then(struct run *r);

/* Machines will go by taints alone, and don't after all: who is there stays until another one trains in its
 * place. Whether others were made. */
static bool play_taints(struct run *r)
{
    r->w->mixed = r->w->sidecars = r->w->single = r->w->spot = false;
    for (int i = 0; i < ROUNDS && world_training(r->w) < 3; i++)
        turn(r, false);
    int creates = r->w->creates;
    for (int i = 0; i < 2 * ROUNDS; i++) {
        r->w->step = 0;
        if (i < ROUNDS && chance(r, 5))
            world_taint(r->w, (int)world_draw(r->w, 3), chance(r, 70));
        crash_now_and_then(r);
        cr_assert_geq(world_training(r->w), 3, "seed %llu, round %d: %s", (unsigned long long)r->seed, i,
                      r->w->truth.job.status);
    }
    return r->w->creates > creates;
}

Test(operator_sim, taints_alone_never_cost_a_place_that_is_needed, .timeout = 300)
{
    int moved = 0;
    for (uint64_t seed = 1; seed <= MIXED; seed++) {
        struct run r = begin(seed);
        r.w->truth.job.min = 3;
        moved += play_taints(&r);
        end(&r);
    }
    cr_assert_gt(moved, MIXED / 2, "machines with workers are among those that will go");
}

/* Two would be enough. Who comes trains at once, or waits beside the ring until its coordinator, which was
 * asked, takes it in and lets the other one go. */
Test(operator_sim, nor_one_that_another_worker_can_take_first, .timeout = 300)
{
    int moved = 0, told = 0;
    for (uint64_t seed = 1; seed <= MIXED; seed++) {
        struct run r = begin(seed);
        r.w->truth.job.min = 2;
        r.w->beside = seed % 2;
        moved += play_taints(&r);
        told += r.w->told_will;
        end(&r);
    }
    cr_assert_gt(moved, MIXED / 2, "machines with workers are among those that will go");
    cr_assert_gt(told, MIXED / 2, "coordinators are told of them");
}

static void crash_now_and_then(struct run *r)
{
    int die = chance(r, 10) ? (int)world_draw(r->w, 6) : -1;
    turn(r, false);
    if (die < 0 || !expectations_met(r))
        return;
    process_reconcile(r->w, r->o, die, false);
    process_start(r->w, r->o);
}

/* What a machine is told: in half of the jobs that it may go, in the others that it will in ten minutes, and
 * in all that it does not after all. (Where both are told at once two decide: who is relieved for the one may
 * go in the moment in which its coordinator lets another one go for the other.) */
static void tell_somebody(struct run *r)
{
    int word = r->seed % 2 ? TOLD_MAY : TOLD_WILL;
    world_tell(r->w, chance(r, 70) ? word : TOLD_NOTHING, 600 * 1000);
}

/* In ten minutes there is time to make another one, whatever becomes of the operator meanwhile. A notice that
 * is taken back leaves nothing behind. */
Test(operator_sim, who_is_told_in_time_is_replaced_before_it_goes, .timeout = 300)
{
    int left = 0, surplus = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run r = begin(seed);
        r.w->mixed = r.w->sidecars = r.w->single = false;
        for (int i = 0; i < ROUNDS && world_training(r.w) < 3; i++)
            turn(&r, false);
        for (int i = 0; i < 2 * ROUNDS; i++) {
            r.w->step = 0;
            if (i < ROUNDS && chance(&r, 10))
                tell_somebody(&r);
            crash_now_and_then(&r);
            cr_assert_geq(world_training(r.w), 3, "seed %llu, round %d: %s", (unsigned long long)seed, i,
                          r.w->truth.job.status);
            surplus += world_wanted(r.w, OP_WORKER) > 3;
        }
        cr_assert_eq(r.w->late, 0, "seed %llu: nobody came in %d places", (unsigned long long)seed,
                     r.w->late);
        cr_assert_eq(world_wanted(r.w, OP_WORKER), 3, "seed %llu: %s", (unsigned long long)seed,
                     r.w->truth.job.status);
        left += r.w->left;
        end(&r);
    }
    cr_assert_gt(left, SEEDS, "workers whose machines go are among what happens: %d", left);
    cr_assert_gt(surplus, SEEDS, "for each of them another one is made first");
}

/* Who comes waits beside a ring that takes no more, or until a program is restarted for it; whose place it
 * has then its coordinator decides in one change. Machines may go, will, and don't after all, in one job and
 * at any moment. */
Test(operator_sim, one_who_comes_is_never_counted_for_two_who_go, .timeout = 300)
{
    int left = 0, relieved = 0;
    for (uint64_t seed = 1; seed <= MIXED; seed++) {
        struct run r = begin(seed);
        r.w->mixed = r.w->sidecars = r.w->single = false;
        r.w->beside = true;
        r.w->launched = seed % 2;
        if (!r.w->launched)
            r.w->truth.job.max = 3;
        for (int i = 0; i < ROUNDS && world_training(r.w) < 3; i++)
            turn(&r, false);
        for (int i = 0; i < 2 * ROUNDS; i++) {
            r.w->step = 0;
            if (i < ROUNDS && chance(&r, 15))
                world_tell(r.w, chance(&r, 50) ? TOLD_MAY : TOLD_WILL, 600 * 1000);
            crash_now_and_then(&r);
            cr_assert_geq(world_training(r.w), 3, "seed %llu, round %d: %s", (unsigned long long)seed, i,
                          r.w->truth.job.status);
            relieved += *r.w->relief && !strstr(r.w->relief, "relieve=&");
        }
        cr_assert_eq(r.w->late, 0, "seed %llu: nobody came in %d places", (unsigned long long)seed,
                     r.w->late);
        left += r.w->left;
        end(&r);
    }
    cr_assert_gt(left, MIXED, "workers that go are among what happens: %d", left);
    cr_assert_gt(relieved, MIXED, "some of them as they may have to: %d", relieved);
}

/* A machine tells each worker that comes there that it may go, and does not. Who takes the place of a lost
 * one may be put there again. */
Test(operator_sim, who_lies_in_a_machines_name_has_one_leave_it_a_minute, .timeout = 300)
{
    int relieved = 0;
    for (uint64_t seed = 1; seed <= MIXED; seed++) {
        struct run r = begin(seed);
        r.w->mixed = r.w->sidecars = r.w->single = r.w->launched = r.w->idles = false;
        r.w->lies = true;
        for (int i = 0; i < ROUNDS && world_training(r.w) < 3; i++)
            turn(&r, false);
        for (int i = 0; i < 2 * ROUNDS; i++) {
            r.w->step = 0;
            world_lie(r.w);
            if (chance(&r, 10))
                world_lose_one(r.w);
            crash_now_and_then(&r);
            cr_assert_str_eq(r.w->wrong, "", "seed %llu, round %d: %s", (unsigned long long)seed, i,
                             r.w->wrong);
        }
        relieved += r.w->relieved;
        end(&r);
    }
    cr_assert_gt(relieved, 2 * MIXED, "workers that leave that machine are among what happens: %d", relieved);
}

/* Machines go, and what they take along; the operator is killed and deposed, and pods that wait are deleted.
 * What a deposed leader had begun may still make a pod, until the next one sees it. */
static int be_idle(struct run *r)
{
    enum { SEEN = 30 };
    int idle = 0, too_many = 0;
    for (int i = 0; i < ROUNDS; i++) {
        int die = chance(r, 10) ? (int)world_draw(r->w, 6) : -1;
        turn(r, false);
        if (die >= 0 && expectations_met(r)) {
            process_reconcile(r->w, r->o, die, chance(r, 50));
            process_start(r->w, r->o);
        }
        if (chance(r, 2))
            world_delete_pending(r->w);
        bool now = world_is(r->w, "Idle");
        bool more = world_wanted(r->w, OP_WORKER) > 1 || world_wanted(r->w, OP_COORDINATOR) > 0;
        idle += now;
        too_many = now && more ? too_many + 1 : 0;
        cr_assert_lt(too_many, SEEN, "seed %llu, round %d: %s", (unsigned long long)r->seed, i,
                     r->w->truth.job.status);
    }
    return idle;
}

Test(operator_sim, an_idle_job_has_one_pod_that_waits_and_all_of_them_when_machines_come, .timeout = 300)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct run r = begin(seed);
        bool some_left = seed % 2;
        r.w->mixed = false;
        r.w->idles = r.w->single = true;
        for (int i = 0; i < ROUNDS && world_training(r.w) < 3; i++)
            turn(&r, false);
        r.w->step = 0;
        for (int i = some_left; i < WORLD_NODES; i++)
            world_take_node(r.w, i);
        int idle = be_idle(&r);
        cr_assert_gt(idle, ROUNDS / 8, "seed %llu, in %d rounds: %s", (unsigned long long)seed, idle,
                     r.w->truth.job.status);
        cr_assert(some_left ? r.w->idled > 1 : world_is(r.w, "Idle"), "seed %llu: %s",
                  (unsigned long long)seed, r.w->truth.job.status);
        world_repair_nodes(r.w);
        for (int i = 0; i < ROUNDS && world_training(r.w) < 3; i++) {
            r.w->step = 0;
            turn(&r, false);
        }
        cr_assert_eq(world_training(r.w), 3, "seed %llu: %s", (unsigned long long)seed,
                     r.w->truth.job.status);
        run_to_end(&r);
        end(&r);
    }
}

Test(operator_sim, a_job_deleted_in_the_middle_leaves_nothing, .timeout = 300)
{
    for (uint64_t seed = 1000; seed < 1000 + DELETED; seed++) {
        struct run r = begin(seed);
        int rounds = (int)world_draw(r.w, 120);
        for (int i = 0; i < rounds; i++)
            turn(&r, true);
        world_repair_nodes(r.w);
        expect_nothing_left(&r);
        end(&r);
    }
}
