#include "trainer_rig.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/prng.h"
#include "common/os/file.h"

static const char key[] = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

static void write_text(const char *folder)
{
    char path[96];
    uint64_t state = 1;
    snprintf(path, sizeof path, "%s/text", folder);
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    for (int i = 0; i < 4000; i++)
        fprintf(f, "%s ", (const char *[]){"one", "ring", "of", "many", "sums"}[prng_below(&state, 5)]);
    fclose(f);
}

struct rig *rig_open(void)
{
    struct rig *rig = calloc(1, sizeof *rig);
    struct job_spec *s = &rig->spec;
    text_copy(rig->folder, sizeof rig->folder, "/tmp/rm-trainer-test-XXXXXX");
    cr_assert_not_null(mkdtemp(rig->folder));
    write_text(rig->folder);
    job_spec_defaults(s);
    text_copy(s->name, sizeof s->name, "rig");
    s->workers.min = 1;
    s->workers.max = s->workers.target = 4;
    s->model.shape = (struct model_shape){2, 2, 32, 16, 256};
    snprintf(s->data.uri, sizeof s->data.uri, "file://%s", rig->folder);
    snprintf(s->checkpoint.uri, sizeof s->checkpoint.uri, "file:///nowhere/%s", rig->folder + 5);
    s->batch.lanes = 7;
    s->batch.lane_sequences = 2;
    s->optimizer.learning_rate = 0.01;
    s->optimizer.warmup_steps = 2;
    s->steps = RIG_STEPS;
    s->threads = 1;
    s->evaluation.every_steps = 4;
    s->evaluation.sequences = 5;
    s->evaluation.hold_out = 0.1;
    s->checkpoint.every_steps = 0;
    job_spec_fill(s);
    rig->generation.term = 1;
    for (int w = 0; w < RIG_TRAINERS; w++)
        rig->t[w] = (struct rig_trainer){.worker = w, .link = -1, .state_fd = -1, .snapshot_fd = -1};
    return rig;
}

static void reap(struct rig_trainer *t)
{
    if (t->pid > 0) {
        kill(t->pid, SIGKILL);
        waitpid(t->pid, NULL, 0);
    }
    t->pid = 0;
    if (t->link >= 0)
        close(t->link);
    t->link = -1;
}

void rig_close(struct rig *rig)
{
    char path[96];
    for (int w = 0; w < RIG_TRAINERS; w++) {
        reap(&rig->t[w]);
        if (rig->t[w].state_fd >= 0)
            close(rig->t[w].state_fd);
        if (rig->t[w].snapshot_fd >= 0)
            close(rig->t[w].snapshot_fd);
    }
    snprintf(path, sizeof path, "%s/text", rig->folder);
    unlink(path);
    rmdir(rig->folder);
    free(rig);
}

/* In the child: 3, 4, 5 as an agent hands them over. High copies first, so that none is overwritten. */
static void become_trainer(const struct rig_trainer *t, int link, const char *fault)
{
    char path[RM_URI_MAX];
    int high[3] = {fcntl(link, F_DUPFD_CLOEXEC, 100), fcntl(t->state_fd, F_DUPFD_CLOEXEC, 100),
                   fcntl(t->snapshot_fd, F_DUPFD_CLOEXEC, 100)};
    for (int i = 0; i < 3; i++)
        dup2(high[i], 3 + i);
    if (fault)
        setenv("RINGMASTER_FAULT", fault, 1);
    if (file_sibling("../bin/ringmaster-trainer", path, sizeof path, NULL) == 0)
        execl(path, "ringmaster-trainer", "work", "--link-fd", "3", "--state-fd", "4", "--snapshot-fd", "5",
              (char *)NULL);
    _exit(127);
}

static void send_setup(struct rig *rig, struct rig_trainer *t)
{
    struct message *m = calloc(1, sizeof *m);
    struct str spec = str_init(RM_FRAME_MAX);
    job_spec_write(&rig->spec, &spec);
    m->type = MSG_SETUP;
    m->setup.protocol = MSG_PROTOCOL;
    m->setup.worker = t->worker;
    m->setup.restarts = t->restarts++;
    m->setup.snapshot_busy = t->snapshot_busy;
    m->setup.incarnation = 0xabc0 + (uint64_t)t->worker;
    text_copy(m->setup.listen, sizeof m->setup.listen, "127.0.0.1");
    text_copy(m->setup.key, sizeof m->setup.key, key);
    cr_assert(text_copy(m->setup.spec, sizeof m->setup.spec, str_text(&spec)));
    rig_send(rig, t->worker, m);
    str_clear(&spec);
    free(m);
}

void rig_spawn(struct rig *rig, int w, const char *fault)
{
    struct rig_trainer *t = &rig->t[w];
    int pair[2];
    if (t->state_fd < 0)
        cr_assert_eq(file_memory(&t->state_fd, "state", 0, NULL), 0);
    if (t->snapshot_fd < 0)
        cr_assert_eq(file_memory(&t->snapshot_fd, "snapshot", 0, NULL), 0);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    t->pid = fork();
    cr_assert_geq(t->pid, 0);
    if (t->pid == 0)
        become_trainer(t, pair[1], fault);
    close(pair[1]);
    t->link = pair[0];
    t->finished = false;
    t->beats = 0;
    t->up.pid = 0;
    send_setup(rig, t);
    if (rig_expect(rig, w, MSG_UP)) {
        t->up = rig->message.up;
        t->state = t->up.state;
    }
}

