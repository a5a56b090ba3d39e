/* The coordinator's core between workers that answer what it asks, in any order, and say whatever they like:
 * no word of theirs may fail one of its assertions or come to a number that is none, and what it sends must
 * be what an agent takes. */
#include <stdlib.h>
#include <string.h>

#include "coordinator/core/rdzv.h"
#include "coordinator/status/rdzv_text.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/words.h"

enum { WORKERS = 5, ASKED_MAX = 8, CONNECTIONS = 64, TURNS_MAX = 600 };

/* One that is played: what it last said of itself, and what it was asked and has not answered. */
struct player {
    int conn; /* -1: none */
    int attempt;
    uint64_t incarnation;
    int64_t pid;
    enum msg_phase phase;
    struct msg_generation ring;
    struct msg_state state;
    int asked;
    struct message ask[ASKED_MAX];
};

static struct rdzv *core;
static struct rdzv_out *out;
static struct player player[WORKERS];
static struct message word;
static int conns;
static bool open_conn[CONNECTIONS];
static bool over;
static int64_t steps;
static rm_time now;

/* ---- the job ---- */

static struct rdzv_settings settings_of(struct words *words)
{
    struct rdzv_settings s = {.job = "job", .term = 1 + words_below(words, 3), .lanes = 8};
    s.workers_min = 1 + words_below(words, 3);
    s.workers_max = s.workers_min + words_below(words, 4);
    s.workers_target = s.workers_min + words_below(words, s.workers_max - s.workers_min + 1);
    s.steps = 1 + words_below(words, 24);
    uint8_t flags = words_byte(words), more = words_byte(words);
    s.exact = flags & 1;
    s.allow_mixed_hardware = flags & 2;
    s.resume = !(flags & 4);
    s.brought = (flags & 24) == 24;
    s.program = (flags & 24) == 16;
    s.unsupervised = flags & 32;
    s.leave_unsaved = flags & 64;
    s.max_loss = flags & 128 ? 60 * RM_S : 0;
    s.evaluation_every = more % 4;
    s.checkpoint_every = more / 4 % 4;
    s.save_patience = more & 16 ? 20 * RM_S : 0;
    s.reads_files = more & 32;
    s.step_timeout = more & 64 ? 5 * RM_S : 0;
    s.join_window = RM_S;
    s.heartbeat = 500 * RM_MS;
    s.lost_after = 3 * RM_S;
    s.form_timeout = 10 * RM_S;
    s.start_timeout = 60 * RM_S;
    s.end_timeout = 30 * RM_S;
    s.max_restarts = words_below(words, 4);
    s.within = 600 * RM_S;
    for (int i = 0; i < 4; i++)
        s.rule[i] = (uint8_t)(i % 3);
    if (words_once_in(words, 3))
        s.predecessor = (struct rdzv_predecessor){.given = true,
                                                  .told = words_below(words, 5) - 1,
                                                  .evaluated = -1,
                                                  .saved = words_below(words, 5) - 1,
                                                  .lost_at = now - RM_S,
                                                  .saves.reached = -1};
    return s;
}

/* ---- what it says ---- */

static void note(struct player *p, const struct message *m)
{
    if (p->asked == ASKED_MAX) {
        for (int i = 1; i < ASKED_MAX; i++)
            message_copy(&p->ask[i - 1], &p->ask[i]);
        p->asked--;
    }
    message_copy(&p->ask[p->asked++], m);
}

static void hear(const struct rdzv_action *a)
{
    words_well_formed(a->send.message);
    words_trace("coordinator, to so many:", a->send.count, a->send.message);
    for (int i = 0; i < a->send.count; i++)
        for (int w = 0; w < WORKERS; w++)
            if (player[w].conn == a->send.conn[i])
                note(&player[w], a->send.message);
}

/* Its writer asserts that each event has the members that it should. */
static void tell(const struct rdzv_tell *t)
{
    struct str line = str_init(1 << 20);
    rdzv_tell_print(t, 0, "file:///c", &line);
    str_clear(&line);
}

static void give(const struct rdzv_event *event)
{
    if (over)
        return;
    if (event->kind != RDZV_MESSAGE)
        words_trace_event("event", (int)event->kind, now);
    rdzv_step(core, event, now, out);
    for (int i = 0; i < out->count; i++) {
        const struct rdzv_action *a = &out->action[i];
        if (a->kind == RDZV_SEND)
            hear(a);
        if (a->kind == RDZV_TELL)
            tell(a->tell);
        over |= a->kind == RDZV_END;
    }
    int closed[CONNECTIONS], count = 0;
    for (int i = 0; i < out->count; i++)
        if (out->action[i].kind == RDZV_CLOSE && out->action[i].close < CONNECTIONS && count < CONNECTIONS)
            closed[count++] = out->action[i].close;
    for (int i = 0; i < count; i++) {
        if (!open_conn[closed[i]])
            continue;
        open_conn[closed[i]] = false;
        for (int w = 0; w < WORKERS; w++)
            if (player[w].conn == closed[i])
                player[w].conn = -1;
        give(&(struct rdzv_event){.kind = RDZV_CLOSED, .conn = closed[i]});
    }
}

