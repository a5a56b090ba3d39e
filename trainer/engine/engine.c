/* Opens and frees an engine (data, model, state, port, ring) and carries out commands by the functions of
 * engine_*.c; what the control thread may call meanwhile is here, too. */
#include "trainer/engine/engine.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/os/clock.h"
#include "common/os/config.h"
#include "common/os/cores.h"
#include "common/os/pages.h"
#include "trainer/engine/engine_parts.h"

/* Samples that are asked for ahead of their reading, where data comes from a store. */
enum { WANTED_SAMPLES = 48 };

/* Before any clock began: what was saved before this machine was up is newer, too. */
static const rm_time long_ago = INT64_MIN / 2;

/* Samples read ahead take no more memory than this. */
#define READ_AHEAD_BYTES ((int64_t)64 << 20)

static int64_t batch_sequences(const struct job_spec *spec)
{
    return (int64_t)spec->batch.lanes * spec->batch.lane_sequences;
}

/* Workers of one machine share its cores; what a pod may use is one worker's. */
static int thread_count(const struct engine *e)
{
    const struct job_spec *spec = e->spec;
    int sharing = e->alone || spec->workers.target < 1 ? 1 : spec->workers.target;
    if (spec->threads > 0)
        return spec->threads;
    int share = cores_usable() / sharing;
    return share > 0 ? share : 1;
}

_Static_assert((int)CORPUS_TOKENS16 == (int)JOB_DATA_TOKENS16 &&
                   (int)CORPUS_TOKENS32 == (int)JOB_DATA_TOKENS32 && (int)CORPUS_AUTO == (int)JOB_DATA_AUTO,
               "the job's formats are the corpus's");

static int64_t sample_of(const void *ctx, int64_t step, int lane, int sequence)
{
    return cursor_sample(ctx, step, lane, sequence);
}

static int open_reader(struct engine *e, struct error *err)
{
    const struct job_spec *spec = e->spec;
    struct prefetch_options options = {.corpus = e->corpus,
                                       .context = spec->model.shape.context,
                                       .lane_sequences = spec->batch.lane_sequences,
                                       .lanes = spec->batch.lanes,
                                       .steps = spec->steps,
                                       .room = READ_AHEAD_BYTES,
                                       .wanted = e->feed ? WANTED_SAMPLES : 0,
                                       .sample = sample_of,
                                       .ctx = &e->cursor};
    return prefetch_open(&e->reader, &options, err);
}

static int open_feed(struct engine *e, int fd, struct error *err)
{
    struct feed_options options = {.fd = fd, .abort = &e->abort.word, .pulse = &e->counter};
    if (!job_data_is_remote(e->spec))
        return 0;
    if (fd < 0)
        return err_set(err, ERR_USAGE, "data %s: the agent gives no socket for it", e->spec->data.uri);
    if (feed_open(&e->feed, &options, err) < 0)
        return err_wrap(err, "data %s", e->spec->data.uri);
    return 0;
}

/* The data's hash: as known before, or the listing's, or of all bytes. */
static int identify_data(struct engine *e, const struct msg_setup *setup, struct error *err)
{
    struct corpus_identity identity;
    const char *known = e->feed ? e->spec->data.listing : setup->data_sha256;
    if (known[0] && !hex_decode(known, e->data_sha256, RM_HASH_BYTES))
        return err_set(err, ERR_PROTOCOL, "setup: the data's hash is no hash");
    if (known[0])
        return 0;
    if (corpus_identify(e->corpus, &identity, err) < 0)
        return -1;
    memcpy(e->data_sha256, identity.sha256, RM_HASH_BYTES);
    return 0;
}

static int open_data(struct engine *e, const struct msg_setup *setup, struct error *err)
{
    const struct job_spec *spec = e->spec;
    struct corpus_source source = e->feed ? feed_source(e->feed) : (struct corpus_source){0};
    int sequences = spec->evaluation.every_steps ? spec->evaluation.sequences : 0;
    struct corpus_options options = {.uri = spec->data.uri,
                                     .source = e->feed ? &source : NULL,
                                     .format = (enum corpus_format)spec->data.format,
                                     .context = spec->model.shape.context,
                                     .vocabulary = spec->model.shape.vocabulary,
                                     .hold_out = spec->evaluation.hold_out};
    if (corpus_open(&e->corpus, &options, err) < 0 ||
        corpus_check(e->corpus, batch_sequences(spec), sequences, err) < 0)
        return -1;
    e->cursor = (struct cursor){spec->seed, corpus_training(e->corpus), spec->batch.lanes,
                                spec->batch.lane_sequences};
    return identify_data(e, setup, err) < 0 ? -1 : open_reader(e, err);
}

