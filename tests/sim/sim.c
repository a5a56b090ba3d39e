#include "tests/sim/sim.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/assert.h"

static const rm_time long_after = 30 * RM_S; /* of virtual time, beside the steps' own and startTimeout */
static const rm_time usual_start = 30 * RM_S;

void sim_fail(struct sim *sim, const char *format, ...)
{
    if (sim->violation[0])
        return; /* the first one is the cause */
    va_list args;
    va_start(args, format);
    vsnprintf(sim->violation, sizeof sim->violation, format, args);
    va_end(args);
    sim_trace(sim, "VIOLATION %s", sim->violation);
}

void sim_trace(struct sim *sim, const char *format, ...)
{
    if (!sim->trace && !sim->tail)
        return;
    char text[700];
    va_list args;
    va_start(args, format);
    int n = snprintf(text, sizeof text, "%12.6f ", (double)sim->now / RM_S);
    vsnprintf(text + n, sizeof text - (size_t)n, format, args);
    va_end(args);
    if (sim->trace)
        puts(text);
    if (sim->tail)
        text_copy(sim->tail[sim->tail_lines++ % TAIL_MAX], TAIL_WIDTH, text);
}

void sim_trace_message(struct sim *sim, const char *who, int node, const struct message *m)
{
    char text[600];
    if ((!sim->trace && !sim->tail) || m->type == MSG_HEARTBEAT || m->type == MSG_ACK)
        return;
    message_describe(m, text, sizeof text);
    sim_trace(sim, "%s worker %d: %s", who, sim->node[node].worker, text);
}

/* ---- scenario ---- */

static enum shot_kind draw_kind(struct sim *sim, bool calm)
{
    static const enum shot_kind announced[] = {SHOT_TERM, SHOT_JOIN, SHOT_ZOMBIE, SHOT_STRANGER};
    static const enum shot_kind rough[] = {SHOT_KILL,
                                           SHOT_CRASH,
                                           SHOT_CRASH,
                                           SHOT_TRAINER,
                                           SHOT_TRAINER_CRASH,
                                           SHOT_TERM,
                                           SHOT_JOIN,
                                           SHOT_JOIN,
                                           SHOT_CUT,
                                           SHOT_CUT,
                                           SHOT_COORDINATOR,
                                           SHOT_ZOMBIE,
                                           SHOT_COORDINATOR,
                                           SHOT_STOP,
                                           SHOT_HANG,
                                           SHOT_STUCK,
                                           SHOT_PAUSE,
                                           SHOT_PAUSE_TRAINER,
                                           SHOT_PAUSE_COORDINATOR,
                                           SHOT_PAUSE_AGENT,
                                           SHOT_SILENCE,
                                           SHOT_SILENCE,
                                           SHOT_SLOW,
                                           SHOT_STRANGER,
                                           SHOT_ALL_LEAVE,
                                           SHOT_STORE_AWAY,
                                           SHOT_STORE_AWAY};
    if (calm)
        return announced[sim_below(sim, sizeof announced / sizeof *announced)];
    return rough[sim_below(sim, sizeof rough / sizeof *rough)];
}

static void draw_shots(struct sim *sim, struct scenario *s)
{
    s->shots = (int)sim_below(sim, s->calm ? 6 : 15);
    rm_time begins = sim_chance(sim, 70) ? 100 * RM_MS : 0;
    rm_time span = s->step_time * s->steps;
    for (int i = 0; i < s->shots; i++) {
        bool burst = i > 0 && sim_chance(sim, 40);
        s->shot[i].at =
            burst ? s->shot[i - 1].at + sim_time(sim, 0, 20 * RM_MS) : begins + sim_time(sim, 0, span);
        s->shot[i].kind = draw_kind(sim, s->calm);
    }
    if (s->interrupts) {
        s->shot[s->shots].at = begins + sim_time(sim, 0, span);
        s->shot[s->shots++].kind = SHOT_INTERRUPT;
    }
    if (s->fills) {
        s->shot[s->shots].at = begins + sim_time(sim, 0, span);
        s->shot[s->shots++].kind = SHOT_STORE_FULL;
    }
    if (sim->crowd) {
        s->shot[s->shots].at = begins + sim_time(sim, 0, span);
        s->shot[s->shots++].kind = SHOT_JOIN;
    }
}

