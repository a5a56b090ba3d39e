/* The library against a trainer that is a child of the test, which answers as it is told; what goes well is
 * told by the programs of tests/e2e/library_test.py. */
#include "common/program/packets.h"
#include "trainer/library/ringmaster.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MEMORY = 1 << 16,
    BEFORE = 1,
    NO_MEMORY,
    SHORT_MEMORY,
    PLACES,
    LANES,
    LANGUAGE,
    ODD_TASK,
    WELCOMES,
    MUTE
};

static char folder[] = "/tmp/library-test-XXXXXX", path[64];
static pid_t trainer;

static struct rm_options options(void)
{
    return (struct rm_options){.abi = RM_ABI, .samples = 10, .arithmetic = "a test"};
}

static int listening(void)
{
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    cr_assert_eq(listen(fd, 1), 0);
    setenv("RINGMASTER_SOCKET", path, 1);
    return fd;
}

static void welcome(int fd, int how)
{
    struct program_welcome packet = {.word = PROGRAM_WELCOME,
                                     .lanes = how == LANES ? 0 : 2,
                                     .sequences = 4,
                                     .steps = 5,
                                     .bytes = MEMORY,
                                     .area_at = {0, 4096},
                                     .samples_at = {8192, 12288},
                                     .image_at = how == PLACES ? MEMORY - 8 : 16384};
    int memory = memfd_create("test", 0);
    if (ftruncate(memory, how == SHORT_MEMORY ? MEMORY / 2 : MEMORY) != 0)
        _exit(1);
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec part = {&packet, sizeof packet};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (how != NO_MEMORY) {
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &memory, sizeof(int));
    }
    sendmsg(fd, &message, 0);
    close(memory);
}

static uint32_t heard(int fd)
{
    union {
        uint32_t word;
        struct program_hello hello;
    } packet;
    return recv(fd, &packet, sizeof packet, 0) > 0 ? packet.word : 0;
}

static void say(int fd, struct program_task_packet task)
{
    task.word = PROGRAM_TASK;
    send(fd, &task, sizeof task, 0);
}

/* A child that hears until READY and then misbehaves in this way. */
static void trainer_that(int how)
{
    int door = listening();
    trainer = fork();
    if (trainer)
        return;
    int fd = accept(door, NULL, NULL);
    for (uint32_t word = heard(fd); word != PROGRAM_READY && word; word = heard(fd)) {
    }
    if (how == BEFORE)
        say(fd, (struct program_task_packet){.kind = PROGRAM_LANE});
    else if (how == LANGUAGE)
        send(fd, "what?", 5, 0);
    else
        welcome(fd, how);
    heard(fd);
    if (how == ODD_TASK)
        say(fd, (struct program_task_packet){.kind = PROGRAM_LANE, .lane = 2});
    if (how == WELCOMES)
        welcome(fd, how);
    while (heard(fd)) {
    }
    _exit(0);
}

static void clean(void)
{
    if (trainer > 0) {
        kill(trainer, SIGKILL);
        waitpid(trainer, NULL, 0);
    }
    unlink(path);
    rmdir(folder);
}

static struct rm_job *connected(void)
{
    struct rm_options o = options();
    struct rm_job *job = rm_connect(&o);
    cr_assert(job, "%s", rm_why(NULL));
    cr_assert_eq(rm_gradient(job, "w", 4), 0);
    cr_assert_eq(rm_put(job, "model.w", RM_F32, 1, (int64_t[]){4}, NULL), 0);
    return job;
}

/* As a program asks: until something came. */
static int next_task(struct rm_job *job, struct rm_task *task)
{
    int result;
    do
        result = rm_next(job, task);
    while (result == 0 && task->kind == RM_AGAIN);
    return result;
}

static void check_refused(int how, const char *sentence)
{
    trainer_that(how);
    struct rm_job *job = connected();
    struct rm_task task;
    cr_assert_eq(next_task(job, &task), -1);
    cr_assert(strstr(rm_why(job), sentence), "%s", rm_why(job));
    cr_assert_eq(next_task(job, &task), -1);
    cr_assert(strstr(rm_why(job), sentence), "it says something else now: %s", rm_why(job));
    rm_close(job);
}

/* Its handler would run between two calls, so that none may wait for ever. */
Test(library, comes_back_from_a_mute_trainer_so_that_a_signal_that_came_before_is_looked_at, .timeout = 60,
     .fini = clean)
{
    struct rm_task task = {.kind = RM_END};
    trainer_that(MUTE);
    struct rm_job *job = connected();
    cr_assert_eq(rm_next(job, &task), 0);
    cr_assert_eq(task.kind, RM_AGAIN);
    rm_close(job);
}

Test(library, says_that_there_is_no_agent)
{
    struct rm_options o = options();
    unsetenv("RINGMASTER_SOCKET");
    cr_assert_null(rm_connect(&o));
    cr_assert_str_eq(rm_why(NULL), "there is no agent: run it with `ringmaster run FILE`");
}