void rig_forget(struct rig *rig, int w)
{
    close(rig->t[w].state_fd);
    rig->t[w].state_fd = -1;
    rig->t[w].state = (struct msg_state){0};
}

int rig_wait(struct rig *rig, int w)
{
    struct rig_trainer *t = &rig->t[w];
    int status;
    cr_assert_eq(waitpid(t->pid, &status, 0), t->pid);
    t->pid = 0;
    close(t->link);
    t->link = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void rig_kill(struct rig *rig, int w)
{
    kill(rig->t[w].pid, SIGKILL);
    cr_assert_eq(rig_wait(rig, w), -SIGKILL);
}

void rig_send(struct rig *rig, int w, const struct message *message)
{
    struct str text = str_init(RM_FRAME_MAX);
    message_write(message, &text);
    uint32_t length = (uint32_t)text.length;
    /* A trainer that died takes nothing any more; that is found when it is listened to. */
    send(rig->t[w].link, &length, 4, MSG_NOSIGNAL);
    send(rig->t[w].link, text.data, text.length, MSG_NOSIGNAL);
    str_clear(&text);
}

static bool read_all(int fd, void *bytes, size_t length)
{
    for (char *at = bytes; length;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        cr_assert_eq(poll(&p, 1, 60000), 1, "a trainer says nothing for a minute");
        ssize_t n = read(fd, at, length);
        if (n <= 0)
            return false;
        at += n;
        length -= (size_t)n;
    }
    return true;
}

static bool read_message(struct rig *rig, struct rig_trainer *t)
{
    struct error err;
    uint32_t length;
    if (!read_all(t->link, &length, 4))
        return false;
    cr_assert_leq(length, RM_FRAME_MAX);
    char *text = malloc(length + 1);
    bool whole = read_all(t->link, text, length);
    if (whole) {
        text[length] = 0;
        cr_assert_eq(message_read(&rig->message, text, length, &err), 0, "%s: %s", err.text, text);
    }
    free(text);
    return whole;
}

static void note(struct rig *rig, struct rig_trainer *t)
{
    const struct message *m = &rig->message;
    switch (m->type) {
    case MSG_PROGRESS:
        t->state.step = m->progress.step;
        t->loss = m->progress.loss;
        if (m->progress.step > rig->step)
            rig->step = m->progress.step;
        break;
    case MSG_EVALUATED:
        cr_assert(m->evaluated.step >= 0);
        if (m->evaluated.step <= RIG_STEPS)
            rig->evaluated[m->evaluated.step] = m->evaluated.loss;
        rig->evaluations++;
        break;
    case MSG_STOPPED:
        t->state = m->stopped.state;
        t->update_step = m->stopped.update_step;
        break;
    case MSG_READY:
        t->state = m->ready.state;
        break;
    case MSG_HEARTBEAT:
        t->beats += !t->up.pid;
        break;
    case MSG_FINISHED:
        t->finished = true;
        memcpy(t->digest, m->finished.digest, RM_HASH_BYTES);
        break;
    case MSG_FAULT:
        if (m->fault.kind != FAULT_RING)
            cr_log_info("worker %d: %s", t->worker, m->fault.detail);
        break;
    default:
        break;
    }
}

bool rig_expect(struct rig *rig, int w, enum msg_type type)
{
    struct rig_trainer *t = &rig->t[w];
    while (read_message(rig, t)) {
        note(rig, t);
        if (rig->message.type == type)
            return true;
    }
    return false;
}

static struct msg_member member(const struct rig_trainer *t, enum msg_role role)
{
    struct msg_member m = {.worker = t->worker, .incarnation = 0xabc0 + (uint64_t)t->worker, .role = role};
    text_copy(m.address, sizeof m.address, t->up.address);
    return m;
}

static void best_state(const struct rig *rig, struct msg_state *best)
{
    *best = (struct msg_state){0};
    for (int w = 0; w < RIG_TRAINERS; w++) {
        const struct rig_trainer *t = &rig->t[w];
        if (t->pid && t->state.held && (!best->held || t->state.step > best->step))
            *best = t->state;
    }
}

static enum msg_role role_of(const struct rig_trainer *t, const struct msg_state *resume, bool follows)
{
    if (!resume->held)
        return ROLE_INIT;
    if (msg_state_equal(&t->state, resume))
        return ROLE_KEEP;
    if (!t->state.held || t->state.step != resume->step - 1)
        return ROLE_RECEIVE;
    return follows ? ROLE_FOLLOW : ROLE_CATCH_UP;
}

int rig_send_form(struct rig *rig, const int *workers, int n)
{
    struct message *m = calloc(1, sizeof *m);
    struct msg_form *f = &m->form;
    m->type = MSG_FORM;
    rig->generation.n++;
    m->generation = rig->generation;
    best_state(rig, &f->resume);
    for (int i = 0; i < n; i++) {
        const struct rig_trainer *t = &rig->t[workers[i]];
        rig->role[t->worker] = role_of(t, &f->resume, rig->follows);
        if (rig->role[t->worker] == ROLE_FOLLOW)
            f->lanes_count = rig->spec.batch.lanes; /* rank 0's, all */
        f->member[f->count++] = member(t, rig->role[t->worker]);
    }
    for (int w = 0; w < RIG_TRAINERS && f->resume.held; w++)
        if (rig->t[w].pid && msg_state_equal(&rig->t[w].state, &f->resume))
            f->source[f->sources_count++] = member(&rig->t[w], ROLE_KEEP);
    f->evaluated = f->saved = f->resume.held ? f->resume.step : -1;
    f->saved_ago = rig->saved_ago;
    for (int w = 0; w < RIG_TRAINERS; w++)
        if (rig->t[w].pid)
            rig_send(rig, w, m);
    int sources = f->sources_count;
    free(m);
    return sources;
}

void rig_go(struct rig *rig, const int *workers, int n)
{
    struct message *m = calloc(1, sizeof *m);
    for (int i = 0; i < n; i++)
        cr_assert(rig_expect(rig, workers[i], MSG_READY), "worker %d is not ready", workers[i]);
    m->type = MSG_GO;
    m->generation = rig->generation;
    for (int i = 0; i < n; i++)
        rig_send(rig, workers[i], m);
    free(m);
}

float *rig_map_area(struct rig *rig, int w, enum snapshot_area area, size_t *ret_bytes)
{
    struct model_layout layout;
    model_layout_init(&layout, &rig->spec.model.shape);
    *ret_bytes = (size_t)snapshot_area_bytes(&layout);
    float *map = mmap(NULL, *ret_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, rig->t[w].snapshot_fd,
                      (off_t)snapshot_area_at((int64_t)*ret_bytes, area));
    cr_assert_neq(map, MAP_FAILED);
    return map;
}

void rig_load(struct rig *rig, int w, const struct msg_snapshot *snapshot, const void *bytes)
{
    struct message *m = calloc(1, sizeof *m);
    size_t size;
    float *area = rig_map_area(rig, w, SNAPSHOT_LOADED, &size);
    memcpy(area, bytes, size);
    munmap(area, size);
    *m = (struct message){.type = MSG_FORM, .generation = {rig->generation.term, ++rig->generation.n}};
    m->form.count = 1;
    m->form.member[0] = member(&rig->t[w], ROLE_LOAD);
    m->form.resume = snapshot->state;
    m->form.evaluated = m->form.saved = -1;
    rig_send(rig, w, m);
    *m = (struct message){.type = MSG_LOADED, .generation = rig->generation};
    m->loaded.state = snapshot->state;
    m->loaded.parts = 1;
    m->loaded.shares = set_of(0);
    m->loaded.exact = true;
    m->loaded.tensors = snapshot->tensors;
    memcpy(m->loaded.k, snapshot->k, sizeof snapshot->k);
    rig_send(rig, w, m);
    free(m);
    rig_go(rig, &w, 1);
}

void rig_form(struct rig *rig, const int *workers, int n)
{
    rig_send_form(rig, workers, n);
    rig_go(rig, workers, n);
}

void rig_until(struct rig *rig, int w, int64_t step)
{
    while (rig->t[w].state.step < step || !rig->t[w].state.held) {
        if (!rig_expect(rig, w, MSG_PROGRESS))
            return;
        rig->t[w].state.held = true;
    }
}

void rig_send_stop(struct rig *rig, const int *workers, int n, enum msg_stop_at at)
{
    struct message *m = calloc(1, sizeof *m);
    m->type = MSG_STOP;
    m->generation = rig->generation;
    m->stop.round = ++rig->round;
    m->stop.at = at;
    for (int i = 0; i < n; i++)
        rig_send(rig, workers[i], m);
    free(m);
}

void rig_stop(struct rig *rig, const int *workers, int n, enum msg_stop_at at)
{
    rig_send_stop(rig, workers, n, at);
    for (int i = 0; i < n; i++)
        do
            cr_assert(rig_expect(rig, workers[i], MSG_STOPPED), "worker %d has gone", workers[i]);
        while (rig->message.stopped.round != rig->round);
}

void rig_finish(struct rig *rig, const int *workers, int n, char out[RM_HASH_HEX])
{
    for (int i = 0; i < n; i++) {
        struct rig_trainer *t = &rig->t[workers[i]];
        cr_assert(t->finished || rig_expect(rig, t->worker, MSG_FINISHED), "worker %d ended early",
                  t->worker);
        cr_assert_eq(memcmp(t->digest, rig->t[workers[0]].digest, RM_HASH_BYTES), 0);
    }
    hex_encode(rig->t[workers[0]].digest, RM_HASH_BYTES, out);
}
