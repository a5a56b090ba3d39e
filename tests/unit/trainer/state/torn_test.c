/* SIGKILL at every named point inside the update, and again inside the repair. A child trains in a memfd and
 * is killed there; the next child attaches, repairs and goes on; the bits at the end are those of a run that
 * nobody disturbed. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/crypto.h"
#include "tests/unit/trainer/backend/cpu/sums/exact_case.h"
#include "trainer/state/state_file.h"

enum { LAST = 4 };

static const struct state_shape *shape(void)
{
    static struct state_shape s;
    s = (struct state_shape){.layout = case_layout(), .lanes = CASE_LANES, .fast = false};
    return &s;
}

/* Memory for snapshots beside the state, -1 none: then every second update leads there and the next one
 * back. */
static int spare_fd = -1;

static size_t spare_bytes(void)
{
    return 3 * (size_t)case_layout()->parameters * sizeof(float);
}

static int open_state(struct state **ret, int fd)
{
    if (state_open(ret, fd, shape(), NULL) < 0)
        return -1;
    return spare_fd < 0 ? 0 : state_add_spare(*ret, spare_fd, 0, NULL);
}

static void run_step(struct lanes *l, struct state *s, float *grads, const struct update_rule *rule)
{
    struct state_point point;
    struct lanes_sums sums;
    struct verdict verdict = {.kind = VERDICT_FITS};
    float loss;
    state_holds(s, &point);
    do {
        int32_t k[RM_TENSORS_MAX];
        memcpy(k, verdict.kind == VERDICT_RESCALE ? verdict.k : point.k, sizeof k);
        lanes_begin(l, &(struct lanes_pass){.k = k});
        for (int lane = 0; lane < CASE_LANES; lane++) {
            case_gradient(near_arrays(s).params, point.step + 1, lane, grads, &loss);
            lanes_add(l, lane, grads, loss);
        }
        lanes_end(l, &sums);
        memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
        lanes_decide(l, &verdict);
    } while (verdict.kind == VERDICT_RESCALE);
    state_aim_spare(s, true);
    lanes_words_to(l);
    update_commit(l, rule, NULL);
}

/* A trainer's life: attach, repair, start if nothing is there, train to the last step. */
static void live(int fd, int threads)
{
    const struct update_rule rule = case_rule();
    struct state *s = NULL;
    struct lanes *l = NULL;
    struct pool *pool = NULL;
    struct state_point point;
    float *grads = calloc((size_t)case_layout()->parameters, sizeof *grads);
    if (!grads || open_state(&s, fd) < 0 || (threads && pool_open(&pool, threads, NULL) < 0) ||
        lanes_open(&l, s, pool, NULL) < 0)
        _exit(1);
    if (state_pending(s))
        update_apply(s, &rule, pool, NULL);
    if (!state_holds(s, &point))
        case_first_weights(s);
    while (state_holds(s, &point) && point.step < LAST)
        run_step(l, s, grads, &rule);
    free(grads);
    lanes_free(l);
    state_free(s);
    pool_free(pool);
    _exit(0);
}

/* Returns whether the life was ended by the fault point. */
static bool spawn(int fd, int threads, const char *fault)
{
    pid_t child = fork();
    int status = 0;
    if (child == 0) {
        if (fault)
            setenv("RINGMASTER_FAULT", fault, 1);
        else
            unsetenv("RINGMASTER_FAULT");
        live(fd, threads);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) {
        cr_assert_eq(WTERMSIG(status), SIGKILL, "signal %d at %s", WTERMSIG(status), fault);
        return true;
    }
    cr_assert_eq(WEXITSTATUS(status), 0);
    return false;
}

static struct case_hash look(int fd)
{
    struct state *s = NULL;
    cr_assert_eq(open_state(&s, fd), 0);
    struct case_hash hash = case_hash(s);
    state_free(s);
    return hash;
}

static struct case_hash undisturbed(void)
{
    int fd = case_memfd();
    cr_assert_not(spawn(fd, 0, NULL));
    struct case_hash hash = look(fd);
    close(fd);
    return hash;
}

/* Killed at `first`, then (where given) at `second`, then left alone. False where a point was not reached. */
static bool survives(struct case_hash wanted, int threads, const char *first, const char *second)
{
    int fd = case_memfd();
    bool reached = spawn(fd, threads, first);
    if (second)
        reached &= spawn(fd, threads, second);
    cr_assert_not(spawn(fd, threads, NULL));
    cr_assert(case_same(wanted, look(fd)), "other bits after SIGKILL at %s, %s", first,
              second ? second : "-");
    close(fd);
    return reached;
}

