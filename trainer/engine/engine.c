/* Opens and frees an engine (data, model, state, port, ring) and carries out commands by the functions of
 * engine_*.c; what the control thread may call meanwhile is here, too. */
#include "trainer/engine/engine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "common/os/clock.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/os/pages.h"
#include "trainer/engine/engine_parts.h"

/* Before any clock began: what was saved before this machine was up is newer, too. */
static const rm_time long_ago = INT64_MIN / 2;

enum { SPARE_BYTES = 12 }; /* for each parameter */

static bool saves_on_the_way(const struct job_spec *spec)
{
    return spec->checkpoint.every_steps || spec->checkpoint.every;
}

static int take_buffers(struct engine *e, struct error *err)
{
    const struct job_spec *spec = e->spec;
    e->tokens = malloc((size_t)(spec->model.shape.context + 1) * sizeof *e->tokens);
    e->losses = malloc((2 * (size_t)spec->evaluation.sequences + 1) * sizeof *e->losses);
    if (!e->tokens || !e->losses)
        return err_set(err, ERR_MACHINE, "no memory for %d sequences' losses", spec->evaluation.sequences);
    return 0;
}

/* Before the memory is touched: whoever takes more than there is gets killed by the kernel without a word. A
 * state that is there already, from a trainer before this one, takes nothing more. */
static int check_memory(struct engine *e, const struct engine_options *options, struct error *err)
{
    struct stat st;
    struct backend_needs needs = e->backend->ops->needs(e->backend);
    size_t lane = needs.lane, state = needs.state, available = pages_available();
    if (fstat(options->state_fd, &st) == 0 && (size_t)st.st_blocks * 512 >= state)
        state = 0;
    else if (saves_on_the_way(e->spec) && e->backend->aims)
        state += (size_t)e->layout.parameters * SPARE_BYTES;
    if (!available || lane + state <= available)
        return 0;
    if (job_is_elastic(e->spec))
        return err_set(
            err, ERR_MACHINE,
            "this machine has %zu MiB of memory left, and this worker needs %zu beside the program: "
            "%zu for the sums of %lld elements, %zu for gradients and state as they are handed over",
            available >> 20, (lane + state) >> 20, state >> 20, (long long)e->layout.parameters, lane >> 20);
    return err_set(err, ERR_MACHINE,
                   "%zu MiB of memory are left, %zu needed: set trainer.recompute, or smaller lanes (%zu for "
                   "the state of %lld parameters, %zu for a lane)",
                   available >> 20, (lane + state) >> 20, state >> 20, (long long)e->layout.parameters,
                   lane >> 20);
}

static int size_snapshot(struct engine *e, int fd, struct error *err)
{
    int64_t size = snapshot_file_bytes(e->area_bytes);
    struct stat st;
    if (fstat(fd, &st) < 0 || (st.st_size < size && ftruncate(fd, (off_t)size) < 0))
        return err_errno(err, ERR_MACHINE, "size the snapshot's memory");
    return 0;
}

/* Only the pages that are touched take memory. */
static int map_areas(struct engine *e, int fd, struct error *err)
{
    size_t size = (size_t)e->area_bytes;
    for (int i = 0; i < SNAPSHOT_AREAS; i++) {
        off_t offset = (off_t)snapshot_area_at(e->area_bytes, (enum snapshot_area)i);
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
        if (map == MAP_FAILED)
            return err_errno(err, ERR_MACHINE, "map the snapshot's memory");
        e->area[i] = map;
    }
    return 0;
}

/* Snapshots at planned steps cost no copy. The memory is as much as one worker's slice is at most. */
static int add_spare(struct engine *e, int fd, struct error *err)
{
    if (!saves_on_the_way(e->spec) || !e->backend->aims)
        return 0;
    return state_add_spare(e->state, fd, snapshot_area_at(e->area_bytes, SNAPSHOT_TAKEN), err);
}

/* Who looks for the cause of what a run received finds it here. */
static void say_found(const struct backend *b)
{
    if (b->kept)
        log_info("goes on with the state that the trainer before left", "found=\"%s\"", b->found);
    else if (*b->found)
        log_warn("a GPU's state is not kept", "why=\"%s\"", b->found);
}