static void draw_scenario(struct sim *sim)
{
    struct scenario *s = &sim->scenario;
    if (sim->replay) {
        replay_draw(sim);
        return;
    }
    s->target = (sim->crowd ? 20 : 1) + (int)sim_below(sim, 6);
    s->min = 1 + (int)sim_below(sim, (uint64_t)s->target);
    s->steps = 3 + (int64_t)sim_below(sim, 60);
    s->checkpoint_every = sim_chance(sim, 70) ? 1 + (int64_t)sim_below(sim, 10) : 0;
    s->evaluation_every = sim_chance(sim, 60) ? 1 + (int64_t)sim_below(sim, 8) : 0;
    s->exact = sim_chance(sim, 60);
    s->calm = sim_chance(sim, 25);
    s->below_min = !s->calm && sim_chance(sim, 15);
    s->damage = !s->calm && sim_chance(sim, 15);
    s->storage_fails = !s->calm && sim_chance(sim, 5);
    s->fills = !s->calm && sim_chance(sim, 5);
    s->interrupts = sim_chance(sim, 10);
    s->strict = !s->calm && sim_chance(sim, 8);
    s->resumes = sim_chance(sim, 10) ? 1 + (int64_t)sim_below(sim, (uint64_t)s->steps - 1) : 0;
    s->slow_transfers = !s->calm && sim_chance(sim, 10);
    s->nan_step =
        sim_chance(sim, 4) ? s->resumes + 1 + (int64_t)sim_below(sim, (uint64_t)(s->steps - s->resumes)) : 0;
    uint64_t left = (uint64_t)(s->steps - s->resumes);
    bool alone = !s->calm && sim_hash(sim->seed, 17, 0) % 100 < 5;
    s->nan_alone = alone ? s->resumes + 1 + (int64_t)(sim_hash(sim->seed, 17, 1) % left) : 0;
    s->nan_worker = (int)(sim_hash(sim->seed, 17, 2) % (uint64_t)s->target);
    s->keep = 1 + (int)(sim_hash(sim->seed, 18, 0) % 3);
    s->flaws = s->exact && !s->calm && sim_hash(sim->seed, 20, 0) % 100 < 20 ? 5 : 0;
    s->rescales = sim_hash(sim->seed, 9, 0) % 100 < 20 ? 30 : 0;
    s->saves = sim_hash(sim->seed, 10, 0) % 100 < 15 ? 10 : 0;
    s->second_breaks = !s->calm && sim_hash(sim->seed, 32, 0) % 100 < 20 ? 10 : 0;
    s->flips = s->exact && !s->calm && sim_hash(sim->seed, 19, 0) % 100 < 20 ? 5 : 0;
    s->step_time = sim_time(sim, 200 * RM_US, sim_chance(sim, 20) ? 200 * RM_MS : 10 * RM_MS);
    s->delay = sim_time(sim, 20 * RM_US, sim_chance(sim, 30) ? 5 * RM_MS : 500 * RM_US);
    draw_shots(sim, s);
    s->unsupervised = sim_chance(sim, 30);
    s->mixed = s->unsupervised && sim_hash(sim->seed, 1, 0) % 100 < 20;
    trouble_draw(sim);
    trouble_draw_source(sim);
    trouble_draw_away(sim);
    pairs_draw(sim);
    notice_draw(sim);
    trouble_draw_writes(sim);
    saves_draw(sim);
    beside_draw(sim);
}

