/* clang-format off: it would make prose of the example.
 *
 * libringmaster: a training loop of your own, made elastic (launch.mode: Elastic of a job).
 *
 * Ringmaster's trainer stands beside your process: it knows the other workers, adds gradients up exactly, and keeps
 * checkpoints. Your process computes gradients and updates its weights. This library is the line between the two. It
 * has no thread, needs libc alone, and does nothing while you don't call it.
 *
 *     struct rm_options options = {.abi = RM_ABI, .samples = 60000, .arithmetic = "mine 1.0, 1 thread"};
 *     struct rm_job *job = rm_connect(&options);
 *     if (!job)
 *         return complain(rm_why(NULL));
 *     rm_gradient(job, "w", N);                               // a call for each tensor
 *     rm_put(job, "model.w", RM_F32, 1, (int64_t[]){N}, w);   // the state, told once beforehand
 *     struct rm_task task;
 *     while (rm_next(job, &task) == 0 && task.kind != RM_END) {
 *         if (task.kind == RM_LANE)                           // zeros lie there; wanted is the mean of its samples
 *             rm_add(job, backward(w, task.samples, task.count, rm_gradients(job)));
 *         if (task.kind == RM_UPDATE)                         // the mean over all lanes of all workers lies there
 *             apply(w, rm_gradients(job));
 *         if (task.kind == RM_SAVE)
 *             rm_put(job, "model.w", RM_F32, 1, (int64_t[]){N}, w);
 *         struct rm_tensor found;
 *         if (task.kind == RM_LOAD && rm_find(job, "model.w", &found) == 0)
 *             memcpy(w, found.data, N * sizeof(float));
 *     }
 *     if (task.kind != RM_END || task.why[0])
 *         return complain(task.kind == RM_END ? task.why : rm_why(job));
 *     rm_close(job);
 *
 * The order of tasks is nothing to rely on: do the one that comes. A lane may be asked for twice, a worker may have
 * none in a step, an update may come for a step that it had no lane of, another state may come at any time. A lane's
 * result may depend on the state, its samples and its seed, and on nothing else: not on lanes before it.
 *
 * Errors: what returns an int gives 0, or -1, and then rm_why(job) has a sentence that says what to do. Where the
 * connection itself is gone, every later call says the same.
 *
 * Ownership: texts and data that you hand over are copied. What a task points to, and what rm_gradients and rm_find
 * give, lies in memory that is shared with the trainer: it is yours until the next rm_next, and it is gone after
 * rm_close. A job belongs to one thread, and to the process that connected: a forked child is refused. */
/* clang-format on */
#ifndef RINGMASTER_H
#define RINGMASTER_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RM_API __attribute__((visibility("default")))

enum { RM_ABI = 1, RM_DIMS_MAX = 8, RM_GRADIENTS_MAX = 1156 };

struct rm_job;

struct rm_options {
    uint32_t abi;           /* RM_ABI */
    uint32_t deterministic; /* 1: a lane that is computed twice has the same bits: workers audit each other */
    int64_t samples;        /* of the data set: tasks name samples from 0 to here */
    /* All that decides bits beside the program itself: libraries' versions, threads, kind of processor.
     * Workers whose text differs are not put into one company. Below 1024 bytes. */
    const char *arithmetic;
};

/* Values are part of the ABI. */
enum rm_dtype {
    RM_BOOL = 0,
    RM_U8,
    RM_I8,
    RM_I16,
    RM_U16,
    RM_F16,
    RM_BF16,
    RM_I32,
    RM_U32,
    RM_F32,
    RM_I64,
    RM_U64,
    RM_F64,
    RM_DTYPES
};

enum rm_task_kind {
    RM_LANE = 1, /* compute the mean gradient of `samples` into rm_gradients (zeros lie there), then rm_add */
    RM_UPDATE,   /* the mean gradient of step `step` lies in rm_gradients: apply it */
    RM_SAVE,     /* rm_put every tensor of the state */
    RM_LOAD,     /* rm_find every tensor of the state: it is that of step `step` */
    RM_END,      /* nothing more. why: empty where the job is complete */
    RM_AGAIN     /* nothing yet, or a signal came: look at signals, call again */
};

struct rm_task {
    uint32_t kind;  /* enum rm_task_kind */
    uint32_t lane;  /* of a step, from 0 on */
    uint32_t pass;  /* how often this lane was asked for before, for audits */
    uint32_t lanes; /* of each step of the job */
    int64_t step;   /* LANE: that it is for, from 1 on; else the one that is held afterwards */
    int64_t steps;  /* of the job */
    uint64_t seed;  /* LANE: of (seed of the job, step, lane); UPDATE: of (seed of the job, step) */
    const int64_t *samples;
    int64_t count; /* of samples */
    double loss;   /* UPDATE: mean over the lanes */
    const char *why;
};

struct rm_tensor {
    uint32_t dtype; /* enum rm_dtype */
    int32_t dims;
    int64_t shape[RM_DIMS_MAX];
    const void *data; /* aligned for its dtype */
    int64_t bytes;
};

/* NULL where it can't be had; rm_why(NULL) says why. RINGMASTER_SOCKET of the environment says where the
 * trainer is. */
RM_API struct rm_job *rm_connect(const struct rm_options *options);

/* Before the first rm_next: one of the gradients, fp32, in the order in which they lie in rm_gradients, one
 * behind the other. Names are unique, 1 to 255 bytes. */
RM_API int rm_gradient(struct rm_job *job, const char *name, int64_t count);

/* While a LANE or an UPDATE is under way: all gradients; else NULL. */
RM_API float *rm_gradients(struct rm_job *job);

/* Says that the task before is done, and waits for the next one: AGAIN comes a few times a second. */
RM_API int rm_next(struct rm_job *job, struct rm_task *task);

/* The lane is done: its gradient lies in place, and this is its mean loss. */
RM_API int rm_add(struct rm_job *job, double loss);

/* The task can't be done: one line, for the job's last word. The job has ended for this process. */
RM_API int rm_fail(struct rm_job *job, const char *why);

/* A tensor of the state. Before the first rm_next: tells that there is one (data may be NULL). During SAVE:
 * writes it. The state is everything that decides what the program will do next: weights ("model.NAME"), the
 * optimizer's state, counters. Tensors may neither come nor go nor change shape later on; a number is a
 * tensor of no dimension, which may change between RM_I64 and RM_F64. Random numbers are no state: they
 * follow from a task's seed. */
RM_API int rm_put(struct rm_job *job, const char *name, enum rm_dtype dtype, int dims, const int64_t *shape,
                  const void *data);

/* During LOAD: a tensor of the state that came. */
RM_API int rm_find(struct rm_job *job, const char *name, struct rm_tensor *tensor);

/* Tells the trainer a number under this name, at any time after the first rm_next: a line of this worker's
 * log, with the step, at level info. */
RM_API int rm_report(struct rm_job *job, const char *key, double value);

/* The last error's sentence, empty where there was none; of NULL: why rm_connect failed last. */
RM_API const char *rm_why(const struct rm_job *job);

/* Ends the connection and gives everything back. NULL is nothing. */
RM_API void rm_close(struct rm_job *job);

#ifdef __cplusplus
}
#endif

#endif