static void say(const struct player *p, const struct message *m)
{
    if (p->conn < 0)
        return;
    words_trace("worker", (int)(p - player), m);
    give(&(struct rdzv_event){.kind = RDZV_MESSAGE, .conn = p->conn, .message = m});
}

/* ---- what the players say ---- */

static void hello(struct player *p, struct message *m)
{
    message_init(m, MSG_HELLO);
    struct msg_hello *h = &m->hello;
    h->protocol = MSG_PROTOCOL;
    text_copy(h->job, sizeof h->job, "job");
    h->worker = (int)(p - player);
    h->attempt = p->attempt;
    h->incarnation = p->incarnation;
    h->agent_pid = 10 + h->worker;
    h->trainer_pid = p->pid;
    h->phase = p->phase;
    h->ring = p->ring;
    h->state = p->state;
    text_copy(h->address, sizeof h->address, "127.0.0.1:1");
    text_copy(h->fingerprint, sizeof h->fingerprint, "f");
    text_copy(h->data_sha256, sizeof h->data_sha256, "d");
    h->members_count = 3;
    for (int i = 0; i < h->members_count; i++)
        h->member[i] = i;
}

static void connect_player(struct words *words, struct player *p)
{
    if (p->conn >= 0 || conns == CONNECTIONS)
        return;
    p->conn = conns;
    open_conn[conns++] = true;
    p->asked = 0;
    if (words_once_in(words, 4)) { /* another process */
        p->attempt++;
        p->incarnation++;
        p->ring = (struct msg_generation){0};
        p->phase = PHASE_IDLE;
        p->state = (struct msg_state){0};
    }
    p->pid = words_once_in(words, 6) ? 0 : 100 + p->attempt;
    hello(p, &word);
    if (words_once_in(words, 3))
        words_change(words, &word);
    say(p, &word);
}

static void cut_player(struct player *p)
{
    int conn = p->conn;
    if (conn < 0)
        return;
    p->conn = -1;
    open_conn[conn] = false;
    give(&(struct rdzv_event){.kind = RDZV_CLOSED, .conn = conn});
}

static void make_step(struct player *p, struct message *m)
{
    message_init(m, MSG_PROGRESS);
    p->state.held = true;
    p->state.step += p->state.step < INT64_MAX;
    m->progress.step = p->state.step;
    m->progress.loss = 2;
    m->progress.loss_known = true;
    m->progress.numbers = msg_numbers_unknown();
    m->progress.tokens = 1000;
    m->progress.step_time = 100 * RM_MS;
}

static void answer_save(struct player *p, const struct msg_save *save, struct message *m)
{
    message_init(m, MSG_CHECKPOINTED);
    m->checkpointed.step = save->step;
    m->checkpointed.final = save->final;
    m->checkpointed.parts = save->count ? save->count : 1;
    memcpy(m->checkpointed.lineage, p->state.lineage, RM_HASH_BYTES);
    for (int i = 0; i < save->count; i++)
        if (save->worker[i] == p - player)
            m->checkpointed.part = i;
    m->checkpointed.count = 1;
    m->checkpointed.piece[0].bytes = 100;
    m->checkpointed.took = RM_MS;
}

static void answer_form(struct player *p, const struct message *form, struct message *m)
{
    p->ring = form->generation;
    p->phase = PHASE_READY;
    p->state = form->form.resume;
    p->state.held = true;
    message_init(m, MSG_READY);
    m->ready.state = p->state;
    m->ready.trainer_pid = p->pid;
}

static void answer_list(struct words *words, struct message *m)
{
    message_init(m, MSG_CHECKPOINTS);
    m->checkpoints.count = words_below(words, 3);
    for (int i = 0; i < m->checkpoints.count; i++) {
        m->checkpoints.checkpoint[i].step = 2 * (m->checkpoints.count - i);
        text_copy(m->checkpoints.checkpoint[i].data_sha256, RM_HASH_HEX, "d");
    }
}

/* False: it asks for no answer. */
static bool answer(struct words *words, struct player *p, const struct message *asked, struct message *m)
{
    switch (asked->type) {
    case MSG_STOP:
        message_init(m, MSG_STOPPED);
        p->phase = PHASE_STOPPED;
        m->stopped.round = asked->stop.round;
        m->stopped.state = p->state;
        m->stopped.update_step = p->state.held ? p->state.step : -1;
        m->stopped.trainer_pid = p->pid;
        break;
    case MSG_FORM:
        answer_form(p, asked, m);
        break;
    case MSG_GO:
        p->phase = PHASE_TRAINING;
        make_step(p, m);
        break;
    case MSG_SAVE:
        answer_save(p, &asked->save, m);
        break;
    case MSG_LIST:
        answer_list(words, m);
        break;
    case MSG_PUBLISH:
        message_init(m, MSG_PUBLISHED);
        m->published.step = asked->publish.step;
        m->published.final = asked->publish.final;
        m->published.bytes = 100;
        break;
    case MSG_LISTEN:
        message_init(m, MSG_HEARD);
        m->heard.state = p->state;
        break;
    case MSG_PROBE:
        message_init(m, MSG_PROBED);
        m->probed.id = asked->probe.id;
        m->probed.peer = -1;
        break;
    default:
        return false;
    }
    m->generation = p->ring;
    return true;
}