static int open_state(struct engine *e, const struct engine_options *options, struct error *err)
{
    const struct backend_ops *ops = e->backend->ops;
    struct state_shape shape = {.layout = &e->layout,
                                .lanes = e->spec->batch.lanes,
                                .fast = e->spec->reduction == JOB_FAST,
                                .image = e->backend->image_bytes};
    e->area_bytes = shape.image ? shape.image : snapshot_area_bytes(&e->layout);
    RM_ASSERT(e->area_bytes > 0, "areas of %lld bytes for %lld parameters", (long long)e->area_bytes,
              (long long)e->layout.parameters);
    if (ops->memory && ops->memory(e->backend, state_bulk_bytes(&shape), &shape.in, &shape.at, err) < 0)
        return -1;
    shape.kept = e->backend->kept;
    if (state_open(&e->state, options->state_fd, &shape, err) < 0 ||
        size_snapshot(e, options->snapshot_fd, err) < 0 || map_areas(e, options->snapshot_fd, err) < 0 ||
        add_spare(e, options->snapshot_fd, err) < 0 || ops->attach(e->backend, e->state, err) < 0)
        return -1;
    say_found(e->backend);
    return engine_repair(e, err);
}

/* What this machine computes, beside what it says that it is: others compare both. */
static int measure_self(struct engine *e, struct error *err)
{
    uint8_t probe[RM_HASH_BYTES];
    char text[RM_HASH_HEX];
    if (!e->backend->ops->probe)
        return 0;
    if (e->backend->ops->probe(e->backend, probe, err) < 0)
        return -1;
    if (FAULT_FAILS("probe", EIO))
        probe[0] ^= 1;
    hex_encode(probe, RM_HASH_BYTES, text);
    text_copy(e->probe, sizeof e->probe, text);
    return 0;
}

/* Before this worker is waited for: a newcomer does it while the others still train. */
static void warm_up(struct engine *e)
{
    e->backend->ops->warm_up(e->backend, engine_params(e));
}

static void stranger(void *ctx, const char *why)
{
    const struct engine *e = ctx;
    if (e->refused)
        e->refused(why);
}

static void serve_caller(void *ctx, int fd, const struct handshake_claim *claim,
                         const struct abort_flag *closing)
{
    const struct engine *e = ctx;
    transfer_serve(e->source, fd, claim, closing);
}

static int open_port(struct engine *e, const struct msg_setup *setup, struct error *err)
{
    e->self = (struct handshake_end){setup->worker, setup->incarnation};
    text_copy(e->secret.job, sizeof e->secret.job, e->spec->name);
    if (!hex_decode(setup->key, e->secret.key, HANDSHAKE_KEY))
        return err_set(err, ERR_PROTOCOL, "setup: the job's key is no key");
    if (transfer_source_open(&e->source, e->state, e->layout.tensors, err) < 0)
        return -1;
    transfer_allow(e->source, e->exact);
    struct data_port_options options = {.listen = setup->listen,
                                        .secret = e->secret,
                                        .self = e->self,
                                        .serve = serve_caller,
                                        .refused = stranger,
                                        .ctx = e};
    return data_port_open(&e->port, &options, err);
}

static int open_aborts(struct engine *e, struct error *err)
{
    for (int i = 0; i < ELASTIC_THREADS; i++)
        if (abort_flag_init(&e->abort[i], err) < 0)
            return -1;
    return abort_flag_init(&e->enough, err);
}

int engine_open(struct engine **ret, const struct engine_options *options, struct error *err)
{
    struct engine *e = calloc(1, sizeof *e);
    if (!e)
        return err_set(err, ERR_MACHINE, "no memory for the trainer");
    e->spec = options->spec;
    e->refused = options->refused;
    e->alone = options->alone;
    e->saved_at = long_ago;
    e->sure = -1;
    atomic_init(&e->save_every, e->spec->checkpoint.every == JOB_AUTO ? 0 : e->spec->checkpoint.every);
    for (int i = 0; i < ELASTIC_THREADS; i++)
        e->abort[i].event_fd = -1;
    e->enough.event_fd = -1;
    atomic_init(&e->waiting_for, -1);
    e->exact = e->spec->reduction == JOB_EXACT;
    pthread_mutex_init(&e->ring_lock, NULL);
    if (open_aborts(e, err) < 0 || engine_data_open(e, options, err) < 0 ||
        engine_backend_open(e, options, err) < 0 || take_buffers(e, err) < 0 ||
        check_memory(e, options, err) < 0 || open_state(e, options, err) < 0 ||
        open_port(e, options->setup, err) < 0 || measure_self(e, err) < 0 ||
        engine_transport_open(e, err) < 0) {
        engine_free(e);
        return -1;
    }
    warm_up(e);
    *ret = e;
    return 0;
}

void engine_free(struct engine *e)
{
    if (!e)
        return;
    feed_stop(e->feed);
    engine_disconnect(e);
    data_port_free(e->port);
    transfer_source_free(e->source);
    engine_transport_free(e);
    if (e->backend)
        e->backend->ops->free(e->backend);
    state_free(e->state);
    scrub_free(e->scrub);
    prefetch_free(e->reader);
    corpus_free(e->corpus);
    feed_free(e->feed);
    for (int i = 0; i < SNAPSHOT_AREAS; i++)
        if (e->area[i])
            munmap(e->area[i], (size_t)e->area_bytes);
    free(e->tokens);
    free(e->losses);
    for (int i = 0; i < ELASTIC_THREADS; i++)
        abort_flag_clear(&e->abort[i]);
    abort_flag_clear(&e->enough);
    pthread_mutex_destroy(&e->ring_lock);
    free(e);
}