static enum gpt_precision precision_of(const struct job_spec *spec)
{
    return spec->precision == JOB_BF16 ? GPT_BF16 : GPT_FP32;
}

static int open_model(struct engine *e, struct error *err)
{
    const struct job_spec *spec = e->spec;
    const char *forced = config_get(CONFIG_TRAINER_ISA);
    text_copy(e->isa, sizeof e->isa, forced ? forced : spec->isa);
    model_layout_init(&e->layout, &spec->model.shape);
    if (pool_open(&e->pool, thread_count(e), err) < 0)
        return -1;
    pool_pulse(e->pool, &e->counter);
    struct gpt_options options = {.sequences = spec->batch.lane_sequences,
                                  .isa = e->isa,
                                  .precision = precision_of(spec),
                                  .recompute = spec->recompute};
    return gpt_open(&e->gpt, &e->layout, &options, e->pool, err);
}

enum { STATE_BYTES = 20, SPARE_BYTES = 12 }; /* for each parameter (trainer/state/state.h) */

static bool saves_on_the_way(const struct job_spec *spec)
{
    return spec->checkpoint.every_steps || spec->checkpoint.every;
}

static int take_buffers(struct engine *e, struct error *err)
{
    const struct job_spec *spec = e->spec;
    size_t tokens = (size_t)spec->batch.lane_sequences * (size_t)(spec->model.shape.context + 1);
    e->grads = pages_alloc((size_t)e->layout.parameters * sizeof *e->grads);
    e->tokens = malloc(tokens * sizeof *e->tokens);
    e->losses = malloc(((size_t)spec->evaluation.sequences + 1) * sizeof *e->losses);
    if (!e->grads || !e->tokens || !e->losses)
        return err_set(err, ERR_MACHINE, "no memory for a lane of %lld parameters",
                       (long long)e->layout.parameters);
    return 0;
}

/* Before the memory is touched: whoever takes more than there is gets killed by the kernel without a word. A
 * state that is there already, from a trainer before this one, takes nothing more. */
static int check_memory(struct engine *e, const struct engine_options *options, struct error *err)
{
    struct stat st;
    size_t parameter = (size_t)e->layout.parameters, available = pages_available();
    size_t lane = gpt_memory(e->gpt) + parameter * sizeof *e->grads, state = parameter * STATE_BYTES;
    if (fstat(options->state_fd, &st) == 0 && (size_t)st.st_blocks * 512 >= state)
        state = 0;
    else if (saves_on_the_way(e->spec))
        state += parameter * SPARE_BYTES;
    if (!available || lane + state <= available)
        return 0;
    return err_set(
        err, ERR_MACHINE,
        "this machine has %zu MiB of memory left, and this worker needs %zu: %zu for the training state of "
        "%lld parameters, %zu for a lane of %d sequences (less with trainer.recompute, or with more and "
        "smaller lanes)",
        available >> 20, (lane + state) >> 20, state >> 20, (long long)e->layout.parameters, lane >> 20,
        e->spec->batch.lane_sequences);
}

static int size_snapshot(struct engine *e, int fd, struct error *err)
{
    int64_t size = snapshot_file_bytes(&e->layout);
    struct stat st;
    if (fstat(fd, &st) < 0 || (st.st_size < size && ftruncate(fd, (off_t)size) < 0))
        return err_errno(err, ERR_MACHINE, "size the snapshot's memory");
    return 0;
}

/* Only the pages that are touched take memory. */
static int map_areas(struct engine *e, int fd, struct error *err)
{
    size_t size = (size_t)snapshot_area_bytes(&e->layout);
    for (int i = 0; i < SNAPSHOT_AREAS; i++) {
        off_t offset = (off_t)snapshot_area_at(&e->layout, (enum snapshot_area)i);
        void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, offset);
        if (map == MAP_FAILED)
            return err_errno(err, ERR_MACHINE, "map the snapshot's memory");
        e->area[i] = map;
    }
    return 0;
}