static void begin(struct sim *sim)
{
    const struct scenario *s = &sim->scenario;
    sim->settings = (struct rdzv_settings){.term = TERM,
                                           .workers_min = s->min,
                                           .workers_max = sim->crowd ? RM_WORKERS_MAX : 16,
                                           .workers_target = s->target,
                                           .lanes = sim->crowd ? RM_WORKERS_MAX : 16,
                                           .steps = s->steps,
                                           .exact = s->exact,
                                           .resume = true,
                                           .unsupervised = s->unsupervised,
                                           .evaluation_every = s->evaluation_every,
                                           .checkpoint_every = s->checkpoint_every,
                                           .max_loss = s->max_loss,
                                           .save_least = s->max_loss / 4,
                                           .believed = s->max_loss ? RM_S : 0,
                                           .join_window = sim_time(sim, RM_MS, 300 * RM_MS),
                                           .heartbeat = HEARTBEAT,
                                           .lost_after = LOST_AFTER,
                                           .form_timeout = 2 * RM_S,
                                           .start_timeout = 30 * RM_S,
                                           .step_timeout = sim_time(sim, 1500 * RM_MS, 3 * RM_S),
                                           .probe_first = 200 * RM_MS,
                                           .probe_most = 2 * RM_S,
                                           .max_restarts = s->strict ? (int)sim_below(sim, 4) : 1000,
                                           .within = 3600 * RM_S,
                                           .save_patience = 120 * RM_S,
                                           .end_timeout = 40 * RM_S,
                                           .leave_unsaved = sim_chance(sim, 10)};
    text_copy(sim->settings.job, sizeof sim->settings.job, "sim");
    /* as in pods, where not all states can be listened to */
    sim->settings.listens = sim->listens || (s->unsupervised && sim_hash(sim->seed, 29, 0) % 100 < 70);
    beside_settle(sim, &sim->settings);
    if (sim->replay)
        replay_settings(sim);
    else
        settings_vary(sim, &sim->settings);
    sim->rdzv = rdzv_open(&sim->settings, 0);
    if (s->resumes)
        store_earlier(sim, s->resumes);
    for (int w = 0; w < RM_WORKERS_MAX; w++)
        sim->expected[w] = sim->node_of[w] = -1;
    if (sim->replay)
        replay_begin(sim);
    for (int w = 0; w < s->target && !sim->replay; w++) {
        sim->expected[w] = 0;
        sim_at(sim, sim_time(sim, RM_MS, 80 * RM_MS), EV_SPAWN, w, 0, 0);
    }
    run_send_expect(sim);
    for (int i = 0; i < s->shots; i++) {
        if (!(sim->without >> i & 1))
            sim_at(sim, s->shot[i].at, EV_SHOT, i, 0, 0);
        sim->quiet_since = s->shot[i].at > sim->quiet_since ? s->shot[i].at : sim->quiet_since;
    }
    if (trouble_over(sim) > sim->quiet_since)
        sim->quiet_since = trouble_over(sim);
    pairs_begin(sim);
}

/* ---- events ---- */

static bool trainer_is(const struct sim *sim, const struct ev *e)
{
    const struct trainer *t = &sim->node[e->a].trainer;
    return t->alive && t->epoch == e->b;
}

static void on_connected(struct sim *sim, const struct ev *e)
{
    struct node *n = &sim->node[e->a];
    if (!n->alive)
        return;
    bool open = sim->conn[e->b].cut_agent > sim->now;
    if (open && sim->coord_stopped) { /* the kernel took the connection; nobody speaks on it yet */
        sim_at(sim, sim->now + 5 * RM_MS, EV_CONNECTED, e->a, e->b, 0);
        return;
    }
    if (!open) {
        struct agent_event failed = {.kind = AGENT_DISCONNECTED};
        sim->conn[e->b].agent_told = true;
        node_event(sim, e->a, &failed);
        return;
    }
    n->conn = e->b;
    struct agent_event event = {.kind = AGENT_CONNECTED};
    node_event(sim, e->a, &event);
}

static void on_to_agent(struct sim *sim, struct ev *e)
{
    struct conn *c = &sim->conn[e->a];
    struct node *n = &sim->node[c->node];
    if (c->agent_told || n->conn != e->a) {
        sim->tallies.of[TALLY_MESSAGES_LOST]++;
        return;
    }
    n->heard = e->message->term > n->heard ? e->message->term : n->heard;
    struct agent_event event = {.kind = AGENT_CONTROL, .message = e->message};
    node_event(sim, c->node, &event);
}

