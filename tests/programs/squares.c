/* A program of mode Elastic in C alone, without a library: least squares by gradients with momentum, on data
 * that it makes up from a sample's index. It says on standard error who it is, and at the end what it did.
 *
 *     squares [--pause-us N]      in each lane, so that there is something to interrupt
 *             [--weights N]       what the first weights are made of; the same in all workers
 *             [--fail-at STEP]    ends with 3 in that step's first lane, and says why; with --once FILE only
 *                                 where that file is not there, which it makes
 *             [--differ-at STEP]  its weights change by one bit behind that step: with --once FILE only where
 *                                 that file is not there, which it makes
 *             [--wrong-at STEP]   what it computes in the second pass of that step is wrong by one bit (of
 * step 1 that is the first whose scale fits); --once FILE as above
 *             [--wrong-from STEP] likewise, all from that step on
 *             [--undetermined]    does not say that a lane computed twice has the same bits
 *             [--samples N] [--sleepy] [--tensors N] [--after MS] [--save-ms N]
 *
 * --save-ms: so long takes each image of its state. --sleepy: never connects. --tensors: so many gradients of
 * one element beside. --after: goes on for a while when the job is done. */
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/program/packets.h"

enum { INPUTS = 1000, HEADER = 512 };

/* All that decides what comes next, behind the image's header. */
struct state {
    float weight[INPUTS + 1], momentum[INPUTS + 1];
    int64_t step;
};

static int fd, tensors;
static char *memory;
static struct program_welcome at;
static struct state state;
static long updates, loads, saves, lanes;

static void die(const char *why)
{
    fprintf(stderr, "squares: %s\n", why);
    exit(1);
}

static const char *option(int argc, char **argv, const char *name, const char *fallback)
{
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], name))
            return i + 1 < argc ? argv[i + 1] : "";
    return fallback;
}

static long long number(int argc, char **argv, const char *name, const char *fallback)
{
    return strtoll(option(argc, argv, name, fallback), NULL, 10);
}

static void wait_us(long us)
{
    struct timespec time = {us / 1000000, us % 1000000 * 1000};
    ppoll(NULL, 0, &time, NULL);
}

static void say(const void *packet, size_t size)
{
    if (send(fd, packet, size, MSG_NOSIGNAL) != (ssize_t)size)
        die("the trainer is gone");
}

static void tell_gradient(const char *name, int64_t count)
{
    struct program_gradient g = {.word = PROGRAM_GRADIENT, .count = count};
    snprintf(g.name, sizeof g.name, "%s", name);
    say(&g, sizeof g);
    tensors++;
}

static void hear_welcome(void)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control;
    union {
        struct program_welcome welcome;
        struct program_task_packet task;
    } answer;
    struct iovec bytes = {&answer, sizeof answer};
    struct msghdr message = {.msg_iov = &bytes,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    ssize_t n = recvmsg(fd, &message, 0);
    if (n == (ssize_t)sizeof answer.task && answer.task.kind == PROGRAM_END)
        die(answer.task.why);
    if (n != (ssize_t)sizeof answer.welcome || !CMSG_FIRSTHDR(&message))
        die("no welcome");
    int shared;
    memcpy(&shared, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof shared);
    at = answer.welcome;
    memory = mmap(NULL, (size_t)at.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
    if (memory == MAP_FAILED)
        die("no memory");
    close(shared);
}

static void join(int argc, char **argv)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("RINGMASTER_SOCKET");
    if (!path)
        die("RINGMASTER_SOCKET is not set: run it with `ringmaster run`");
    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0)
        die("nobody listens");
    struct program_hello hello = {.word = PROGRAM_HELLO,
                                  .abi = PROGRAM_ABI,
                                  .samples = number(argc, argv, "--samples", "1000"),
                                  .determinate = !option(argc, argv, "--undetermined", NULL),
                                  .pid = (uint32_t)getpid(),
                                  .arithmetic = "squares in C"};
    say(&hello, sizeof hello);
    tell_gradient("weight", INPUTS);
    tell_gradient("bias", 1);
    int more = (int)number(argc, argv, "--tensors", "0");
    for (int i = 0; i < more; i++) {
        char name[32];
        snprintf(name, sizeof name, "more.%d", i);
        tell_gradient(name, 1);
    }
    struct program_ready ready = {
        .word = PROGRAM_READY, .gradients = (uint32_t)tensors, .image_bytes = HEADER + sizeof state};
    say(&ready, sizeof ready);
    hear_welcome();
}

/* ---- numbers ---- */

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 33) * 0xff51afd7ed558ccdu;
    x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
    return x ^ x >> 33;
}

/* -1 to 1. */
static float noise(uint64_t seed, uint64_t i)
{
    return (float)((double)(mix(seed * 0x9e3779b97f4a7c15u + i) >> 11) * 0x1p-52 - 1);
}

static double lane(const struct program_task_packet *task)
{
    const int64_t *sample = (const int64_t *)(void *)(memory + at.samples_at[task->area]);
    float *gradient = (float *)(void *)(memory + at.area_at[task->area]);
    double sum = 0;
    memset(gradient, 0, (size_t)(INPUTS + 1 + tensors - 2) * sizeof *gradient);
    for (uint32_t s = 0; s < at.sequences; s++) {
        uint64_t which = (uint64_t)sample[s] + 1;
        float wanted = noise(7, which), found = state.weight[INPUTS];
        for (int i = 0; i < INPUTS; i++)
            found += state.weight[i] * noise(which, (uint64_t)i);
        float error = found - wanted + 0.01f * noise(task->seed, s);
        sum += (double)error * (double)error;
        for (int i = 0; i < INPUTS; i++)
            gradient[i] += 2 * error * noise(which, (uint64_t)i) / (float)at.sequences;
        gradient[INPUTS] += 2 * error / (float)at.sequences;
    }
    lanes++;
    return sum / at.sequences;
}

