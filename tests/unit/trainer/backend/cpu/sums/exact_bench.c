/* What exact sums cost beside fast ones, in ns a parameter: one lane's pass, and the whole update; and what a
 * snapshot costs: an update to the spare and the one that leads home, beside two updates in place.
 *     exact_bench [MILLIONS OF PARAMETERS, about] [THREADS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "trainer/backend/cpu/sums/kernels.h"
#include "trainer/backend/cpu/sums/update.h"

enum { LANES = 8, ROUNDS = 9 };

struct times {
    rm_time first, later;
    rm_time update[3]; /* in place, to the spare, home again */
};

static const struct update_rule rule = {
    .schedule = {.rate = 1e-3, .steps = 100},
    .beta1 = 0.9,
    .beta2 = 0.95,
    .epsilon = 1e-8,
    .weight_decay = 0.1,
    .clip_norm = 1,
};

static void die(const struct error *err)
{
    fprintf(stderr, "exact_bench: %s\n", err->text);
    _exit(4);
}

static void keep_least(rm_time *least, rm_time since)
{
    rm_time took = clock_now() - since;
    if (*least == 0 || took < *least)
        *least = took;
}

/* One step: the first lane is stored, the others added. */
static void time_step(struct lanes *l, struct state *s, const float *grads, const int32_t *k, struct times *t)
{
    struct lanes_sums sums;
    struct verdict v;
    lanes_begin(l, &(struct lanes_pass){.k = k});
    for (int lane = 0; lane < LANES; lane++) {
        rm_time since = clock_now();
        lanes_add(l, lane, grads, 1);
        keep_least(lane ? &t->later : &t->first, since);
    }
    lanes_end(l, &sums);
    memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
    lanes_decide(l, &v);
    if (v.kind == VERDICT_RESCALE) {
        time_step(l, s, grads, v.k, t);
        return;
    }
    bool from_spare = state_in_spare(s);
    lanes_words_to(l);
    rm_time since = clock_now();
    update_commit(l, &rule, NULL);
    keep_least(&t->update[from_spare ? 2 : state_in_spare(s) ? 1 : 0], since);
}

static void run(const struct model_layout *layout, bool fast, struct pool *pool, const float *grads)
{
    struct state *s = NULL;
    struct lanes *l = NULL;
    struct error err = {0};
    struct times t = {0};
    const struct state_point point = {.step = 0};
    int fd = memfd_create("state", MFD_CLOEXEC), spare = memfd_create("spare", MFD_CLOEXEC);
    if (ftruncate(spare, (off_t)(3 * (size_t)layout->parameters * sizeof(float))) < 0 ||
        state_open(&s, fd, &(struct state_shape){.layout = layout, .lanes = LANES, .fast = fast}, &err) < 0 ||
        state_add_spare(s, spare, 0, &err) < 0 || lanes_open(&l, s, pool, &err) < 0)
        die(&err);
    state_receive_begin(s);
    state_zero_moments(s, NULL);
    state_receive_end(s, &point, NULL);
    for (int i = 0; i < 3 * ROUNDS; i++) {
        state_aim_spare(s, i % 3 == 1);
        time_step(l, s, grads, NULL, &t);
    }
    double n = (double)layout->parameters;
    printf(
        "%-5s  first lane %.2f  later lanes %.2f  norm + AdamW + undo %.2f (to the spare %.2f, home %.2f)   "
        "ns a parameter\n",
        fast ? "fast" : "exact", (double)t.first / n, (double)t.later / n, (double)t.update[0] / n,
        (double)t.update[1] / n, (double)t.update[2] / n);
    lanes_free(l);
    state_free(s);
    close(fd);
    close(spare);
}

int main(int argc, char **argv)
{
    long millions = argc > 1 ? strtol(argv[1], NULL, 10) : 32;
    int threads = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 1;
    const struct model_shape shape = {4, 4, 512, 256, (int)((millions * 1000000 - 12800000) / 512)};
    static struct model_layout layout;
    struct pool *pool = NULL;
    struct error err = {0};
    if (millions < 14 || pool_open(&pool, threads, &err) < 0)
        die(&err);
    model_layout_init(&layout, &shape);
    float *grads = malloc((size_t)layout.parameters * sizeof *grads);
    float *other = malloc((size_t)layout.parameters * sizeof *other);
    if (!grads || !other)
        die(&err);
    for (int64_t i = 0; i < layout.parameters; i++)
        grads[i] = (float)((i * 7919) % 1009 - 504) * 1e-5f;
    rm_time copy = 0;
    for (int i = 0; i < ROUNDS; i++) {
        rm_time since = clock_now();
        memcpy(other, grads, (size_t)layout.parameters * sizeof *grads);
        keep_least(&copy, since);
    }
    printf("%.1f M parameters, %d threads, %s; memcpy on one thread: %.2f ns for 4 bytes\n",
           (double)layout.parameters / 1e6, threads, kernels_name(kernels_best()),
           (double)copy / (double)layout.parameters);
    run(&layout, false, pool, grads);
    run(&layout, true, pool, grads);
    free(grads);
    free(other);
    pool_free(pool);
    return 0;
}