static void on_agent_closed(struct sim *sim, const struct ev *e)
{
    struct conn *c = &sim->conn[e->a];
    struct node *n = &sim->node[c->node];
    if (c->agent_told || n->conn != e->a)
        return;
    c->agent_told = true;
    n->conn = -1;
    conn_cut(sim, e->a);
    struct agent_event event = {.kind = AGENT_DISCONNECTED};
    node_event(sim, c->node, &event);
}

static void on_coord_closed(struct sim *sim, const struct ev *e)
{
    struct conn *c = &sim->conn[e->a];
    if (c->coord_told)
        return;
    c->coord_told = true;
    c->coord_open = false;
    if (!c->handed)
        return;
    struct rdzv_event event = {.kind = RDZV_CLOSED, .conn = e->a};
    coord_event(sim, &event);
}

static void on_link_to_trainer(struct sim *sim, struct ev *e)
{
    if (!trainer_is(sim, e))
        return;
    if (e->message->type == MSG_SETUP) {
        trainer_setup(sim, e->a, e->message);
        return;
    }
    struct elastic_event event = {.kind = ELASTIC_LINK, .message = e->message};
    trainer_event(sim, e->a, &event);
}

static void on_trainer_gone(struct sim *sim, const struct ev *e)
{
    if (sim->node[e->a].trainer.epoch != e->b)
        return;
    struct agent_event event = {.kind = AGENT_TRAINER_EXIT, .code = e->c};
    text_copy(event.text, sizeof event.text, "killed by signal 9");
    node_event(sim, e->a, &event);
}

static void on_peer_gone(struct sim *sim, const struct ev *e)
{
    if (!trainer_is(sim, e) || sim->node[e->a].trainer.ring != e->c / 100)
        return;
    struct elastic_event event = {.kind = ELASTIC_PEER_GONE, .peer = e->c % 100 - 1};
    trainer_event(sim, e->a, &event);
}

static void on_stored(struct sim *sim, struct ev *e)
{
    struct node *n = &sim->node[e->a];
    if (e->stored->kind == AGENT_WRITTEN)
        n->store_users--;
    if (e->stored->kind == AGENT_LOADED) {
        n->loads--;
        e->stored->given_up = n->load_stop;
        e->stored->ok = e->stored->ok && !n->load_stop;
    }
    if (e->stored->kind == AGENT_PUBLISHED && e->b >= 0 && n->alive)
        store_stands(sim, e->b);
    node_event(sim, e->a, e->stored);
}

static void on_agent_tick(struct sim *sim, const struct ev *e)
{
    if (sim->node[e->a].tick_at != e->at)
        return;
    sim->node[e->a].tick_at = -1;
    struct agent_event event = {.kind = AGENT_TICK};
    node_event(sim, e->a, &event);
}

static void on_coord_tick(struct sim *sim, const struct ev *e)
{
    if (sim->coord_tick_at != e->at || !sim->rdzv)
        return;
    sim->coord_tick_at = -1;
    enum rdzv_state before = rdzv_state(sim->rdzv);
    struct rdzv_event event = {.kind = RDZV_TICK};
    coord_event(sim, &event);
    if (!sim->rdzv)
        return;
    bool spinning = rdzv_state(sim->rdzv) == before && sim->coord_tick_at == sim->now + RM_US;
    sim->spins = spinning ? sim->spins + 1 : 0;
    if (sim->spins > 100)
        sim_fail(sim, "the coordinator's timer spins in %s", rdzv_state_name(before));
}

static bool current_command(const struct sim *sim, const struct ev *e)
{
    return trainer_is(sim, e) && sim->node[e->a].trainer.command_seq == e->c;
}

static void on_connect_failed(struct sim *sim, const struct ev *e)
{
    struct agent_event failed = {.kind = AGENT_DISCONNECTED};
    node_event(sim, e->a, &failed);
}

static void on_opened(struct sim *sim, const struct ev *e)
{
    if (trainer_is(sim, e))
        trainer_opened(sim, e->a);
}

static void on_spawn(struct sim *sim, const struct ev *e)
{
    if (!sim->ended && sim->expected[e->a] == e->b)
        node_spawn(sim, e->a, e->b, false);
}

static void on_term(struct sim *sim, const struct ev *e)
{
    struct agent_event event = {.kind = AGENT_TERM, .deadline = e->b * RM_MS};
    sim->node[e->a].termed = true;
    node_event(sim, e->a, &event);
}

