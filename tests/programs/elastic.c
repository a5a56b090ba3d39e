/* A regression by hand, with momentum, that is elastic: a program in C with libringmaster alone.
 *
 *     gcc -std=c11 -I trainer/library tests/programs/elastic.c -L LIB -lringmaster
 *     elastic [MS]
 *
 * MS: that a lane takes at least, so that there is something to interrupt. */
#define _POSIX_C_SOURCE 200809L
#include "ringmaster.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SAMPLES = 48, INPUTS = 4 };

static int pause_of_a_lane_ms;
static struct {
    float w[INPUTS], momentum[INPUTS];
    int64_t updates;
} state;

static uint64_t chance(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed >> 33;
}

static float uniform(uint64_t *seed)
{
    return (float)chance(seed) / (float)(UINT64_C(1) << 31) - 0.5f;
}

/* The sample's inputs and what is wanted for them. */
static float sample(int64_t index, float x[INPUTS])
{
    uint64_t seed = (uint64_t)index + 99;
    float wanted = 0;
    for (int i = 0; i < INPUTS; i++) {
        x[i] = uniform(&seed) + uniform(&seed);
        wanted += (float)(i + 1) * x[i];
    }
    return wanted;
}

static double lane(const struct rm_task *task, float *gradient)
{
    uint64_t seed = task->seed;
    double loss = 0;
    for (int64_t s = 0; s < task->count; s++) {
        float x[INPUTS], off = -sample(task->samples[s], x) + 0.01f * uniform(&seed);
        for (int i = 0; i < INPUTS; i++)
            off += state.w[i] * x[i];
        for (int i = 0; i < INPUTS; i++)
            gradient[i] += 2 * off * x[i] / (float)task->count;
        loss += (double)(off * off) / (double)task->count;
    }
    return loss;
}

static void update(const float *gradient)
{
    for (int i = 0; i < INPUTS; i++) {
        state.momentum[i] = 0.9f * state.momentum[i] + gradient[i];
        state.w[i] -= 0.05f * state.momentum[i];
    }
    state.updates++;
}

static int save(struct rm_job *job)
{
    const int64_t shape[] = {INPUTS};
    if (rm_put(job, "model.w", RM_F32, 1, shape, state.w) < 0)
        return -1;
    if (rm_put(job, "momentum.w", RM_F32, 1, shape, state.momentum) < 0)
        return -1;
    return rm_put(job, "updates", RM_I64, 0, NULL, &state.updates);
}

static int take(struct rm_job *job, const char *name, void *into, int64_t bytes)
{
    struct rm_tensor found;
    if (rm_find(job, name, &found) < 0)
        return -1;
    memcpy(into, found.data, (size_t)bytes);
    return found.bytes == bytes ? 0 : -1;
}

static int load(struct rm_job *job)
{
    if (take(job, "model.w", state.w, sizeof state.w) < 0 ||
        take(job, "momentum.w", state.momentum, sizeof state.momentum) < 0)
        return -1;
    return take(job, "updates", &state.updates, sizeof state.updates);
}

static int follow(struct rm_job *job, const struct rm_task *task)
{
    switch (task->kind) {
    case RM_LANE:
        poll(NULL, 0, pause_of_a_lane_ms);
        return rm_add(job, lane(task, rm_gradients(job)));
    case RM_UPDATE:
        update(rm_gradients(job));
        return rm_report(job, "loss", task->loss);
    case RM_SAVE:
        return save(job);
    case RM_LOAD:
        return load(job);
    default:
        return 0;
    }
}

int main(int argc, char **argv)
{
    pause_of_a_lane_ms = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
    printf("begin %d\n", (int)getpid());
    struct rm_options options = {
        .abi = RM_ABI, .samples = SAMPLES, .deterministic = 1, .arithmetic = "elastic.c 1, " __VERSION__};
    struct rm_job *job = rm_connect(&options);
    if (!job) {
        fprintf(stderr, "elastic: %s\n", rm_why(NULL));
        return 1;
    }
    struct rm_task task = {0};
    int failed = rm_gradient(job, "w", INPUTS) < 0 || save(job) < 0;
    while (!failed && rm_next(job, &task) == 0 && task.kind != RM_END)
        failed = follow(job, &task) < 0;
    int complete = task.kind == RM_END && !task.why[0];
    if (complete)
        printf("done %lld\n", (long long)state.updates);
    else
        fprintf(stderr, "elastic: %s\n", task.kind == RM_END ? task.why : rm_why(job));
    rm_close(job);
    return complete ? 0 : 1;
}