static void set_rule(struct engine *e)
{
    const struct job_optimizer *o = &e->spec->optimizer;
    e->rule = (struct update_rule){
        .schedule = {.rate = o->learning_rate,
                     .rate_min = o->min_learning_rate,
                     .warmup = o->warmup_steps,
                     .steps = e->spec->steps,
                     .cosine = o->schedule == JOB_COSINE},
        .beta1 = o->beta1,
        .beta2 = o->beta2,
        .epsilon = o->epsilon,
        .weight_decay = o->weight_decay,
        .clip_norm = o->clip_norm,
    };
}

/* Snapshots at planned steps cost no copy. The memory is as much as one worker's slice is at most. */
static int add_spare(struct engine *e, int fd, struct error *err)
{
    if (!saves_on_the_way(e->spec))
        return 0;
    return state_add_spare(e->state, fd, snapshot_area_at(&e->layout, SNAPSHOT_TAKEN), err);
}

static int open_state(struct engine *e, const struct engine_options *options, struct error *err)
{
    struct state_shape shape = {&e->layout, e->spec->batch.lanes, e->spec->reduction == JOB_FAST};
    if (state_open(&e->state, options->state_fd, &shape, err) < 0 ||
        size_snapshot(e, options->snapshot_fd, err) < 0 || map_areas(e, options->snapshot_fd, err) < 0 ||
        add_spare(e, options->snapshot_fd, err) < 0 || lanes_open(&e->lanes, e->state, e->pool, err) < 0)
        return -1;
    set_rule(e);
    engine_repair(e);
    return 0;
}

/* One lane for nothing, so that the products of this shape are compiled before this worker is waited for: a
 * newcomer does it while the others still train. */
static void warm_up(struct engine *e)
{
    size_t count = (size_t)e->spec->batch.lane_sequences * (size_t)(e->spec->model.shape.context + 1);
    const float *params = state_arrays(e->state).params;
    float loss;
    memset(e->tokens, 0, count * sizeof *e->tokens);
    gpt_weights_changed(e->gpt, params);
    gpt_lane(e->gpt, params, e->tokens, e->grads, &loss, NULL, NULL);
}

static void stranger(void *ctx, const char *why)
{
    const struct engine *e = ctx;
    if (e->refused)
        e->refused(why);
}

