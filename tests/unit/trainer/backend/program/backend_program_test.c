/* Who computes is a program: here a thread at the other end of the socket, which notes what it is asked for.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/crypto.h"
#include "common/os/file.h"
#include "common/program/packets.h"
#include "trainer/backend/program/backend_program.h"
#include "trainer/core/cursor.h"
#include "trainer/exact/header.h"
#include "trainer/state/state.h"

enum { LANES = 4, SEQUENCES = 2, BIG = 5000, SMALL = 3, ELEMENTS = BIG + SMALL, IMAGE = 64, SAMPLES = 11 };

/* What the thread says and does. */
struct script {
    uint32_t abi;
    int64_t samples, image;
    int gradients;    /* of one element each; 0: the two of this test */
    bool silent;      /* connects, and says no more */
    int64_t fails_at; /* lane's step; 0: never */
    bool waits;       /* in each lane for what shows that it is given time */
};

struct program {
    struct script script;
    char path[108];
    pthread_t thread;
    int listener;
    int fd;
    char *map;
    struct program_welcome at;
    /* What it was asked for, in words; read when the backend is idle or gone. */
    char asked[4096];
    char refused[PROGRAM_TEXT_MAX];
    float mean[ELEMENTS]; /* of the newest update */
    double loss;
    uint64_t seed[LANES];
    int64_t sample[LANES][SEQUENCES];
    uint8_t image[IMAGE]; /* its state: the step, and what was loaded */
    atomic_int tasks;     /* done */
};

static float gradient(int64_t step, int lane, int i)
{
    return (float)(step * 100 + lane * 10 + i % 7) / (i < BIG ? 1024.0f : 3e6f);
}

static void say(struct program *p, const void *packet, size_t size)
{
    (void)!send(p->fd, packet, size, MSG_NOSIGNAL);
}