static void on_link_to_agent(struct sim *sim, const struct ev *e)
{
    struct agent_event event = {.kind = AGENT_LINK, .message = e->message};
    if (sim->node[e->a].trainer.epoch == e->b)
        node_event(sim, e->a, &event);
}

static void for_trainer(struct sim *sim, struct ev *e)
{
    switch (e->kind) {
    case EV_LINK_TO_TRAINER:
        on_link_to_trainer(sim, e);
        break;
    case EV_OPENED:
        on_opened(sim, e);
        break;
    case EV_COMPUTED:
        if (current_command(sim, e))
            exchange_arrive(sim, e->a);
        break;
    case EV_HEADER:
        if (current_command(sim, e))
            exchange_header(sim, e->a);
        break;
    case EV_WORDS:
        if (current_command(sim, e))
            exchange_words(sim, e->a);
        break;
    case EV_DONE:
        if (current_command(sim, e))
            compute_done(sim, e->a, e->result);
        break;
    case EV_PEER_GONE:
        on_peer_gone(sim, e);
        break;
    case EV_PULSE:
        if (trainer_is(sim, e))
            trainer_pulse(sim, e->a);
        break;
    default:
        break;
    }
}

static void for_agent(struct sim *sim, struct ev *e)
{
    switch (e->kind) {
    case EV_TO_AGENT:
        on_to_agent(sim, e);
        break;
    case EV_AGENT_CLOSED:
        on_agent_closed(sim, e);
        break;
    case EV_CONNECTED:
        on_connected(sim, e);
        break;
    case EV_CONNECT_FAILED:
        on_connect_failed(sim, e);
        break;
    case EV_LINK_TO_AGENT:
        on_link_to_agent(sim, e);
        break;
    case EV_TRAINER_GONE:
        on_trainer_gone(sim, e);
        break;
    case EV_STORED:
        on_stored(sim, e);
        break;
    case EV_AGENT_TICK:
        on_agent_tick(sim, e);
        break;
    case EV_TERM:
        on_term(sim, e);
        break;
    case EV_NOTICE:
        notice_heard(sim, e);
        break;
    case EV_LIE:
        liar_speaks(sim, e);
        break;
    default:
        break;
    }
}

static void for_coordinator(struct sim *sim, struct ev *e)
{
    switch (e->kind) {
    case EV_TO_COORD:
        coord_message(sim, e->a, e->message);
        break;
    case EV_COORD_CLOSED:
        on_coord_closed(sim, e);
        break;
    case EV_COORD_TICK:
        on_coord_tick(sim, e);
        break;
    case EV_EXPECT:
    case EV_ACT:
        coord_event(sim, e->command);
        break;
    default:
        break;
    }
}

static void for_the_world(struct sim *sim, struct ev *e)
{
    switch (e->kind) {
    case EV_SPAWN:
        on_spawn(sim, e);
        break;
    case EV_SHOT:
        run_shot(sim, e->a);
        break;
    case EV_WALL:
        if (e->b)
            pairs_wall_falls(sim, e->a);
        else
            pairs_wall_rises(sim, e->a);
        break;
    case EV_COORD_START:
        coord_start(sim);
        break;
    case EV_REAPED:
        run_reaps(sim, e->a);
        break;
    case EV_COORD_REPLACED:
        if (sim->coord_stopped && sim->coord_stops == e->b)
            coord_die(sim);
        break;
    case EV_DEADLINE:
        notice_deadline(sim, e->a);
        break;
    case EV_RELIEVE:
        notice_relieve(sim);
        break;
    case EV_MACHINES:
        replay_moment(sim, e->a, e->b);
        break;
    case EV_RESUME:
        pause_resume(sim, e->a, (enum pause_part)e->c, e->b);
        break;
    default:
        break;
    }
}

/* What is put aside for a process that stands still is emptied here. */
void sim_handle(struct sim *sim, struct ev *e)
{
    if (pause_holds(sim, e))
        return;
    for_coordinator(sim, e);
    for_agent(sim, e);
    for_trainer(sim, e);
    for_the_world(sim, e);
}