static void fill_state(const struct engine *e, struct msg_state *state, int64_t *update_step)
{
    struct state_point point;
    struct state_update update;
    *state = (struct msg_state){.held = state_holds(e->state, &point)};
    *update_step = -1;
    if (!state->held)
        return;
    state->step = point.step;
    memcpy(state->lineage, point.lineage, RM_HASH_BYTES);
    if (state_kept(e->state, &update))
        *update_step = update.step;
}

/* The loss is of the step that led to the state held; the state's record has it, also where the update is
 * kept no more. */
static bool held_loss(const struct engine *e, double *ret)
{
    struct state_point point;
    if (!state_holds(e->state, &point) || !point.loss_known)
        return false;
    *ret = point.loss;
    return true;
}

void engine_opened(struct engine *e, struct message *ret_up, struct elastic_event *ret)
{
    *ret_up = (struct message){.type = MSG_UP};
    struct msg_up *up = &ret_up->up;
    *ret = (struct elastic_event){.kind = ELASTIC_OPENED, .message = ret_up};
    up->pid = getpid();
    e->backend->ops->fingerprint(e->backend, up->fingerprint);
    text_copy(up->probe, sizeof up->probe, e->probe);
    text_copy(up->address, sizeof up->address, data_port_address(e->port));
    hex_encode(e->data_sha256, RM_HASH_BYTES, up->data_sha256);
    up->data_files = e->corpus ? corpus_files(e->corpus) : 0;
    up->data_bytes = e->corpus ? corpus_bytes(e->corpus) : 0;
    up->parameters = e->layout.parameters;
    up->image_bytes = e->backend->image_bytes;
    state_home(e->state, &up->params_at, &up->array_step);
    fill_state(e, &up->state, &ret->update_step);
    ret->loss_known = held_loss(e, &ret->loss);
    ret->tokens = e->spec->batch.lanes * engine_lane_tokens(e);
}

static void carry_out(struct engine *e, const struct elastic_action *a, struct elastic_result *ret)
{
    switch (a->command) {
    case CMD_INIT:
        engine_init_state(e, ret);
        break;
    case CMD_LOAD:
        engine_load(e, a, ret);
        break;
    case CMD_RECEIVE:
        engine_receive(e, a->form, ret);
        break;
    case CMD_CATCH_UP:
        engine_catch_up(e, a->form, ret);
        break;
    case CMD_LISTEN:
        engine_listen(e, a->form, ret);
        break;
    case CMD_CONNECT:
        engine_connect(e, a->form, ret);
        if (ret->outcome == OUTCOME_OK)
            engine_read_ahead(e, a->form);
        break;
    case CMD_LANES:
        engine_lanes(e, a, ret);
        break;
    case CMD_EXCHANGE:
        engine_exchange(e, ret);
        break;
    case CMD_COMMIT:
        engine_commit(e, ret);
        break;
    case CMD_EVALUATE:
        engine_evaluate(e, ret);
        break;
    case CMD_COMPARE:
        engine_compare(e, ret);
        break;
    case CMD_SNAPSHOT:
        engine_snapshot(e, a->part, a->parts, ret);
        break;
    case CMD_DIGEST:
        engine_digest(e, ret);
        break;
    case CMD_DROP:
        engine_drop(e);
        break;
    case CMD_NONE:
        break;
    }
}

/* Those that follow a form or a list of members, and the one that takes what the agent has read. */
static bool has_its_words(const struct elastic_action *a)
{
    bool by_form = a->command == CMD_LOAD || a->command == CMD_RECEIVE || a->command == CMD_CATCH_UP ||
                   a->command == CMD_LISTEN || a->command == CMD_CONNECT || a->command == CMD_LANES;
    return (a->form || !by_form) && (a->loaded || a->command != CMD_LOAD);
}

static bool makes_step(enum elastic_command c)
{
    return c == CMD_LANES || c == CMD_EXCHANGE || c == CMD_COMMIT;
}

/* Whether the state may change under the command: it is not served meanwhile. */
static bool changes_state(enum elastic_command c)
{
    return c == CMD_INIT || c == CMD_LOAD || c == CMD_RECEIVE || c == CMD_CATCH_UP || c == CMD_LISTEN ||
           makes_step(c) || c == CMD_DROP;
}

