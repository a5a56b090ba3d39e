/* Speaks with a user's program over its socket: one packet at a time, handed out and waited for by any
 * thread. */
#include "trainer/backend/program/talk.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/log.h"
#include "trainer/backend/program/slack.h"

enum { POLL_MS = 50 }; /* between two looks at the wish to give up */

/* For the launcher to end this process, as its program has ended. */
static const rm_time launcher_acts_within = 5 * RM_S;
/* For a program that is at work to hear that its part is over: in a lane that takes longer it hears of it by
 * the connection's end. */
static const rm_time last_question_within = RM_S;

struct talk {
    int fd;                   /* -1: nobody there */
    bool asks;                /* it waits for a task */
    struct program_next said; /* with its newest question */
    atomic_llong *at_work;    /* see talk_options */
    struct slack slack;
    rm_time given;                    /* when it was given its newest task */
    uint32_t kind;                    /* which was this */
    int64_t step;                     /* of the newest that was a lane's or an update */
    char gone[PROGRAM_TEXT_MAX + 64]; /* why the conversation is over; "" while it is not */
};

union packet {
    uint32_t word;
    struct program_hello hello;
    struct program_gradient gradient;
    struct program_ready ready;
    struct program_next next;
    struct program_report report;
};

static size_t size_of(uint32_t word)
{
    switch (word) {
    case PROGRAM_HELLO:
        return sizeof(struct program_hello);
    case PROGRAM_GRADIENT:
        return sizeof(struct program_gradient);
    case PROGRAM_READY:
        return sizeof(struct program_ready);
    case PROGRAM_NEXT:
        return sizeof(struct program_next);
    case PROGRAM_REPORT:
        return sizeof(struct program_report);
    default:
        return 0;
    }
}

/* Texts come from outside: each ends with 0, and is one line. */
static void tidy(char *text, size_t size)
{
    text[size - 1] = 0;
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = ' ';
}

static int over(struct talk *t, struct error *err, const char *why)
{
    text_copy(t->gone, sizeof t->gone, why);
    return err_set(err, ERR_MACHINE, "%s", t->gone);
}

/* 1: a packet; 0: none yet. */
static int receive_packet(struct talk *t, union packet *p, struct error *err)
{
    ssize_t n = recv(t->fd, p, sizeof *p, MSG_DONTWAIT | MSG_TRUNC);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return 0;
    if (n <= 0)
        return over(t, err, "the program has closed its connection to Ringmaster");
    if (n < (ssize_t)sizeof p->word || !size_of(p->word) || n != (ssize_t)size_of(p->word))
        return over(t, err,
                    "the program speaks another language than this Ringmaster: its library is of another "
                    "release");
    if (p->word == PROGRAM_HELLO)
        tidy(p->hello.arithmetic, sizeof p->hello.arithmetic);
    else if (p->word == PROGRAM_GRADIENT)
        tidy(p->gradient.name, sizeof p->gradient.name);
    else if (p->word == PROGRAM_NEXT)
        tidy(p->next.why, sizeof p->next.why);
    else if (p->word == PROGRAM_REPORT)
        tidy(p->report.key, sizeof p->report.key);
    return 1;
}

static bool told_to_stop(const atomic_int *stop)
{
    return stop && atomic_load(stop);
}

static int given_up(struct error *err)
{
    return err_set(err, ERR_ABORTED, "given up while the program was waited for");
}

/* ---- the beginning ---- */

static int never_came(const struct talk_options *o, struct error *err)
{
    return err_set(err, ERR_USAGE,
                   "mode is Elastic, but the program did not call ringmaster.connect(); call it, or write "
                   "mode: Restart, or, if %lld s are too few to come to that, a longer startTimeout",
                   (long long)(o->patience / RM_S));
}

static int wait_readable(int fd, const struct talk_options *o, rm_time until, struct error *err)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        if (told_to_stop(o->stop))
            return given_up(err);
        if (poll(&p, 1, POLL_MS) > 0)
            return 0;
        if (clock_now() >= until)
            return never_came(o, err);
    }
}

/* Later ones find nobody: a worker has one program. */
static int take_caller(struct talk *t, const struct talk_options *o, rm_time until, struct error *err)
{
    while (t->fd < 0) {
        if (wait_readable(o->fd, o, until, err) < 0)
            return -1;
        t->fd = accept4(o->fd, NULL, NULL, SOCK_CLOEXEC);
        if (t->fd < 0 && errno != EINTR && errno != ECONNABORTED && errno != EAGAIN)
            return err_errno(err, ERR_MACHINE, "hear the program");
    }
    close(o->fd);
    return 0;
}

static int hear_packet(struct talk *t, union packet *p, const struct talk_options *o, rm_time until,
                       struct error *err)
{
    for (;;) {
        int got = receive_packet(t, p, err);
        if (got < 0 || (got > 0 && p->word != PROGRAM_REPORT))
            return got < 0 ? -1 : 0;
        if (got == 0 && wait_readable(t->fd, o, until, err) < 0)
            return -1;
    }
}