static void serve(void *ctx, int fd, const struct handshake_claim *claim, const struct abort_flag *closing)
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
                                        .serve = serve,
                                        .refused = stranger,
                                        .ctx = e};
    return data_port_open(&e->port, &options, err);
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
    e->abort.event_fd = -1;
    atomic_init(&e->waiting_for, -1);
    e->exact = e->spec->reduction == JOB_EXACT;
    pthread_mutex_init(&e->ring_lock, NULL);
    if (abort_flag_init(&e->abort, err) < 0 || open_feed(e, options->data_fd, err) < 0 ||
        open_data(e, options->setup, err) < 0 || open_model(e, err) < 0 || take_buffers(e, err) < 0 ||
        check_memory(e, options, err) < 0 || open_state(e, options, err) < 0 ||
        open_port(e, options->setup, err) < 0) {
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
    lanes_free(e->lanes);
    state_free(e->state);
    gpt_free(e->gpt);
    pool_free(e->pool);
    prefetch_free(e->reader);
    corpus_free(e->corpus);
    feed_free(e->feed);
    for (int i = 0; i < SNAPSHOT_AREAS; i++)
        if (e->area[i])
            munmap(e->area[i], (size_t)snapshot_area_bytes(&e->layout));
    free(e->grads);
    free(e->tokens);
    free(e->losses);
    abort_flag_clear(&e->abort);
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

/* The loss of the step that led to the state held is still in the kept header words. */
static bool kept_loss(const struct engine *e, double *ret)
{
    struct state_update update;
    struct verdict verdict;
    if (!state_holds(e->state, NULL) || !state_kept(e->state, &update))
        return false;
    verdict_decide(&verdict, update.header, e->layout.tensors, e->spec->batch.lanes,
                   e->spec->reduction == JOB_FAST, update.k);
    *ret = verdict.loss;
    return true;
}

void engine_opened(struct engine *e, struct message *ret_up, struct elastic_event *ret)
{
    *ret_up = (struct message){.type = MSG_UP};
    struct msg_up *up = &ret_up->up;
    *ret = (struct elastic_event){.kind = ELASTIC_OPENED, .message = ret_up};
    up->pid = getpid();
    gpt_fingerprint(e->isa, precision_of(e->spec), up->fingerprint);
    text_copy(up->address, sizeof up->address, data_port_address(e->port));
    hex_encode(e->data_sha256, RM_HASH_BYTES, up->data_sha256);
    up->data_files = corpus_files(e->corpus);
    up->data_bytes = corpus_bytes(e->corpus);
    up->parameters = e->layout.parameters;
    state_home(e->state, &up->params_at, &up->array_step);
    fill_state(e, &up->state, &ret->update_step);
    ret->loss_known = kept_loss(e, &ret->loss);
    ret->tokens = batch_sequences(e->spec) * e->spec->model.shape.context;
}

void engine_failed(struct elastic_result *ret, const struct error *err, int peer_worker)
{
    ret->outcome = err->code == ERR_ABORTED                             ? OUTCOME_ABORTED
                   : err->code == ERR_PEER || err->code == ERR_PROTOCOL ? OUTCOME_PEER
                                                                        : OUTCOME_FAILED;
    ret->peer = peer_worker;
    ret->code = err->code;
    ret->class = err->class;
    ret->person = err->person;
    text_copy(ret->text, sizeof ret->text, err->text);
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
    case CMD_CONNECT:
        engine_connect(e, a->form, ret);
        break;
    case CMD_STEP:
        engine_step(e, ret);
        break;
    case CMD_EVALUATE:
        engine_evaluate(e, ret);
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

/* Whether the state may change under the command: it is not served meanwhile. */
static bool changes_state(enum elastic_command c)
{
    return c == CMD_INIT || c == CMD_LOAD || c == CMD_RECEIVE || c == CMD_CATCH_UP || c == CMD_STEP ||
           c == CMD_DROP;
}

void engine_run(struct engine *e, const struct elastic_action *action, struct elastic_result *ret)
{
    rm_time begun = clock_now();
    *ret = (struct elastic_result){.command = action->command, .outcome = OUTCOME_OK, .peer = -1};
    if (changes_state(action->command)) {
        if (!engine_load_goes_on(action))
            transfer_forbid(e->source);
        /* A step that commits says so itself; one that does not leaves the weights as they are. */
        e->packed = e->packed && action->command == CMD_STEP;
    }
    state_aim_spare(e->state, action->command == CMD_STEP && action->to_snapshot);
    e->snapshot_free = action->snapshot_free;
    carry_out(e, action, ret);
    if (changes_state(action->command))
        transfer_allow(e->source, e->exact);
    atomic_fetch_add(&e->counter, 1);
    fill_state(e, &ret->state, &ret->update_step);
    ret->snapshot.state = ret->state;
    ret->snapshot.exact = e->exact;
    ret->rescaled = e->rescaled;
    ret->took = clock_now() - begun;
}

void engine_abort(struct engine *e)
{
    abort_flag_set(&e->abort);
    pthread_mutex_lock(&e->ring_lock);
    if (e->ring)
        e->ring->ops->abort(e->ring);
    pthread_mutex_unlock(&e->ring_lock);
}

void engine_clear_abort(struct engine *e)
{
    if (abort_flag_is_set(&e->abort))
        abort_flag_reset(&e->abort);
}

void engine_raise_stop(struct engine *e)
{
    atomic_store(&e->stop, true);
}

struct engine_pulse engine_pulse(struct engine *e)
{
    if (atomic_load(&e->in_memory))
        atomic_fetch_add(&e->counter, 1);
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

int engine_watch(struct engine *e, int fds[2], int workers[2])
{
    int peers[2], n = e->ring ? e->ring->ops->watch(e->ring, fds, peers) : 0;
    for (int i = 0; i < n; i++)
        workers[i] = e->ring_worker[peers[i]];
    return n;
}