/* Those who listen still read while a step is made, until it commits. */
static void close_state(struct engine *e, enum elastic_command c)
{
    if (c == CMD_LANES || c == CMD_EXCHANGE)
        transfer_forbid_others(e->source);
    else
        transfer_forbid(e->source);
}

void engine_run(struct engine *e, const struct elastic_action *action, struct elastic_result *ret)
{
    rm_time begun = clock_now();
    RM_ASSERT(has_its_words(action), "%s is run without the message that it is about",
              elastic_command_name(action->command));
    *ret = (struct elastic_result){.command = action->command, .outcome = OUTCOME_OK, .peer = -1};
    if (changes_state(action->command)) {
        if (!engine_load_goes_on(action))
            close_state(e, action->command);
        /* A step that commits says so itself; one that does not leaves the weights as they are. */
        e->packed = e->packed && makes_step(action->command);
        e->sure = makes_step(action->command) ? e->sure : -1;
        e->fresh = e->fresh && (makes_step(action->command) || action->command == CMD_CATCH_UP);
        if (!makes_step(action->command))
            engine_forget_lanes(e); /* words may lie where theirs do */
    }
    state_aim_spare(e->state, action->command == CMD_COMMIT && action->to_snapshot);
    e->snapshot_free = action->snapshot_free;
    carry_out(e, action, ret);
    if (changes_state(action->command))
        transfer_allow(e->source, e->exact);
    atomic_fetch_add(&e->counter, 1);
    fill_state(e, &ret->state, &ret->update_step);
    RM_ASSERT(action->command != CMD_DROP || !ret->state.held, "step %lld is held, and was dropped",
              (long long)ret->state.step);
    if (action->command == CMD_EVALUATE && ret->outcome == OUTCOME_OK)
        transfer_evaluated(e->source, ret->state.step, ret->loss);
    engine_kept_lanes(e, &ret->kept);
    ret->snapshot.state = ret->state;
    ret->snapshot.exact = e->exact;
    ret->rescaled = e->rescaled;
    ret->took = clock_now() - begun;
}

void engine_abort(struct engine *e, enum elastic_thread thread)
{
    abort_flag_set(&e->abort[thread]);
    pthread_mutex_lock(&e->ring_lock);
    if (e->ring)
        e->ring->ops->abort(e->ring);
    pthread_mutex_unlock(&e->ring_lock);
}

void engine_pause(struct engine *e)
{
    abort_flag_set(&e->enough);
    if (!e->backend->ops->resume)
        engine_abort(e, ELASTIC_COMPUTES);
    atomic_store(&e->pause, true);
}

void engine_clear_abort(struct engine *e, enum elastic_thread thread)
{
    if (thread == ELASTIC_COMPUTES) {
        atomic_store(&e->pause, false);
        if (abort_flag_is_set(&e->enough))
            abort_flag_reset(&e->enough);
    }
    if (abort_flag_is_set(&e->abort[thread]))
        abort_flag_reset(&e->abort[thread]);
}

int64_t engine_words(const struct engine *e)
{
    return e->layout.parameters;
}

void engine_raise_stop(struct engine *e)
{
    atomic_store(&e->stop, true);
}

void engine_save_every(struct engine *e, rm_time every)
{
    if (e->spec->checkpoint.every == JOB_AUTO)
        atomic_store(&e->save_every, every);
}

void engine_raise_save(struct engine *e)
{
    atomic_store(&e->save, true);
}

void engine_raise_corrupt(struct engine *e)
{
    atomic_store(&e->corrupt, true);
}

struct engine_pulse engine_pulse(struct engine *e)
{
    if (atomic_load(&e->in_memory))
        atomic_fetch_add(&e->counter, 1);
    if (e->backend->ops->idle)
        e->backend->ops->idle(e->backend);
    int64_t received = atomic_load(&e->received);
    bool reduces = atomic_load(&e->exchanging);
    return (struct engine_pulse){.counter = atomic_load(&e->counter) + received,
                                 .bytes = reduces ? atomic_load(&e->place) : received,
                                 .waiting_for = atomic_load(&e->waiting_for)};
}

bool engine_exchanging(const struct engine *e)
{
    return atomic_load(&e->exchanging);
}

void engine_exchange_over(struct engine *e)
{
    atomic_store(&e->exchanging, false);
}

int engine_watch(struct engine *e, int fds[2], int workers[2])
{
    int peers[2], n = e->ring ? e->ring->ops->watch(e->ring, fds, peers) : 0;
    for (int i = 0; i < n; i++) {
        RM_ASSERT(peers[i] >= 0 && peers[i] < RM_WORKERS_MAX, "rank %d is watched", peers[i]);
        workers[i] = e->ring_worker[peers[i]];
    }
    return n;
}