static void update(const struct program_task_packet *task)
{
    const float *mean = (const float *)(void *)(memory + at.area_at[task->area]);
    if (task->step != state.step + 1)
        die("an update that does not lead on");
    for (int i = 0; i <= INPUTS; i++) {
        state.momentum[i] = 0.9f * state.momentum[i] + mean[i];
        state.weight[i] -= 1e-5f * state.momentum[i];
    }
    state.step = task->step;
    updates++;
}

/* ---- the image ---- */

static void save(void)
{
    char *image = memory + at.image_at;
    size_t weights = sizeof state.weight, both = 2 * weights;
    uint64_t length = HEADER - 8;
    char header[HEADER - 7];
    int n = snprintf(header, sizeof header,
                     "{\"model.weight\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[0,%zu]},"
                     "\"optimizer.momentum\":{\"dtype\":\"F32\",\"shape\":[%d],\"data_offsets\":[%zu,%zu]},"
                     "\"step\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[%zu,%zu]}}",
                     INPUTS + 1, weights, INPUTS + 1, weights, both, both, sizeof state);
    memset(header + n, ' ', sizeof header - (size_t)n);
    memcpy(image, &length, 8);
    memcpy(image + 8, header, HEADER - 8);
    memcpy(image + HEADER, &state, sizeof state);
    saves++;
}

static void load(const struct program_task_packet *task)
{
    memcpy(&state, memory + at.image_at + HEADER, sizeof state);
    if (state.step != task->step)
        die("the image is of another step");
    loads++;
}

/* Is this the step, and where only one worker is asked for: the one? */
static bool is_due(int argc, char **argv, const char *what, int64_t step)
{
    const char *at_step = option(argc, argv, what, NULL), *once = option(argc, argv, "--once", NULL);
    if (!at_step || strtoll(at_step, NULL, 10) != step)
        return false;
    return !once || open(once, O_CREAT | O_EXCL | O_WRONLY, 0600) >= 0;
}

static void maybe_fail(int argc, char **argv, int64_t step)
{
    if (!is_due(argc, argv, "--fail-at", step))
        return;
    fprintf(stderr, "squares: the numbers ran out\n");
    exit(3);
}

/* As a processor would that rounds otherwise. */
static void maybe_differ(int argc, char **argv, int64_t step)
{
    uint32_t bits;
    if (!is_due(argc, argv, "--differ-at", step))
        return;
    memcpy(&bits, state.weight, sizeof bits);
    bits ^= 1;
    memcpy(state.weight, &bits, sizeof bits);
    fprintf(stderr, "squares: differ pid=%d\n", (int)getpid());
}

/* As a processor would that is broken. */
static void maybe_wrong(int argc, char **argv, const struct program_task_packet *task)
{
    static bool wrong, once;
    uint32_t *gradient = (uint32_t *)(void *)(memory + at.area_at[task->area]);
    bool second = task->pass == 1;
    once = once || (second && is_due(argc, argv, "--wrong-at", task->step));
    wrong = wrong || is_due(argc, argv, "--wrong-from", task->step);
    if (!wrong && !(once && second && task->step == number(argc, argv, "--wrong-at", "0")))
        return;
    gradient[0] ^= 1u << 20;
    fprintf(stderr, "squares: wrong pid=%d step=%lld lane=%u\n", (int)getpid(), (long long)task->step,
            task->lane);
}

/* As of a sequence that has nothing to learn: 0 / 0. */
static void maybe_nan(int argc, char **argv, const struct program_task_packet *task)
{
    static const uint32_t nan_bits = 0x7fc00000;
    if (task->lane == 0 && is_due(argc, argv, "--nan-at", task->step))
        memcpy(memory + at.area_at[task->area], &nan_bits, sizeof nan_bits);
}

static void run(int argc, char **argv)
{
    long pause = (long)number(argc, argv, "--pause-us", "0"),
         dear = (long)number(argc, argv, "--save-ms", "0");
    struct program_next next = {.word = PROGRAM_NEXT};
    struct program_task_packet task;
    for (;;) {
        say(&next, sizeof next);
        if (recv(fd, &task, sizeof task, 0) != (ssize_t)sizeof task)
            die("the trainer is gone");
        next.loss = 0;
        if (task.kind == PROGRAM_LANE) {
            maybe_fail(argc, argv, task.step);
            wait_us(pause);
            next.loss = lane(&task);
            maybe_wrong(argc, argv, &task);
            maybe_nan(argc, argv, &task);
        } else if (task.kind == PROGRAM_UPDATE) {
            update(&task);
            maybe_differ(argc, argv, task.step);
        } else if (task.kind == PROGRAM_SAVE) {
            wait_us(1000 * dear);
            save();
        } else if (task.kind == PROGRAM_LOAD) {
            load(&task);
        } else if (task.kind == PROGRAM_END) {
            fprintf(stderr, "squares: end pid=%d step=%lld updates=%ld loads=%ld saves=%ld why=\"%s\"\n",
                    (int)getpid(), (long long)state.step, updates, loads, saves, task.why);
            return;
        }
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[argc - 1], "--sleepy"))
        for (;;)
            pause();
    uint64_t seed = (uint64_t)number(argc, argv, "--weights", "1");
    for (int i = 0; i <= INPUTS; i++)
        state.weight[i] = 0.1f * noise(seed, (uint64_t)i);
    fprintf(stderr, "squares: begin pid=%d\n", (int)getpid());
    join(argc, argv);
    run(argc, argv);
    wait_us(1000 * number(argc, argv, "--after", "0"));
    fprintf(stderr, "squares: over\n");
    return 0;
}