static int pieces(void)
{
    int n = 0;
    for (int t = 0; t < case_layout()->tensors; t++)
        n += (int)((case_layout()->tensor[t].count + STATE_PIECE - 1) / STATE_PIECE);
    return n;
}

static const char *const once_a_step[] = {"header-done",    "kept-forgotten", "header-copied",
                                          "words-complete", "update-record",  "update-valid",
                                          "before-commit",  "record-written", "after-commit"};
static const char *const once_a_piece[] = {"slot-filled",   "slot-valid",    "piece-half",
                                           "piece-updated", "piece-stamped", "slot-cleared"};
static const char *const at_start[] = {"state-laid-out", "receive-begun", "receive-record", "receive-held"};
static const char *const in_repair[] = {"slot-restored", "slot-restamped", "slot-forgotten"};

#define COUNT(list) ((int)(sizeof(list) / sizeof *(list)))

Test(torn, a_kill_at_any_point_of_a_step_leaves_a_whole_state)
{
    struct case_hash wanted = undisturbed();
    char fault[64];
    for (int i = 0; i < COUNT(once_a_step); i++) {
        for (int step = CASE_SHARE > 1 ? LAST : 1; step <= LAST; step++) {
            snprintf(fault, sizeof fault, "%s:%d", once_a_step[i], step);
            cr_assert(survives(wanted, 0, fault, NULL), "%s is reached", fault);
        }
    }
}

Test(torn, a_kill_at_any_point_of_any_piece_leaves_a_whole_state)
{
    struct case_hash wanted = undisturbed();
    char fault[64];
    for (int i = 0; i < COUNT(once_a_piece); i++) {
        for (int n = 1; n <= 2 * pieces();
             n += n == 1 || n == pieces() - 1 || n == pieces() ? 1 : 3 * CASE_SHARE) {
            snprintf(fault, sizeof fault, "%s:%d", once_a_piece[i], n);
            cr_assert(survives(wanted, 0, fault, NULL), "%s is reached", fault);
        }
    }
}

Test(torn, a_kill_while_several_threads_hold_pieces_leaves_a_whole_state)
{
    struct case_hash wanted = undisturbed();
    char fault[64];
    for (int i = 0; i < COUNT(once_a_piece); i++) {
        for (int n = 1; n <= pieces(); n += 5 * CASE_SHARE) {
            snprintf(fault, sizeof fault, "%s:%d", once_a_piece[i], n);
            cr_assert(survives(wanted, 2 + n % 2, fault, NULL));
        }
    }
}

Test(torn, a_second_kill_inside_the_repair_loses_nothing_either)
{
    struct case_hash wanted = undisturbed();
    char fault[64];
    const char *const torn[] = {"slot-valid", "piece-half", "piece-updated", "piece-stamped"};
    const int stride = CASE_SHARE > 1 ? COUNT(torn) : 1;
    for (int i = 0; i < COUNT(torn); i += stride) {
        snprintf(fault, sizeof fault, "%s:%d", torn[i], pieces() + 5);
        for (int j = 0; j < COUNT(in_repair); j++)
            cr_assert(survives(wanted, 0, fault, in_repair[j]), "%s then %s", fault, in_repair[j]);
        for (int j = 0; j < COUNT(once_a_piece); j++)
            cr_assert(survives(wanted, 0, fault, once_a_piece[j]));
        for (int j = 6; j < COUNT(once_a_step); j++)
            cr_assert(survives(wanted, 0, fault, once_a_step[j]));
    }
}

/* The parameters of the state that lies there, also where an update from it has begun. */
static struct case_hash old_params(const struct state *s)
{
    struct case_hash hash;
    sha256_once(near_arrays((struct state *)s).params, (size_t)case_layout()->parameters * sizeof(float),
                hash.bytes);
    return hash;
}

/* Killed at that point with a spare: the state that the update comes from is whole, and the end is right. */
static void survives_with_spare(struct case_hash wanted, const struct case_hash *steps, const char *fault)
{
    int fd = case_memfd();
    struct state *s = NULL;
    spare_fd = case_memfd();
    cr_assert_eq(ftruncate(spare_fd, (off_t)spare_bytes()), 0);
    cr_assert(spawn(fd, 0, fault), "%s is reached", fault);
    cr_assert_eq(open_state(&s, fd), 0);
    cr_assert(case_same(old_params(s), steps[state_current(s)->step]), "torn by SIGKILL at %s", fault);
    state_free(s);
    cr_assert_not(spawn(fd, 0, NULL));
    cr_assert(case_same(wanted, look(fd)), "other bits after SIGKILL at %s", fault);
    close(fd);
    close(spare_fd);
    spare_fd = -1;
}