/* Of a name that is too long for the layout, the end says more than the beginning. */
static void name_tensor(struct model_tensor *tensor, const char *name)
{
    size_t length = strlen(name), room = sizeof tensor->name - 1;
    if (length <= room)
        text_copy(tensor->name, sizeof tensor->name, name);
    else
        snprintf(tensor->name, sizeof tensor->name, "..%s", name + length - (room - 2));
}

static int add_gradient(struct model_layout *layout, const struct program_gradient *g, struct error *err)
{
    enum { COUNT_MAX_BITS = 40 };
    if (layout->tensors == RM_TENSORS_MAX)
        return err_set(
            err, ERR_USAGE,
            "the program has more than %d tensors with gradients, which is all that can be summed; "
            "join small ones, or use mode: Restart",
            RM_TENSORS_MAX);
    if (g->count < 1 || g->count > (int64_t)1 << COUNT_MAX_BITS)
        return err_set(err, ERR_USAGE, "the program's gradient %.100s has %lld elements", g->name,
                       (long long)g->count);
    struct model_tensor *tensor = &layout->tensor[layout->tensors++];
    *tensor = (struct model_tensor){
        .first = layout->parameters, .count = g->count, .dims = 1, .size = {g->count, 1}};
    name_tensor(tensor, g->name);
    layout->parameters += g->count;
    return 0;
}

static int check_hello(const struct program_hello *hello, struct error *err)
{
    if (hello->abi != PROGRAM_ABI)
        return err_set(
            err, ERR_USAGE,
            "the program's library speaks version %u and this Ringmaster %d: they are of two releases",
            hello->abi, PROGRAM_ABI);
    if (hello->samples < 1)
        return err_set(err, ERR_USAGE, "the program has %lld samples; there must be one at least",
                       (long long)hello->samples);
    return 0;
}

static int check_ready(const struct program_ready *ready, const struct model_layout *layout,
                       struct error *err)
{
    if (!layout->tensors || ready->gradients != (uint32_t)layout->tensors)
        return err_set(err, ERR_USAGE, "the program told %d of its %u gradients; there must be one at least",
                       layout->tensors, ready->gradients);
    if (ready->image_bytes < 8 || ready->image_bytes % 4)
        return err_set(err, ERR_USAGE,
                       "the program's state takes %lld bytes, which is no image of it (a multiple of 4)",
                       (long long)ready->image_bytes);
    return 0;
}

/* Who is refused says all that it has to say first: an answer that comes while it still sends would be lost.
 */
static int hear_the_rest(struct talk *t, const struct talk_options *o, rm_time until)
{
    union packet p;
    struct error ignored;
    do
        if (hear_packet(t, &p, o, until, &ignored) < 0)
            return -1;
    while (p.word != PROGRAM_READY);
    return -1;
}

/* From HELLO to READY. */
static int hear_out(struct talk *t, const struct talk_options *o, rm_time until, struct model_layout *layout,
                    struct talk_program *program, struct error *err)
{
    union packet p;
    struct sha256 *hash;
    if (hear_packet(t, &p, o, until, err) < 0)
        return -1;
    if (p.word != PROGRAM_HELLO)
        return over(t, err, "the program does not begin with hello");
    program->hello = p.hello;
    if (check_hello(&p.hello, err) < 0)
        return hear_the_rest(t, o, until);
    hash = sha256_open();
    int result;
    while ((result = hear_packet(t, &p, o, until, err)) == 0 && p.word == PROGRAM_GRADIENT &&
           (result = add_gradient(layout, &p.gradient, err)) == 0) {
        sha256_add(hash, p.gradient.name, strlen(p.gradient.name) + 1);
        sha256_add(hash, &p.gradient.count, sizeof p.gradient.count);
    }
    sha256_finish(hash, program->gradients_sha256);
    if (result < 0)
        return hear_the_rest(t, o, until);
    if (p.word != PROGRAM_READY)
        return over(t, err, "the program asks before it has said what it has");
    program->image_bytes = p.ready.image_bytes;
    return check_ready(&p.ready, layout, err);
}

/* It has ended, or is about to: its launcher says more of it than could be said here. */
static int wait_for_launcher(struct talk *t, const atomic_int *stop, struct error *err)
{
    rm_time until = clock_now() + launcher_acts_within;
    while (clock_now() < until && !told_to_stop(stop))
        poll(NULL, 0, POLL_MS);
    return told_to_stop(stop) ? given_up(err) : err_set(err, ERR_MACHINE, "%s", t->gone);
}

int talk_open(struct talk **ret, const struct talk_options *o, struct model_layout *layout,
              struct talk_program *program, struct error *err)
{
    struct talk *t = calloc(1, sizeof *t);
    rm_time until = clock_now() + o->patience;
    if (!t)
        return err_set(err, ERR_MACHINE, "no memory to talk with the program");
    t->fd = -1;
    t->at_work = o->at_work;
    memset(layout, 0, sizeof *layout);
    *program = (struct talk_program){0};
    if (take_caller(t, o, until, err) < 0 || hear_out(t, o, until, layout, program, err) < 0) {
        if (*t->gone)
            wait_for_launcher(t, o->stop, err);
        t->asks = true; /* it waits for an answer to READY */
        talk_free(t, err->text);
        return -1;
    }
    *ret = t;
    return 0;
}