static void train(struct words *words, struct player *p)
{
    bool last = p->state.step >= steps || words_below(words, 8) == 7;
    if (p->phase != PHASE_TRAINING)
        return;
    if (last)
        message_init(&word, MSG_FINISHED);
    else
        make_step(p, &word);
    if (last) {
        word.finished.step = p->state.step;
        word.finished.loss_known = true;
        word.finished.exact = true;
    }
    word.generation = p->ring;
    say(p, &word);
}

static void answer_one(struct words *words, struct player *p, bool changed)
{
    bool some = false;
    while (p->asked && !some) {
        some = answer(words, p, &p->ask[0], &word);
        for (int i = 1; i < p->asked; i++)
            message_copy(&p->ask[i - 1], &p->ask[i]);
        p->asked--;
    }
    if (some && changed)
        words_change(words, &word);
    if (some)
        say(p, &word);
    else
        train(words, p);
}

static void say_anything(struct words *words, struct player *p)
{
    words_message(words, (enum msg_type)words_below(words, MSG_TYPES), &word);
    if (words_below(words, 3))
        word.generation = p->ring;
    say(p, &word);
}

/* ---- what others than workers say, which is as it should be ---- */

static void expect(struct words *words)
{
    struct rdzv_event e = {.kind = RDZV_EXPECT};
    uint8_t who = words_byte(words);
    for (int i = 0; i < WORKERS; i++)
        if (who >> i & 1)
            e.expect.worker[e.expect.count++] = (struct command_worker){i, player[i].attempt, who & 64};
    give(&e);
}

static void relieve(struct words *words)
{
    struct rdzv_event e = {.kind = RDZV_RELIEVE, .relief.stay = words_below(words, 6)};
    for (int i = words_below(words, WORKERS + 1); i > 0; i--) {
        e.relief.one[e.relief.count].worker = i - 1;
        e.relief.one[e.relief.count].by = (enum rdzv_eased_by)((e.relief.stay + i) % 3);
        e.relief.one[e.relief.count].left = (e.relief.stay + i) % 3 == EASED_BY_WILL ? i * 10 * RM_S : 0;
        e.relief.one[e.relief.count++].attempt = player[i - 1].attempt;
    }
    give(&e);
}

static void act(struct words *words)
{
    struct rdzv_event e = {.kind = RDZV_ACT};
    e.act.cause = (enum cause)words_below(words, CAUSE_RING_ERROR + 1);
    e.act.worker = words_below(words, WORKERS);
    e.act.at = now;
    give(&e);
}

static void pass_time(struct words *words, bool to_deadline)
{
    rm_time at = rdzv_deadline(core);
    now += to_deadline ? 0 : words_time(words);
    if (to_deadline && at != RM_NEVER && at > now)
        now = at;
    give(&(struct rdzv_event){.kind = RDZV_TICK});
}

static void turn(struct words *story)
{
    struct words part = words_part(story), *words = &part;
    uint8_t what = words_byte(words);
    struct player *p = &player[words_below(words, WORKERS)];
    now += RM_MS;
    switch (what % 16) {
    case 0:
        connect_player(words, p);
        break;
    case 1:
        cut_player(p);
        break;
    case 2:
    case 3:
        pass_time(words, what % 16 == 2);
        break;
    case 4:
        for (int i = 0; i < WORKERS; i++)
            answer_one(words, &player[i], false);
        break;
    case 5:
        for (int i = 0; i < WORKERS; i++)
            connect_player(words, &player[i]);
        break;
    case 6:
    case 7:
    case 8:
        answer_one(words, p, false);
        break;
    case 9:
    case 10:
        answer_one(words, p, true);
        break;
    case 11:
        if (what / 16 < 3)
            expect(words);
        else if (what / 16 < 6)
            relieve(words);
        else if (what / 16 < 9)
            act(words);
        else if (what / 16 == 15)
            give(&(struct rdzv_event){.kind = RDZV_INTERRUPT});
        else
            pass_time(words, true);
        break;
    default:
        say_anything(words, p);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct words words = {data, size};
    if (!out && !(out = calloc(1, sizeof *out)))
        fuzz_broken("no memory");
    now = 1000 * RM_S;
    conns = 0;
    over = false;
    memset(open_conn, 0, sizeof open_conn);
    for (int i = 0; i < WORKERS; i++) {
        struct player *p = &player[i];
        p->conn = -1;
        p->attempt = p->asked = 0;
        p->incarnation = 1000 * (uint64_t)(i + 1);
        p->pid = 100;
        p->phase = PHASE_IDLE;
        p->ring = (struct msg_generation){0};
        p->state = (struct msg_state){0};
    }
    struct rdzv_settings settings = settings_of(&words);
    steps = settings.steps;
    core = rdzv_open(&settings, now);
    for (int i = 0; i < TURNS_MAX && words.size && !over; i++)
        turn(&words);
    rdzv_free(core);
    return 0;
}