/* The parameters at each step, from a run without a spare that is killed right after each commit. */
static void params_of_steps(struct case_hash *steps)
{
    char fault[64];
    for (int step = 0; step <= LAST; step++) {
        struct state *s = NULL;
        int fd = case_memfd();
        snprintf(fault, sizeof fault, step ? "after-commit:%d" : "receive-held", step);
        cr_assert(spawn(fd, 0, fault));
        cr_assert_eq(open_state(&s, fd), 0);
        cr_assert_eq(state_current(s)->step, step);
        steps[step] = old_params(s);
        state_free(s);
        close(fd);
    }
}

Test(torn, a_kill_on_the_way_to_the_spare_and_back_leaves_the_old_state_whole)
{
    struct case_hash wanted = undisturbed(), steps[LAST + 1];
    const char *const moving[] = {"piece-half", "piece-updated", "piece-stamped"};
    char fault[64];
    params_of_steps(steps);
    for (int i = 0; i < COUNT(once_a_step); i++) {
        for (int step = CASE_SHARE > 1 ? LAST : 1; step <= LAST; step++) {
            snprintf(fault, sizeof fault, "%s:%d", once_a_step[i], step);
            survives_with_spare(wanted, steps, fault);
        }
    }
    for (int i = 0; i < COUNT(moving); i++) {
        for (int n = 1; n <= LAST * pieces(); n += n % pieces() < 2 ? 1 : 5 * CASE_SHARE) {
            snprintf(fault, sizeof fault, "%s:%d", moving[i], n);
            survives_with_spare(wanted, steps, fault);
        }
    }
}

Test(torn, a_kill_while_the_first_state_arrives_leaves_nothing_held_or_all_of_it)
{
    struct case_hash wanted = undisturbed(), nothing = {{0}};
    int fds[COUNT(at_start)];
    /* All kills first: this process must meet no fault point before its children read the setting. */
    for (int i = 0; i < COUNT(at_start); i++) {
        fds[i] = case_memfd();
        cr_assert(spawn(fds[i], 0, at_start[i]), "%s is reached", at_start[i]);
    }
    for (int i = 0; i < COUNT(at_start); i++) {
        bool arrived = i == COUNT(at_start) - 1;
        cr_assert_eq(case_same(nothing, look(fds[i])), !arrived, "at %s", at_start[i]);
        cr_assert_not(spawn(fds[i], 0, NULL));
        cr_assert(case_same(wanted, look(fds[i])));
        close(fds[i]);
    }
}

/* Kills the child at an instant that no fault point names. Where it lands differs from run to run; the bits
 * may not. */
static void kill_somewhere(int fd, int threads, uint64_t *seed)
{
    int ready[2];
    char byte;
    cr_assert_eq(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        if (write(ready[1], "", 1) != 1)
            _exit(1);
        live(fd, threads);
    }
    cr_assert_eq(read(ready[0], &byte, 1), 1);
    for (volatile uint64_t i = prng_below(seed, 3000000); i > 0; i--)
        continue;
    kill(child, SIGKILL);
    cr_assert_eq(waitpid(child, NULL, 0), child);
    close(ready[0]);
    close(ready[1]);
}

Test(torn, kills_at_random_instants_leave_a_whole_state)
{
    struct case_hash wanted = undisturbed();
    uint64_t seed = (uint64_t)getpid();
    for (int round = 0; round < 30 / CASE_SHARE; round++) {
        int fd = case_memfd();
        for (int kills = 0; kills < 3; kills++)
            kill_somewhere(fd, round % 3, &seed);
        cr_assert_not(spawn(fd, 0, NULL));
        cr_assert(case_same(wanted, look(fd)));
        close(fd);
    }
}

Test(torn, nothing_is_held_between_a_kill_and_the_repair)
{
    struct state *s = NULL;
    struct case_hash nothing = {{0}};
    int fd = case_memfd();
    cr_assert(spawn(fd, 0, "piece-stamped:3"));
    cr_assert_eq(state_open(&s, fd, shape(), NULL), 0);
    cr_assert(state_pending(s));
    cr_assert(case_same(case_hash(s), nothing));
    const struct update_rule rule = case_rule();
    struct update_info info;
    update_apply(s, &rule, NULL, &info);
    cr_assert_eq(info.step, 1);
    cr_assert(state_holds(s, NULL));
    state_free(s);
    close(fd);
}
