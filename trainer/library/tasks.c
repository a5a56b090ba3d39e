/* A program's side of the conversation with its trainer (common/program/packets.h): takes the next task,
 * maps the memory, and says what became of the one before. */
#include "trainer/library/job.h"
#include "trainer/library/socket.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

union answer {
    uint32_t word;
    struct program_welcome welcome;
    struct program_task_packet task;
};

enum { CAME, INTERRUPTED };

/* A signal that comes just before we wait interrupts nothing; an interpreter runs its handler only between
 * two calls of ours. */
enum { SIGNALS_WAIT_MS = 200 };

/* The next packet of the trainer's, of the length of its kind. */
static int receive_answer(struct rm_job *job, union answer *answer, int *passed)
{
    ssize_t got = socket_receive(job->fd, answer, sizeof *answer, passed, SIGNALS_WAIT_MS);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return INTERRUPTED;
    if (got <= 0) {
        errno = got < 0 ? errno : 0;
        return job_lost(job, "waiting for what is next");
    }
    size_t expected = answer->word == PROGRAM_WELCOME ? sizeof answer->welcome
                      : answer->word == PROGRAM_TASK  ? sizeof answer->task
                                                      : 0;
    if (got < 4 || (size_t)got != expected) {
        job->over = true;
        return job_refuse(
            job,
            "the trainer speaks another language (packet %u of %zd bytes): program and job have to be "
            "of one release",
            got < 4 ? 0 : answer->word, got);
    }
    return CAME;
}

/* Whether `bytes` at `at` lie in the memory, as what is read by eights. */
static bool lies_in(const struct program_welcome *welcome, int64_t at, int64_t bytes)
{
    return at >= 0 && at % 8 == 0 && at <= welcome->bytes && bytes <= welcome->bytes - at;
}

static bool is_sound(const struct rm_job *job, const struct program_welcome *welcome, int fd)
{
    /* lseek and not fstat, whose symbol is younger than 2.17. */
    bool sound = fd >= 0 && welcome->bytes > 0 && lseek(fd, 0, SEEK_END) >= welcome->bytes &&
                 welcome->lanes > 0 && welcome->sequences > 0 &&
                 lies_in(welcome, welcome->image_at, job->image.bytes);
    for (int area = 0; area < PROGRAM_AREAS; area++)
        sound = sound && lies_in(welcome, welcome->area_at[area], job->elements * (int64_t)sizeof(float)) &&
                lies_in(welcome, welcome->samples_at[area], (int64_t)welcome->sequences * 8);
    return sound;
}