static void note(struct program *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void note(struct program *p, const char *format, ...)
{
    size_t used = strlen(p->asked);
    va_list list;
    va_start(list, format);
    vsnprintf(p->asked + used, sizeof p->asked - used, format, list);
    va_end(list);
}

static void introduce(struct program *p)
{
    struct program_hello hello = {
        .word = PROGRAM_HELLO, .abi = p->script.abi, .samples = p->script.samples, .arithmetic = "a thread"};
    struct program_gradient g = {.word = PROGRAM_GRADIENT, .count = 1, .name = "big"};
    int gradients = p->script.gradients;
    say(p, &hello, sizeof hello);
    for (int i = 0; i < gradients; i++) {
        snprintf(g.name, sizeof g.name, "g%d", i);
        say(p, &g, sizeof g);
    }
    if (!gradients) {
        gradients = 2;
        g.count = BIG;
        say(p, &g, sizeof g);
        g.count = SMALL;
        text_copy(g.name, sizeof g.name, "one.whose.name.is.longer.than.a.layout.has.room.for");
        say(p, &g, sizeof g);
    }
    struct program_ready ready = {
        .word = PROGRAM_READY, .gradients = (uint32_t)gradients, .image_bytes = p->script.image};
    say(p, &ready, sizeof ready);
}

/* False: it was sent away. */
static bool hear_welcome(struct program *p)
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
    ssize_t n = recvmsg(p->fd, &message, 0);
    if (n == (ssize_t)sizeof answer.task) {
        text_copy(p->refused, sizeof p->refused, answer.task.why);
        return false;
    }
    if (n != (ssize_t)sizeof answer.welcome)
        return false;
    int fd;
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
    p->at = answer.welcome;
    p->map = mmap(NULL, (size_t)p->at.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return true;
}

static atomic_llong at_work;

/* Ends with the test, where nothing comes. */
static void wait_for_signs(void)
{
    for (long long before = atomic_load(&at_work); atomic_load(&at_work) < before + 3;)
        poll(NULL, 0, 1);
}

static void do_lane(struct program *p, const struct program_task_packet *t, struct program_next *next)
{
    if (p->script.waits)
        wait_for_signs();
    float *area = (float *)(void *)(p->map + p->at.area_at[t->area]);
    for (int i = 0; i < ELEMENTS; i++)
        area[i] = gradient(t->step, (int)t->lane, i);
    memcpy(p->sample[t->lane], p->map + p->at.samples_at[t->area], sizeof p->sample[0]);
    p->seed[t->lane] = t->seed;
    next->loss = (double)(t->step + t->lane);
    note(p, "lane%u%s ", t->lane, t->pass ? "again" : "");
    if (p->script.fails_at == t->step) {
        next->failed = 1;
        text_copy(next->why, sizeof next->why, "no more\nnumbers");
    }
}

static void do_task(struct program *p, const struct program_task_packet *t, struct program_next *next)
{
    if (t->kind == PROGRAM_LANE) {
        do_lane(p, t, next);
    } else if (t->kind == PROGRAM_UPDATE) {
        memcpy(p->mean, p->map + p->at.area_at[t->area], sizeof p->mean);
        p->loss = t->loss;
        memcpy(p->image, &t->step, sizeof t->step);
        note(p, "update%lld ", (long long)t->step);
    } else if (t->kind == PROGRAM_SAVE) {
        memcpy(p->map + p->at.image_at, p->image, IMAGE);
        note(p, "save%lld ", (long long)t->step);
    } else if (t->kind == PROGRAM_LOAD) {
        memcpy(p->image, p->map + p->at.image_at, IMAGE);
        note(p, "load%lld ", (long long)t->step);
    }
}

static void *program_main(void *arg)
{
    struct program *p = arg;
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    struct program_next next = {.word = PROGRAM_NEXT};
    struct program_task_packet task;
    text_copy(at.sun_path, sizeof at.sun_path, p->path);
    p->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    if (connect(p->fd, (struct sockaddr *)&at, sizeof at) < 0)
        return NULL;
    if (!p->script.silent)
        introduce(p);
    if (!hear_welcome(p))
        return NULL;
    for (;;) {
        say(p, &next, sizeof next);
        if (recv(p->fd, &task, sizeof task, 0) != (ssize_t)sizeof task)
            return NULL;
        next = (struct program_next){.word = PROGRAM_NEXT};
        if (task.kind == PROGRAM_END) {
            note(p, "end(%s)", task.why);
            return NULL;
        }
        if (task.kind != PROGRAM_AGAIN) {
            do_task(p, &task, &next);
            atomic_fetch_add(&p->tasks, 1);
        }
    }
}

static struct script usual(void)
{
    return (struct script){.abi = PROGRAM_ABI, .samples = SAMPLES, .image = IMAGE};
}

/* One program, its backend and its state. */
struct rig {
    struct program program;
    struct model_layout layout;
    struct backend *b;
    struct state *state;
    int state_fd;
    struct error err;
    char folder[64];
};

static const struct backend_ops *ops_of(struct rig *r)
{
    return r->b->ops;
}

/* -1: it was refused, r->err says why. */
static int rig_open(struct rig *r, const struct script *script)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    memset(r, 0, sizeof *r);
    r->program.script = *script;
    text_copy(r->folder, sizeof r->folder, "/tmp/rm-program-test-XXXXXX");
    cr_assert_not_null(mkdtemp(r->folder));
    snprintf(r->program.path, sizeof r->program.path, "%s/program", r->folder);
    text_copy(at.sun_path, sizeof at.sun_path, r->program.path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    cr_assert_eq(listen(fd, 1), 0);
    cr_assert_eq(pthread_create(&r->program.thread, NULL, program_main, &r->program), 0);
    const struct backend_program_options options = {.fd = fd,
                                                    .lanes = LANES,
                                                    .sequences = SEQUENCES,
                                                    .steps = 2,
                                                    .seed = 5,
                                                    .threads = 2,
                                                    .patience = script->silent ? 200 * RM_MS : 20 * RM_S,
                                                    .pulse = &at_work,
                                                    .patient = script->waits,
                                                    .layout = &r->layout};
    return backend_program_open(&r->b, &options, &r->err);
}

static void rig_attach(struct rig *r)
{
    struct state_shape shape = {.layout = &r->layout, .lanes = LANES, .image = r->b->image_bytes};
    cr_assert_eq(file_memory(&r->state_fd, "state", 0, NULL), 0);
    cr_assert_eq(ops_of(r)->memory(r->b, state_bulk_bytes(&shape), &shape.in, &shape.at, NULL), 0);
    cr_assert_eq(state_open(&r->state, r->state_fd, &shape, &r->err), 0, "%s", r->err.text);
    cr_assert_eq(ops_of(r)->attach(r->b, r->state, &r->err), 0, "%s", r->err.text);
}

static void rig_hold(struct rig *r, int64_t step)
{
    struct state_point point = {.step = step};
    cr_assert_eq(state_receive_end(r->state, &point, NULL), 0);
}

static void rig_close(struct rig *r)
{
    if (r->b)
        ops_of(r)->free(r->b);
    pthread_join(r->program.thread, NULL);
    state_free(r->state);
    if (r->program.map)
        munmap(r->program.map, (size_t)r->program.at.bytes);
    if (r->program.fd > 0)
        close(r->program.fd);
    if (r->state_fd > 0)
        close(r->state_fd);
    unlink(r->program.path);
    rmdir(r->folder);
}

/* A pass alone in the ring. */
static enum verdict_kind pass(struct rig *r, const int32_t *k, struct verdict *verdict)
{
    const struct backend_pass how = {.world = 1, .tokens = SEQUENCES, .k = k};
    struct backend_sums sums;
    cr_assert_eq(ops_of(r)->weights(r->b, (struct far){0}, &r->err), 0, "%s", r->err.text);
    cr_assert_eq(ops_of(r)->begin(r->b, &how, &r->err), 0);
    for (int lane = 0; lane < LANES; lane++)
        cr_assert_eq(ops_of(r)->lane(r->b, lane, NULL, NULL, &r->err), 0, "%s", r->err.text);
    cr_assert_eq(ops_of(r)->end(r->b, 1, &sums, &r->err), 0, "%s", r->err.text);
    memcpy(sums.header_to, sums.header, (size_t)sums.header_count * sizeof *sums.header);
    ops_of(r)->decide(r->b, verdict);
    return verdict->kind;
}

static struct backend_info step(struct rig *r)
{
    struct verdict verdict;
    struct backend_info info;
    struct far to;
    int32_t k[RM_TENSORS_MAX];
    if (pass(r, NULL, &verdict) == VERDICT_RESCALE) {
        memcpy(k, verdict.k, sizeof k);
        cr_assert_eq(pass(r, k, &verdict), VERDICT_FITS);
    }
    cr_assert_not(ops_of(r)->words_to(r->b, &to));
    cr_assert_eq(ops_of(r)->commit(r->b, &info, &r->err), 0, "%s", r->err.text);
    return info;
}

Test(backend_program, a_step_is_the_lanes_and_their_mean, .timeout = 60)
{
    static struct rig r;
    struct script script = usual();
    struct state_point point;
    struct cursor cursor = {5, SAMPLES, LANES, SEQUENCES};
    double squares = 0;
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    cr_assert_eq(r.layout.tensors, 2);
    cr_assert_eq(r.layout.parameters, ELEMENTS);
    cr_assert_str_eq(r.layout.tensor[1].name, "...is.longer.than.a.layout.has.room.for");
    rig_hold(&r, 0);
    struct backend_info info = step(&r);
    cr_assert(isnan(info.clip) && isnan(info.rate), "its optimizer is its own");
    cr_assert(state_holds(r.state, &point));
    cr_assert_eq(point.step, 1);
    cr_assert(point.loss_known);
    cr_assert_float_eq(point.loss, 2.5, 1e-12); /* mean of 1 + lane */
    cr_assert_float_eq(r.program.loss, 2.5, 1e-12);
    for (int i = 0; i < ELEMENTS; i++) {
        double mean = 0;
        for (int lane = 0; lane < LANES; lane++)
            mean += (double)gradient(1, lane, i) / LANES;
        cr_assert_float_eq((double)r.program.mean[i], mean, 1e-6 * mean + 1e-13, "%d", i);
        squares += mean * mean;
    }
    cr_assert_float_eq(info.norm, sqrt(squares), 1e-5 * sqrt(squares));
    for (int lane = 0; lane < LANES; lane++) {
        for (int s = 0; s < SEQUENCES; s++)
            cr_assert_eq(r.program.sample[lane][s], cursor_sample(&cursor, 0, lane, s));
        for (int other = 0; other < lane; other++)
            cr_assert_neq(r.program.seed[lane], r.program.seed[other]);
    }
    rig_close(&r);
    cr_assert(strstr(r.program.asked, "lane0again lane1again lane2again lane3again update1 end(this worker"),
              "%s", r.program.asked);
}

Test(backend_program, while_a_program_is_at_a_task_it_shows_and_it_is_given_its_time, .timeout = 60)
{
    static struct rig r;
    struct script script = usual();
    script.waits = true;
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    rig_hold(&r, 0);
    step(&r);
    rig_close(&r);
}

Test(backend_program, the_image_is_asked_for_once_a_step_and_given_before_the_next_task, .timeout = 60)
{
    static struct rig r;
    struct script script = usual();
    uint8_t bytes[IMAGE], hash[RM_HASH_BYTES];
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    cr_assert_eq(ops_of(&r)->first(r.b, hash, &r.err), 0);
    rig_hold(&r, 0);
    struct state_arrays a = state_arrays(r.state);
    cr_assert_eq(a.arrays, 1);
    cr_assert_eq(a.count * 4, IMAGE);
    cr_assert_null(memory_near(a.in, a.array[0].at));
    step(&r);
    cr_assert_eq(memory_read(a.in, bytes, a.array[0].at, IMAGE, &r.err), 0);
    cr_assert_eq(ops_of(&r)->copy_out(r.b, bytes, a.array[0].at, IMAGE, &r.err), 0);
    cr_assert_eq(bytes[0], 1, "the image is that of step 1");
    cr_assert_lt(ops_of(&r)->first(r.b, hash, &r.err), 0, "it has moved on");
    cr_assert_eq(r.err.code, ERR_MACHINE);
    state_receive_begin(r.state);
    memset(bytes, 7, sizeof bytes);
    cr_assert_eq(memory_write(a.in, a.array[0].at, bytes, IMAGE, &r.err), 0);
    rig_hold(&r, 1);
    cr_assert_eq(memory_read(a.in, bytes, a.array[0].at, IMAGE, &r.err), 0, "others may have it at once");
    cr_assert_eq(bytes[IMAGE - 1], 7);
    step(&r);
    rig_close(&r);
    char *again = strstr(r.program.asked, "update1 ");
    cr_assert(again && !strncmp(r.program.asked, "save0 lane0 ", 12), "%s", r.program.asked);
    cr_assert(!strncmp(again, "update1 save1 load1 lane0 ", 26), "%s", again);
    cr_assert(strstr(again, " update2 end()"), "the job's last step: %s", again);
}

Test(backend_program, a_pass_that_is_given_up_costs_no_lane_of_the_next_one, .timeout = 60)
{
    static struct rig r;
    struct script script = usual();
    const struct backend_pass how = {.world = 1, .tokens = SEQUENCES};
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    rig_hold(&r, 0);
    cr_assert_eq(ops_of(&r)->begin(r.b, &how, &r.err), 0);
    cr_assert_eq(ops_of(&r)->lane(r.b, 2, NULL, NULL, &r.err), 0); /* under way, and nobody wants it */
    step(&r);
    float mean = r.program.mean[0];
    rig_close(&r);
    cr_assert_float_eq((double)mean, (100 + 15) / 1024.0, 1e-6);
}

/* The same words, received from another one, lead to the same state, by the program's own update. */
Test(backend_program, an_update_that_was_received_is_applied_by_the_program, .timeout = 60)
{
    static struct rig r, behind;
    struct script script = usual();
    struct state_point point;
    struct state_update kept, to;
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    rig_hold(&r, 0);
    step(&r);
    cr_assert(state_holds(r.state, &point) && state_kept(r.state, &kept));
    cr_assert_eq(rig_open(&behind, &script), 0, "%s", behind.err.text);
    rig_attach(&behind);
    rig_hold(&behind, 0);
    state_update_receive_begin(behind.state, &to);
    cr_assert_eq(to.words_count, kept.words_count);
    memcpy(memory_near(to.in, to.words), memory_near(kept.in, kept.words), (size_t)kept.words_count * 4);
    memcpy(to.header, kept.header, (size_t)kept.header_count * 4);
    memcpy(to.k, kept.k, (size_t)r.layout.tensors * sizeof *to.k);
    cr_assert_eq(ops_of(&behind)->check(behind.b, &point, &behind.err), 0, "%s", behind.err.text);
    struct state_point other = point;
    other.lineage[3] ^= 1;
    cr_assert_lt(ops_of(&behind)->check(behind.b, &other, &behind.err), 0);
    cr_assert_eq(behind.err.code, ERR_PROTOCOL);
    cr_assert_eq(state_update_receive_end(behind.state, 1, &behind.err), 0);
    cr_assert_eq(ops_of(&behind)->finish(behind.b, &behind.err), 0, "%s", behind.err.text);
    cr_assert(state_holds(behind.state, &other));
    cr_assert_eq(memcmp(other.lineage, point.lineage, RM_HASH_BYTES), 0);
    cr_assert_eq(memcmp(behind.program.mean, r.program.mean, sizeof r.program.mean), 0);
    rig_close(&behind);
    rig_close(&r);
}

Test(backend_program, a_program_that_has_nothing_to_do_looks_up_now_and_then, .timeout = 60)
{
    static struct rig r;
    struct script script = usual();
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    rig_hold(&r, 0);
    for (int i = 0; i < 100; i++)
        ops_of(&r)->idle(r.b);
    step(&r);
    rig_close(&r);
    cr_assert(strstr(r.program.asked, "update1"));
}

Test(backend_program, one_that_fails_is_an_error_after_its_launcher_had_its_time, .timeout = 60)
{
    static struct rig r;
    struct script script = usual();
    struct backend_sums sums;
    const struct backend_pass how = {.world = 1};
    script.fails_at = 1;
    cr_assert_eq(rig_open(&r, &script), 0, "%s", r.err.text);
    rig_attach(&r);
    rig_hold(&r, 0);
    cr_assert_eq(ops_of(&r)->begin(r.b, &how, &r.err), 0);
    cr_assert_eq(ops_of(&r)->lane(r.b, 0, NULL, NULL, &r.err), 0);
    cr_assert_lt(ops_of(&r)->end(r.b, 0, &sums, &r.err), 0);
    cr_assert_eq(r.err.code, ERR_MACHINE);
    cr_assert_str_eq(r.err.text, "the program failed: no more numbers");
    rig_close(&r);
}

Test(backend_program, what_can_not_be_is_refused_and_the_program_is_told, .timeout = 60)
{
    static struct rig r;
    const struct {
        struct script script;
        const char *why;
    } table[] = {
        {{.abi = 9, .samples = 1, .image = 8},
         "speaks version 9 and this Ringmaster 1: they are of two releases"},
        {{.abi = PROGRAM_ABI, .samples = 0, .image = 8}, "has 0 samples; there must be one at least"},
        {{.abi = PROGRAM_ABI, .samples = 1, .image = 8, .gradients = RM_TENSORS_MAX + 1},
         "has more than 1156 tensors with gradients, which is all that can be summed"},
        {{.abi = PROGRAM_ABI, .samples = 1, .image = 7}, "takes 7 bytes, which is no image of it"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        cr_assert_lt(rig_open(&r, &table[i].script), 0);
        cr_assert_eq(r.err.code, ERR_USAGE);
        cr_assert(strstr(r.err.text, table[i].why), "%s", r.err.text);
        rig_close(&r);
        cr_assert_str_eq(r.program.refused, r.err.text);
    }
}

Test(backend_program, one_that_never_says_what_it_has_did_not_connect, .timeout = 60)
{
    static struct rig r;
    struct script script = {.silent = true};
    cr_assert_lt(rig_open(&r, &script), 0);
    cr_assert_eq(r.err.code, ERR_USAGE);
    cr_assert_str_eq(r.err.text,
                     "mode is Elastic, but the program did not call ringmaster.connect(); call it, or write "
                     "mode: Restart, or, if 0 s are too few to come to that, a longer startTimeout");
    rig_close(&r);
}