Test(library, refuses_a_program_of_another_header)
{
    struct rm_options o = options();
    o.abi = 7;
    cr_assert_null(rm_connect(&o));
    cr_assert_str_eq(
        rm_why(NULL),
        "the program was built with ringmaster.h of ABI 7, and libringmaster.so has ABI 1: build it anew");
}

Test(library, refuses_empty_options)
{
    struct rm_options o = options();
    o.samples = 0;
    cr_assert_null(rm_connect(&o));
    cr_assert_str_eq(rm_why(NULL), "the data set has 0 samples: tell how many there are");
    o = options();
    o.arithmetic = NULL;
    cr_assert_null(rm_connect(&o));
    cr_assert(strstr(rm_why(NULL), "arithmetic"));
}

Test(library, says_what_is_wrong_with_the_socket)
{
    struct rm_options o = options();
    char text[200] = "/";
    memset(text + 1, 'x', 150);
    setenv("RINGMASTER_SOCKET", text, 1);
    cr_assert_null(rm_connect(&o));
    cr_assert(strstr(rm_why(NULL), "File name too long"), "%s", rm_why(NULL));
    setenv("RINGMASTER_SOCKET", "/no/such", 1);
    cr_assert_null(rm_connect(&o));
    cr_assert(strstr(rm_why(NULL), "no trainer listens there"), "%s", rm_why(NULL));
}

Test(library, names_the_mode_where_the_socket_is_another_kind, .fini = clean)
{
    struct rm_options o = options();
    cr_assert(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/socket", folder);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    memcpy(address.sun_path, path, strlen(path));
    int fd = socket(AF_UNIX, SOCK_DGRAM, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    setenv("RINGMASTER_SOCKET", path, 1);
    cr_assert_null(rm_connect(&o));
    cr_assert(strstr(rm_why(NULL), "write mode: Elastic"), "%s", rm_why(NULL));
}

Test(library, takes_1156_gradients_and_no_more, .fini = clean)
{
    trainer_that(0);
    struct rm_options o = options();
    struct rm_job *job = rm_connect(&o);
    char name[32];
    for (int i = 0; i < RM_GRADIENTS_MAX; i++) {
        snprintf(name, sizeof name, "w%d", i);
        cr_assert_eq(rm_gradient(job, name, 1), 0, "%s", rm_why(job));
    }
    cr_assert_eq(rm_gradient(job, "last", 1), -1);
    cr_assert_str_eq(rm_why(job),
                     "last is one gradient too many: 1156 are possible; join small tensors to one");
    rm_close(job);
}

Test(library, refuses_what_is_out_of_order, .fini = clean)
{
    trainer_that(0);
    struct rm_options o = options();
    struct rm_job *job = rm_connect(&o);
    struct rm_task task;
    struct rm_tensor tensor;
    cr_assert_eq(next_task(job, &task), -1);
    cr_assert(strstr(rm_why(job), "there is no gradient"));
    cr_assert_eq(rm_gradient(job, "", 1), -1);
    cr_assert_eq(rm_gradient(job, "w", 0), -1);
    cr_assert_eq(rm_report(job, "loss", 1), -1);
    cr_assert_eq(rm_add(job, 1), -1);
    cr_assert_eq(rm_find(job, "model.w", &tensor), -1);
    cr_assert_null(rm_gradients(job));
    cr_assert_eq(rm_gradient(job, "w", 4), 0);
    cr_assert_eq(next_task(job, &task), -1);
    cr_assert(strstr(rm_why(job), "the state has no tensor"));
    rm_close(job);
}

Test(library, refuses_a_task_before_the_welcome, .fini = clean)
{
    check_refused(BEFORE, "before it had said welcome");
}

Test(library, refuses_a_welcome_without_memory, .fini = clean)
{
    check_refused(NO_MEMORY, "its places are not in it");
}

Test(library, refuses_a_memory_that_is_shorter_than_told, .fini = clean)
{
    check_refused(SHORT_MEMORY, "its places are not in it");
}

Test(library, refuses_places_outside_of_the_memory, .fini = clean)
{
    check_refused(PLACES, "its places are not in it");
}

Test(library, refuses_a_job_without_lanes, .fini = clean)
{
    check_refused(LANES, "its places are not in it");
}

Test(library, refuses_another_language, .fini = clean)
{
    check_refused(LANGUAGE, "the trainer speaks another language");
}

Test(library, refuses_a_lane_that_no_step_has, .fini = clean)
{
    check_refused(ODD_TASK, "the trainer asks for what does not exist (task 1, lane 2, area 0)");
}

Test(library, refuses_a_second_welcome, .fini = clean)
{
    check_refused(WELCOMES, "the trainer said welcome twice");
}

Test(library, does_not_speak_for_a_forked_child, .fini = clean)
{
    trainer_that(0);
    struct rm_job *job = connected();
    pid_t child = fork();
    if (!child) {
        struct rm_task task;
        _exit(next_task(job, &task) == -1 && strstr(rm_why(job), "a forked child can't speak for it") ? 0
                                                                                                      : 1);
    }
    int status;
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert_eq(status, 0);
    rm_close(job);
}
