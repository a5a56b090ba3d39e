#include "agent/program/worker_trainer.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/os/file.h"

struct desk {
    struct loop *loop;
    struct worker_trainer *trainer;
    int heard, ends, code, state_fd, snapshot_fd;
    int64_t last_counter;
    char how[96];
    bool kill_when_heard, start_again;
};

static void heard(void *ctx, const struct message *message)
{
    struct desk *d = ctx;
    cr_assert_eq(d->ends, 0, "a message after the end");
    cr_assert_eq(message->type, MSG_HEARTBEAT);
    d->last_counter = message->heartbeat.counter;
    d->heard++;
    if (d->kill_when_heard)
        worker_trainer_kill(d->trainer);
}

static void ended(void *ctx, int code, const char *how)
{
    struct desk *d = ctx;
    struct error err;
    d->ends++;
    d->code = code;
    text_copy(d->how, sizeof d->how, how);
    cr_assert_not(worker_trainer_up(d->trainer));
    if (d->start_again) {
        d->start_again = false;
        d->ends = 0;
        cr_assert_eq(worker_trainer_start(d->trainer, &err), 0, "%s", err.text);
        return;
    }
    loop_stop(d->loop);
}

static void desk_open(struct desk *d, const char *manners)
{
    struct error err;
    char path[RM_URI_MAX];
    *d = (struct desk){0};
    cr_assert_eq(file_sibling("fake_trainer", path, sizeof path, &err), 0);
    setenv("RINGMASTER_TRAINER", path, 1);
    setenv("FAKE_TRAINER", manners, 1);
    cr_assert_eq(loop_open(&d->loop, &err), 0);
    cr_assert_eq(file_memory(&d->state_fd, "state", 0, &err), 0);
    cr_assert_eq(file_memory(&d->snapshot_fd, "snapshot", 4096, &err), 0);
    struct worker_trainer_options options = {
        .state_fd = d->state_fd, .snapshot_fd = d->snapshot_fd, .message = heard, .ended = ended, .ctx = d};
    cr_assert_eq(worker_trainer_open(&d->trainer, d->loop, &options, &err), 0, "%s", err.text);
    cr_assert_eq(worker_trainer_start(d->trainer, &err), 0, "%s", err.text);
}

static void desk_close(struct desk *d)
{
    worker_trainer_free(d->trainer);
    loop_free(d->loop);
    close(d->state_fd);
    close(d->snapshot_fd);
}

Test(worker_trainer, all_that_it_said_is_heard_before_its_end)
{
    struct desk d;
    desk_open(&d, "speaks and exits");
    loop_run(d.loop);
    cr_assert_eq(d.heard, 200);
    cr_assert_eq(d.last_counter, 200);
    cr_assert_eq(d.code, 3);
    cr_assert_str_eq(d.how, "exited with code 3");
    desk_close(&d);
}

Test(worker_trainer, a_killed_one_is_named_by_its_signal)
{
    struct desk d;
    desk_open(&d, "listens");
    d.kill_when_heard = true;
    loop_run(d.loop);
    cr_assert_eq(d.code, -1);
    cr_assert_str_eq(d.how, "killed by signal 9");
    desk_close(&d);
}

Test(worker_trainer, one_that_closes_its_link_is_ended)
{
    struct desk d;
    desk_open(&d, "closes the link and stays");
    loop_run(d.loop);
    cr_assert_eq(d.ends, 1);
    cr_assert_eq(d.code, -1);
    desk_close(&d);
}

Test(worker_trainer, one_that_speaks_garbage_is_ended)
{
    struct desk d;
    desk_open(&d, "speaks garbage");
    loop_run(d.loop);
    cr_assert_eq(d.ends, 1);
    cr_assert_eq(d.heard, 0);
    desk_close(&d);
}

Test(worker_trainer, another_one_starts_on_the_same_memory)
{
    struct desk d;
    desk_open(&d, "speaks and exits");
    d.start_again = true;
    loop_run(d.loop);
    cr_assert_eq(d.heard, 400);
    desk_close(&d);
}

Test(worker_trainer, a_second_one_at_once_is_refused)
{
    struct desk d;
    struct error err;
    desk_open(&d, "listens");
    cr_assert_eq(worker_trainer_start(d.trainer, &err), -1);
    cr_assert(strstr(err.text, "up already"), "%s", err.text);
    desk_close(&d);
}

Test(worker_trainer, a_program_that_is_not_there_is_named)
{
    struct worker_trainer *trainer;
    struct worker_trainer_options options = {0};
    struct error err;
    setenv("RINGMASTER_TRAINER", "/nonexistent/trainer", 1);
    cr_assert_eq(worker_trainer_open(&trainer, NULL, &options, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "/nonexistent/trainer"), "%s", err.text);
}