/* ---- packets out ---- */

static int send_packet(struct talk *t, const void *packet, size_t size, int memory, struct error *err)
{
    union {
        struct cmsghdr header;
        char room[CMSG_SPACE(sizeof(int))];
    } control = {{0}};
    struct iovec bytes = {(void *)(uintptr_t)packet, size};
    struct msghdr message = {.msg_iov = &bytes, .msg_iovlen = 1};
    if (memory >= 0) {
        message.msg_control = control.room;
        message.msg_controllen = sizeof control.room;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &memory, sizeof memory);
    }
    if (sendmsg(t->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size)
        return 0;
    return over(t, err, "the program takes no more tasks");
}

int talk_welcome(struct talk *t, const struct program_welcome *welcome, int memory, struct error *err)
{
    struct program_welcome said = *welcome;
    said.word = PROGRAM_WELCOME;
    return send_packet(t, &said, sizeof said, memory, err);
}

/* What is said behind an update is of its step. */
static void show_report(const struct talk *t, const struct program_report *r)
{
    log_info("the program reports", "step=%lld name=\"%s\" value=%.9g", (long long)t->step, r->key, r->value);
}

/* 1: it asks; 0: nothing came that matters. */
static int hear_more(struct talk *t, struct error *err)
{
    union packet p;
    int got = receive_packet(t, &p, err);
    if (got > 0 && p.word == PROGRAM_REPORT) {
        show_report(t, &p.report);
        return 0;
    }
    if (got <= 0)
        return got;
    if (p.word != PROGRAM_NEXT || t->asks)
        return over(t, err, "the program says what was not asked for");
    t->asks = true;
    t->said = p.next;
    slack_task_took(&t->slack, t->kind == PROGRAM_UPDATE, t->given ? clock_now() - t->given : 0);
    if (!p.next.failed)
        return 1;
    char why[PROGRAM_TEXT_MAX + 32];
    snprintf(why, sizeof why, "the program failed: %s", p.next.why);
    return over(t, err, why);
}

/* It is not to find the connection closed when it asks, or it would look for no answer. */
static void let_it_ask(struct talk *t)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    struct error ignored;
    for (rm_time until = clock_now() + last_question_within; !t->asks && !*t->gone && clock_now() < until;)
        if (hear_more(t, &ignored) == 0)
            poll(&p, 1, POLL_MS);
}

void talk_free(struct talk *t, const char *why)
{
    if (!t)
        return;
    if (t->fd >= 0 && !*t->gone)
        let_it_ask(t);
    if (t->fd >= 0 && !*t->gone) {
        struct program_task_packet end = {.word = PROGRAM_TASK, .kind = PROGRAM_END};
        struct error ignored;
        text_copy(end.why, sizeof end.why, why);
        send_packet(t, &end, sizeof end, -1, &ignored);
    }
    if (t->fd >= 0)
        close(t->fd);
    free(t);
}

/* ---- tasks ---- */

static void give_task(struct talk *t, uint32_t kind)
{
    t->asks = false;
    t->kind = kind;
    t->given = clock_now();
}

static void show_that_it_works(struct talk *t)
{
    if (t->at_work && clock_now() - t->given < slack_of(&t->slack))
        atomic_fetch_add(t->at_work, 1);
}

int talk_settle(struct talk *t, const atomic_int *stop, double *ret_loss, struct error *err)
{
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    while (!t->asks && !*t->gone) {
        if (hear_more(t, err) != 0)
            break;
        if (told_to_stop(stop))
            return given_up(err);
        show_that_it_works(t);
        poll(&p, 1, POLL_MS);
    }
    if (*t->gone)
        return wait_for_launcher(t, stop, err);
    if (ret_loss)
        *ret_loss = t->said.loss;
    return 0;
}

int talk_task(struct talk *t, const struct program_task_packet *task, const atomic_int *stop,
              struct error *err)
{
    struct program_task_packet said = *task;
    said.word = PROGRAM_TASK;
    if (talk_settle(t, stop, NULL, err) < 0)
        return -1;
    give_task(t, task->kind);
    if (task->kind == PROGRAM_LANE || task->kind == PROGRAM_UPDATE)
        t->step = task->step;
    if (send_packet(t, &said, sizeof said, -1, err) < 0)
        return wait_for_launcher(t, stop, err);
    return 0;
}

void talk_idle(struct talk *t)
{
    const struct program_task_packet again = {.word = PROGRAM_TASK, .kind = PROGRAM_AGAIN};
    struct error ignored;
    if (*t->gone || (!t->asks && hear_more(t, &ignored) <= 0))
        return;
    give_task(t, PROGRAM_AGAIN);
    send_packet(t, &again, sizeof again, -1, &ignored);
}