static int map_memory(struct rm_job *job, const struct program_welcome *welcome, int fd)
{
    void *memory = MAP_FAILED;
    bool sound = is_sound(job, welcome, fd);
    if (sound)
        memory = mmap(NULL, (size_t)welcome->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    int reason = errno;
    if (fd >= 0)
        close(fd);
    if (memory == MAP_FAILED) {
        job->over = true;
        return job_refuse(job, "the memory that the trainer shares can't be used: %s",
                          sound ? strerror(reason) : "its places are not in it");
    }
    job->memory = memory;
    job->welcome = *welcome;
    return CAME;
}

/* READY and its answer: the memory, or the end. */
static int begin_job(struct rm_job *job)
{
    if (!job->told) {
        struct image_why why;
        if (!job->gradients)
            return job_refuse(job, "there is no gradient: tell them by rm_gradient before the first rm_next");
        if (image_seal(&job->image, &why) < 0) {
            job->over = true;
            return job_refuse(job, "%s", why.text);
        }
        struct program_ready ready = {
            .word = PROGRAM_READY, .gradients = job->gradients, .image_bytes = job->image.bytes};
        if (socket_send(job->fd, &ready, sizeof ready) < 0)
            return job_ended(job) ? CAME : job_lost(job, "saying that it is ready");
        job->told = true;
    }
    union answer answer;
    int passed, result = receive_answer(job, &answer, &passed);
    if (result != CAME)
        return result;
    if (answer.word == PROGRAM_WELCOME)
        return map_memory(job, &answer.welcome, passed);
    if (passed >= 0)
        close(passed);
    if (answer.task.kind == PROGRAM_END) {
        job_keep_end(job, &answer.task);
        return CAME;
    }
    job->over = true;
    return job_refuse(job, "the trainer asked for something (%u) before it had said welcome",
                      answer.task.kind);
}

/* What the task before leaves to do, and whether it was done. */
static int finish_task(struct rm_job *job)
{
    struct image_why why;
    if (job->task.kind == PROGRAM_LANE && !job->added)
        return job_refuse(
            job, "lane %u of step %lld was not added: call rm_add when its gradient is there, or rm_fail",
            job->task.lane, (long long)job->task.step);
    if (job->task.kind == PROGRAM_SAVE &&
        image_finish(&job->image, job->memory + job->welcome.image_at, &why) < 0)
        return job_refuse(job, "%s", why.text);
    return 0;
}

static uint64_t mixed(uint64_t seed, uint64_t step)
{
    /* splitmix64 (Steele, Lea and Flood, OOPSLA 2014), of the job's seed and the step. */
    uint64_t z = seed + (step + 1) * UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void describe_task(const struct rm_job *job, struct rm_task *task)
{
    const struct program_task_packet *is = &job->task;
    *task = (struct rm_task){.kind = is->kind,
                             .lane = is->lane,
                             .pass = is->pass,
                             .lanes = job->welcome.lanes,
                             .step = is->step,
                             .steps = job->welcome.steps,
                             .seed = is->seed,
                             .loss = is->loss,
                             .why = is->why};
    if (is->kind == PROGRAM_UPDATE)
        task->seed = mixed(job->welcome.seed, (uint64_t)is->step);
    if (is->kind == PROGRAM_LANE) {
        task->samples = (const int64_t *)(job->memory + job->welcome.samples_at[is->area]);
        task->count = job->welcome.sequences;
    }
}

/* A task that came: whether it can be, and what has to be there before the program sees it. */
static int take_task(struct rm_job *job, const struct program_task_packet *task)
{
    if (task->kind == PROGRAM_END) {
        job_keep_end(job, task);
        return 0;
    }
    if (task->kind < PROGRAM_LANE || task->kind > PROGRAM_AGAIN || task->area >= PROGRAM_AREAS ||
        (task->kind == PROGRAM_LANE && task->lane >= job->welcome.lanes)) {
        job->over = true;
        return job_refuse(job, "the trainer asks for what does not exist (task %u, lane %u, area %u)",
                          task->kind, task->lane, task->area);
    }
    job->task = *task;
    job->task.why[0] = 0;
    job->added = false;
    job->loss = 0;
    if (task->kind == PROGRAM_LANE)
        memset(job->memory + job->welcome.area_at[task->area], 0, (size_t)job->elements * sizeof(float));
    if (task->kind == PROGRAM_SAVE)
        image_begin(&job->image);
    struct image_why why;
    if (task->kind == PROGRAM_LOAD &&
        image_check(&job->image, job->memory + job->welcome.image_at, &why) < 0) {
        rm_fail(job, why.text);
        return -1;
    }
    return 0;
}

static int interrupted(struct rm_task *task)
{
    *task = (struct rm_task){.kind = RM_AGAIN, .why = ""};
    return 0;
}

int rm_next(struct rm_job *job, struct rm_task *task)
{
    *task = (struct rm_task){.why = ""};
    if (job->ended) {
        describe_task(job, task);
        return 0;
    }
    if (job_check(job) < 0)
        return -1;
    if (!job->memory) {
        int result = begin_job(job);
        if (result == INTERRUPTED)
            return interrupted(task);
        if (result < 0)
            return -1;
        if (job->ended)
            return rm_next(job, task);
    }
    if (!job->asked) {
        struct program_next next = {.word = PROGRAM_NEXT, .loss = job->loss};
        if (finish_task(job) < 0)
            return -1;
        if (socket_send(job->fd, &next, sizeof next) < 0)
            return job_ended(job) ? rm_next(job, task) : job_lost(job, "asking what is next");
        job->asked = true;
        job->task.kind = 0;
    }
    union answer answer;
    int passed, result = receive_answer(job, &answer, &passed);
    if (result == INTERRUPTED)
        return interrupted(task);
    if (result < 0)
        return -1;
    if (passed >= 0)
        close(passed);
    job->asked = false;
    if (answer.word != PROGRAM_TASK) {
        job->over = true;
        return job_refuse(job, "the trainer said welcome twice");
    }
    if (take_task(job, &answer.task) < 0)
        return -1;
    describe_task(job, task);
    return 0;
}

float *rm_gradients(struct rm_job *job)
{
    if (!job->memory || (job->task.kind != PROGRAM_LANE && job->task.kind != PROGRAM_UPDATE))
        return NULL;
    return (float *)(job->memory + job->welcome.area_at[job->task.area]);
}

int rm_add(struct rm_job *job, double loss)
{
    if (job_check(job) < 0)
        return -1;
    if (job->task.kind != PROGRAM_LANE || job->added)
        return job_refuse(job, "there is no lane to add: rm_add belongs once to each RM_LANE");
    job->added = true;
    job->loss = loss;
    return 0;
}

int rm_fail(struct rm_job *job, const char *why)
{
    if (job_check(job) < 0)
        return -1;
    struct program_next next = {.word = PROGRAM_NEXT, .failed = 1};
    size_t length = why ? strlen(why) : 0;
    if (length >= sizeof next.why)
        length = sizeof next.why - 1;
    memcpy(next.why, why ? why : "", length);
    for (char *at = next.why; *at; at++)
        if (*at == '\n' || *at == '\r')
            *at = ' ';
    job->over = true;
    if (job->memory && !job->asked && socket_send(job->fd, &next, sizeof next) < 0)
        return job_lost(job, "saying what failed");
    job_refuse(job, "%s", next.why);
    return 0;
}

int rm_report(struct rm_job *job, const char *key, double value)
{
    if (job_check(job) < 0)
        return -1;
    if (!key || !key[0] || strlen(key) >= PROGRAM_NAME_MAX)
        return job_refuse(job, "a report's key has 1 to %d bytes", PROGRAM_NAME_MAX - 1);
    if (!job->memory)
        return job_refuse(job, "%s: nothing can be reported before the first rm_next", key);
    struct program_report report = {.word = PROGRAM_REPORT, .value = value};
    memcpy(report.key, key, strlen(key));
    if (socket_send(job->fd, &report, sizeof report) < 0)
        return job_lost(job, "reporting");
    return 0;
}