static bool all_dead(const struct sim *sim)
{
    for (int i = 0; i < sim->nodes; i++) {
        if (sim->node[i].alive)
            return false;
    }
    return true;
}

static void clear(struct sim *sim)
{
    struct ev e;
    while (sim_next(sim, &e))
        ev_clear(&e);
    free(sim->heap);
    sim->heap = NULL;
    rdzv_free(sim->rdzv);
    pause_forget(&sim->coord_inbox);
    for (int i = 0; i < sim->nodes; i++) {
        struct node *n = &sim->node[i];
        pause_forget(&n->inbox);
        pause_forget(&n->trainer.inbox);
        agent_free(n->agent);
        elastic_free(n->trainer.elastic);
        free(n->last_stopped);
    }
}

struct sim *sim_new(void)
{
    struct sim *sim = calloc(1, sizeof *sim);
    if (!sim)
        return NULL;
    sim->rout = calloc(1, sizeof *sim->rout);
    sim->aout = calloc(1, sizeof *sim->aout);
    sim->eout = calloc(1, sizeof *sim->eout);
    if (sim->rout && sim->aout && sim->eout)
        return sim;
    sim_free(sim);
    return NULL;
}

void sim_free(struct sim *sim)
{
    if (!sim)
        return;
    free(sim->rout);
    free(sim->aout);
    free(sim->eout);
    free(sim);
}

/* What belongs to the caller stays. */
static void reset(struct sim *sim, uint64_t seed)
{
    struct rdzv_out *rout = sim->rout;
    struct agent_out *aout = sim->aout;
    struct elastic_out *eout = sim->eout;
    char(*tail)[TAIL_WIDTH] = sim->tail;
    enum plant plant = sim->plant;
    bool trace = sim->trace, crowd = sim->crowd, listens = sim->listens;
    uint32_t without = sim->without;
    struct replay *replay = sim->replay;
    memset(sim, 0, offsetof(struct sim, node));
    sim->rout = rout;
    sim->aout = aout;
    sim->eout = eout;
    sim->tail = tail;
    sim->plant = plant;
    sim->trace = trace;
    sim->crowd = crowd;
    sim->listens = listens;
    sim->without = without;
    sim->replay = replay;
    sim->seed = sim->rng = seed;
    sim->coord_tick_at = -1;
    sim->term = TERM;
    sim->saved_told = sim->evaluated_told = sim->ring_told = sim->last_word = -1;
}

/* The run must end this long after nothing disturbs it any more. */
static rm_time limit(const struct sim *sim)
{
    if (sim->replay)
        return sim->replay->until;
    rm_time starts = sim->settings.start_timeout > usual_start ? sim->settings.start_timeout : usual_start;
    return sim->quiet_since + long_after + starts +
           sim->scenario.steps * (20 * sim->scenario.step_time + sim->scenario.write_within);
}

/* True where every invariant held. Plant, crowd, trace, tail, replay, the shots left out and the lists are
 * the caller's. */
static _Thread_local struct sim *playing;
static _Thread_local jmp_buf out_of_it;

/* A core that finds its own state impossible has a bug, which is this seed's. */
static void on_assertion(const char *sentence)
{
    sim_fail(playing, "%s", sentence);
    longjmp(out_of_it, 1);
}

static void play(struct sim *sim)
{
    struct ev e;
    begin(sim);
    while (!sim->violation[0] && sim_next(sim, &e)) {
        sim->now = e.at;
        bool over = sim->now > limit(sim) || ++sim->events > EVENTS_MAX || (sim->ended && all_dead(sim));
        if (!over) {
            sim_handle(sim, &e);
            still_look(sim);
        }
        ev_clear(&e);
        if (over)
            break;
    }
    if (sim->replay)
        replay_over(sim);
    else if (!sim->violation[0])
        check_end(sim);
}

bool sim_run(struct sim *sim, uint64_t seed)
{
    reset(sim, seed);
    draw_scenario(sim);
    playing = sim;
    assertion_hook = on_assertion;
    if (!setjmp(out_of_it))
        play(sim);
    assertion_hook = NULL;
    clear(sim);
    return !sim->violation[0];
}
