/* A program's side of the beginning: finds the trainer's socket, says what it has, gets the memory. */
#include "trainer/library/job.h"
#include "trainer/library/socket.h"

#include "common/base/limits.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

_Static_assert((int)RM_GRADIENTS_MAX == (int)RM_TENSORS_MAX, "the header says how many tensors there may be");
_Static_assert((int)RM_ABI == (int)PROGRAM_ABI, "the library speaks the trainer's language");
_Static_assert((int)RM_LANE == (int)PROGRAM_LANE && (int)RM_AGAIN == (int)PROGRAM_AGAIN,
               "tasks have one number");

/* Why the last rm_connect of this process failed: there is no job that could say it. */
static char failed_why[512];

static struct rm_job *failed(const char *format, ...) __attribute__((format(printf, 1, 2)));

static struct rm_job *failed(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(failed_why, sizeof failed_why, format, arguments);
    va_end(arguments);
    return NULL;
}

int job_refuse(struct rm_job *job, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(job->why, sizeof job->why, format, arguments);
    va_end(arguments);
    return -1;
}

int job_check(struct rm_job *job)
{
    if (getpid() != job->pid)
        return job_refuse(job, "the job belongs to process %d: a forked child can't speak for it", job->pid);
    return job->over ? -1 : 0;
}

bool job_ended(struct rm_job *job)
{
    union {
        struct program_task_packet task;
        struct program_welcome welcome;
    } packet;
    ssize_t got;
    while (!job->ended && (got = socket_receive(job->fd, &packet, sizeof packet, NULL, 0)) > 0)
        if (got == sizeof packet.task && packet.task.word == PROGRAM_TASK && packet.task.kind == PROGRAM_END)
            job_keep_end(job, &packet.task);
    return job->ended;
}

void job_keep_end(struct rm_job *job, const struct program_task_packet *task)
{
    job->task = *task;
    job->task.why[PROGRAM_TEXT_MAX - 1] = 0;
    job->over = job->ended = true;
}

int job_lost(struct rm_job *job, const char *doing)
{
    int reason = errno;
    job->over = true;
    if (job_ended(job) && job->task.why[0])
        return job_refuse(job, "%s", job->task.why);
    return job_refuse(job, "the trainer beside this program is gone (%s: %s)", doing,
                      reason ? strerror(reason) : "it has closed the connection");
}

static const char *connect_hint(int reason)
{
    switch (reason) {
    case EPROTOTYPE:
        return "; the job is of another mode: write mode: Elastic";
    case ENOENT:
    case ECONNREFUSED:
        return "; no trainer listens there: is this an old environment?";
    default:
        return "";
    }
}

static int check_options(const struct rm_options *options)
{
    if (!options || options->abi != RM_ABI) {
        failed("the program was built with ringmaster.h of ABI %u, and libringmaster.so has ABI %u: build it "
               "anew",
               options ? options->abi : 0, (unsigned)RM_ABI);
        return -1;
    }
    if (options->samples <= 0) {
        failed("the data set has %lld samples: tell how many there are", (long long)options->samples);
        return -1;
    }
    if (!options->arithmetic || !options->arithmetic[0] || strlen(options->arithmetic) >= PROGRAM_TEXT_MAX) {
        failed("arithmetic is a text of 1 to %d bytes that says what decides the bits", PROGRAM_TEXT_MAX - 1);
        return -1;
    }
    return 0;
}

struct rm_job *rm_connect(const struct rm_options *options)
{
    if (check_options(options) < 0)
        return NULL;
    const char *path = socket_path();
    if (!path || !path[0])
        return failed("there is no agent: run it with `ringmaster run FILE`");
    int fd = socket_connect(path);
    if (fd < 0)
        return failed("RINGMASTER_SOCKET %s: %s%s", path, strerror(errno), connect_hint(errno));
    struct rm_job *job = calloc(1, sizeof *job);
    if (!job) {
        close(fd);
        return failed("there is no memory for the job");
    }
    *job = (struct rm_job){.fd = fd, .pid = getpid()};
    struct program_hello hello = {.word = PROGRAM_HELLO,
                                  .abi = PROGRAM_ABI,
                                  .samples = options->samples,
                                  .determinate = options->deterministic ? 1 : 0,
                                  .pid = (uint32_t)job->pid};
    memcpy(hello.arithmetic, options->arithmetic, strlen(options->arithmetic));
    if (socket_send(fd, &hello, sizeof hello) < 0) {
        job_lost(job, "greeting it");
        failed("%s", job->why);
        rm_close(job);
        return NULL;
    }
    return job;
}

int rm_gradient(struct rm_job *job, const char *name, int64_t count)
{
    if (job_check(job) < 0)
        return -1;
    if (job->told)
        return job_refuse(job, "%s: gradients are told before the first rm_next", name);
    if (job->gradients == RM_GRADIENTS_MAX)
        return job_refuse(job, "%s is one gradient too many: %d are possible; join small tensors to one",
                          name, RM_GRADIENTS_MAX);
    if (!name || !name[0] || strlen(name) >= PROGRAM_NAME_MAX)
        return job_refuse(job, "a gradient's name has 1 to %d bytes", PROGRAM_NAME_MAX - 1);
    if (count <= 0 || count > INT64_MAX / 64 - job->elements)
        return job_refuse(job, "%s: a gradient can't have %lld elements", name, (long long)count);
    struct program_gradient packet = {.word = PROGRAM_GRADIENT, .count = count};
    memcpy(packet.name, name, strlen(name));
    if (socket_send(job->fd, &packet, sizeof packet) < 0)
        return job_lost(job, "telling it of the gradients");
    job->gradients++;
    job->elements += count;
    return 0;
}

const char *rm_why(const struct rm_job *job)
{
    return job ? job->why : failed_why;
}

void rm_close(struct rm_job *job)
{
    if (!job)
        return;
    if (job->memory)
        munmap(job->memory, (size_t)job->welcome.bytes);
    if (job->fd >= 0)
        close(job->fd);
    image_clear(&job->image);
    free(job);
}
