/* The coordinator's shell: turns frames, timers, signals and lines of text into events of the core
 * (core/rdzv.h), and does what the core returns: sends, closes, tells, ends. It checks proofs and seals, and
 * decides nothing about the ring. */
#include "coordinator/coordinator.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/address.h"
#include "common/loop/stream.h"
#include "common/net/ws.h"
#include "common/os/clock.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"
#include "common/wire/json.h"
#include "coordinator/core/rdzv.h"
#include "coordinator/pod_job.h"
#include "coordinator/settings.h"
#include "coordinator/status/history.h"
#include "coordinator/status/query.h"
#include "coordinator/status/rdzv_text.h"
#include "coordinator/successor.h"

enum {
    PROVEN_MAX = 2 * RM_WORKERS_MAX,    /* each worker's old and new connection */
    STRANGERS_MAX = 2 * RM_WORKERS_MAX, /* all workers may come at once, and strangers before them */
    WATCHERS_MAX = 64,
    SCRAPERS_MAX = 16, /* at the port for metrics: as many, and as many that have not asked yet */
    CONNECTIONS_MAX =
        PROVEN_MAX + 2 * STRANGERS_MAX, /* a stranger that was sent away is there for a moment */
    LINE_MAX_BYTES = 64 * 1024,
    EVENTS_WAITING_MAX = 16 << 20,
    QUEUE_MAX = 4 * RM_FRAME_MAX,
};

static const rm_time hello_within = 5 * RM_S; /* who has not said a good hello by then is closed */
static const rm_time goodbye_within = RM_S;   /* for the last messages to leave */
/* For agents in pods, which nobody else tells that the job is over, to read that and close. */
static const rm_time pod_goodbye_within = 10 * RM_S;
static const rm_time news_within = 25 * RM_S; /* a watcher that waits for news gets none after that */
static const rm_time news_look = RM_S;

/* A control connection. */
struct peer {
    struct ws_conn *conn;
    int id;     /* the core's name for it */
    bool known; /* its hello was verified and handed to the core */
    uint8_t challenge[MSG_NONCE_BYTES];
    uint8_t welcome_proof[RM_HASH_BYTES];
    struct session session;
};

struct coordinator {
    const struct coordinator_options *options;
    struct job_files *files;
    struct loop *loop;
    struct ws *ws;
    struct ws *metrics; /* the port that has nothing else; NULL: there is none */
    struct loop_timer *timer, *pulse, *patience;
    struct loop_signal *term_signal;
    struct lines *commands;
    struct stream *events; /* NULL: stdout is a file and is written directly */
    struct rdzv *rdzv;
    struct rdzv_out *out;
    struct message *message; /* the one being read */
    struct peer *peer[CONNECTIONS_MAX];
    int next_id;
    rm_time heartbeat;
    enum rdzv_state state_logged;
    struct history *history;
    int64_t revision_shown;      /* to those who wait for a newer one */
    rm_time leave_at;            /* told to go: it serves until then, or until no agent is left; RM_NEVER */
    struct successor *successor; /* told to go: whether it is there is looked for; NULL: it is not */
    bool successor_there;
    struct rdzv_relief relief;   /* a watcher says whose machines may go, and the core was not told: */
    bool relief_asked;           /* of this */
    bool mute;                   /* nobody reads the events */
    struct pod_job *preparation; /* NULL: under `ringmaster run`, which did it */
    bool preparing;              /* what the job is is not known yet: agents are not heard */
    char waits_for[MSG_DETAIL_MAX];
    struct error store_waits; /* why a store keeps it preparing, or is another's; code 0: none */
    bool ending;
    rm_time ending_until;
    int exit_code;
};

static void emit(struct coordinator *c, struct str *line)
{
    struct error err;
    str_adds(line, "\n");
    if (c->mute)
        return;
    if (!c->events) {
        if (write(STDOUT_FILENO, line->data, line->length) < 0 && !c->options->pod)
            c->exit_code = EXIT_MACHINE;
    } else if (stream_send(c->events, line->data, line->length, &err) < 0)
        log_warn("an event is lost", "why=\"%s\"", err.text);
}

static struct history_terms terms_of(const struct coordinator *c)
{
    const char *identity = c->options->identity;
    return (struct history_terms){.wall_ms = clock_wall_ms(),
                                  .job = identity ? identity : c->files->spec.name,
                                  .checkpoint_uri = c->files->spec.checkpoint.uri,
                                  .waits_for = c->preparing ? c->waits_for : NULL,
                                  .unfenced =
                                      c->preparation && !c->preparing && !pod_job_is_fenced(c->preparation),
                                  .store_waits = c->store_waits.code ? &c->store_waits : NULL};
}

static void tell_event(struct coordinator *c, const struct rdzv_tell *what)
{
    int64_t wall_ms = clock_wall_ms();
    history_note(c->history, what, wall_ms, loop_now(c->loop));
    if (c->options->pod && (what->kind == TELL_STEP || what->kind == TELL_PROGRESS))
        return; /* a log for people */
    struct str line = str_init(RM_FRAME_MAX);
    rdzv_tell_print(what, wall_ms, c->files->spec.checkpoint.uri, &line);
    emit(c, &line);
    FAULT("coordinator-told");
    str_clear(&line);
}

static void tell_listening(struct coordinator *c)
{
    char at[RM_ADDRESS_MAX];
    struct str line = str_init(1024);
    struct js *event = js_object();
    address_join(at, sizeof at, c->options->listen, ws_port(c->ws));
    js_set_string(event, event_key(EVENT_KEY_EVENT), event_name(EVENT_LISTENING));
    js_set_int(event, event_key(EVENT_KEY_TIME), clock_wall_ms());
    js_set_string(event, event_key(EVENT_KEY_ADDRESS), at);
    if (c->metrics) {
        address_join(at, sizeof at, c->options->listen, ws_port(c->metrics));
        js_set_string(event, event_key(EVENT_KEY_METRICS), at);
    }
    event_assert(event);
    js_print(event, &line);
    js_free(event);
    emit(c, &line);
    str_clear(&line);
}

/* Whoever started us can tell a coordinator that has nothing to say from one that hangs by this. */
static void pulse_fired(void *ctx)
{
    struct coordinator *c = ctx;
    struct str line = str_init(1024);
    rdzv_alive_print(c->rdzv, loop_now(c->loop), clock_wall_ms(), &line);
    emit(c, &line);
    str_clear(&line);
    loop_timer_set(c->pulse, loop_now(c->loop) + c->heartbeat);
}

static struct peer *peer_find(struct coordinator *c, int id)
{
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        if (c->peer[i] && c->peer[i]->id == id)
            return c->peer[i];
    return NULL;
}

static void send_to(struct coordinator *c, struct peer *peer, struct message *message)
{
    struct str text = str_init(RM_FRAME_MAX), frame = str_init(RM_FRAME_MAX + SEAL_CHARS);
    if (message->type == MSG_WELCOME) {
        memcpy(message->welcome.proof, peer->welcome_proof, sizeof peer->welcome_proof);
        text_copy(message->welcome.spec, sizeof message->welcome.spec, str_text(&c->files->spec_text));
    }
    message_write(message, &text);
    session_seal(&peer->session, &text, &frame);
    ws_send(peer->conn, str_text(&frame), frame.length);
    str_clear(&text);
    str_clear(&frame);
}

static void send_all(struct coordinator *c, struct rdzv_action *action)
{
    for (int i = 0; i < action->send.count; i++) {
        struct peer *peer = peer_find(c, action->send.conn[i]);
        FAULT("coordinator-send");
        if (peer)
            send_to(c, peer, action->send.message);
    }
}

static void last_word(struct coordinator *c, int exit_code, const char *why)
{
    struct error err;
    struct str text = str_init(2 * RESULT_BYTES_MAX);
    struct history_terms terms = terms_of(c);
    const struct pod *pod = c->options->pod;
    history_print_result(c->history, &terms, &text);
    int result = c->history->over          ? pod_last_word(pod, str_text(&text), &err)
                 : c->leave_at != RM_NEVER ? pod_say_left(pod, &err)
                                           : pod_say_why(pod, exit_code, why, &err);
    if (result < 0)
        log_warn("the result can't be left behind", "why=\"%s\"", err.text);
    str_clear(&text);
}

static void end_coordinator(struct coordinator *c, int exit_code, const char *why)
{
    FAULT("coordinator-end");
    log_info("ending", "code=%d why=\"%s\"", exit_code, why);
    c->exit_code = exit_code;
    c->ending = true;
    if (c->options->pod)
        last_word(c, exit_code, why);
    bool last = c->options->pod && c->history->over;
    c->ending_until = loop_now(c->loop) + (last ? pod_goodbye_within : goodbye_within);
    bool alone = true;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (!c->peer[i])
            continue;
        /* Who was released closes it, having read that. Closed from here it would be reset where more is on
         * its way to us, and that last word lost, which nobody says again. */
        if (!c->peer[i]->known || !c->history->over)
            ws_close(c->peer[i]->conn, "the job has ended");
        alone = false;
    }
    if (alone)
        loop_stop(c->loop);
}

static void act_on(struct coordinator *c, struct rdzv_action *action)
{
    struct peer *peer;
    switch (action->kind) {
    case RDZV_SEND:
        send_all(c, action);
        return;
    case RDZV_CLOSE:
        if ((peer = peer_find(c, action->close)))
            ws_close(peer->conn, "the coordinator is done with it");
        return;
    case RDZV_TELL:
        tell_event(c, action->tell);
        return;
    case RDZV_END:
        end_coordinator(c, action->end.exit_code, action->end.why);
        return;
    }
}

static void arm_timer(struct coordinator *c)
{
    rm_time deadline = c->ending ? c->ending_until : rdzv_deadline(c->rdzv);
    if (!c->ending && c->leave_at < deadline)
        deadline = c->leave_at;
    if (!c->ending && c->relief_asked)
        deadline = loop_now(c->loop);
    loop_timer_set(c->timer, deadline);
}

/* Who waits for news is asked for anew: there may be some, or it has waited long enough. */
static void answer_watchers(struct coordinator *c)
{
    bool some = ws_gets_waiting(c->ws) && ws_get_again(c->ws);
    loop_timer_set(c->patience, some ? loop_now(c->loop) + news_look : RM_NEVER);
}

static void patience_over(void *ctx)
{
    answer_watchers(ctx);
}

static int agents(const struct coordinator *c)
{
    int n = 0;
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        n += c->peer[i] && c->peer[i]->known;
    return n;
}

/* Told to go, and nobody needs it any more, or its time is over: the next one goes on from what the agents
 * say. */
static void leave_if_free_to(struct coordinator *c)
{
    if (c->ending || c->leave_at == RM_NEVER)
        return;
    if (agents(c) == 0 || loop_now(c->loop) >= c->leave_at)
        end_coordinator(c, 0, "told to go");
    else if (c->successor_there && rdzv_may_hand_over(c->rdzv))
        end_coordinator(c, 0, "told to go, and the successor is there");
}

static void step_coordinator(struct coordinator *c, const struct rdzv_event *event)
{
    if (c->ending)
        return;
    rdzv_step(c->rdzv, event, loop_now(c->loop), c->out);
    for (int i = 0; i < c->out->count; i++)
        act_on(c, &c->out->action[i]);
    if (rdzv_state(c->rdzv) != c->state_logged) {
        c->state_logged = rdzv_state(c->rdzv);
        log_info("state", "name=%s why=\"%s\"", rdzv_state_name(c->state_logged), rdzv_why(c->rdzv));
    }
    history_look(c->history, c->rdzv);
    if (c->history->revision != c->revision_shown)
        answer_watchers(c);
    c->revision_shown = c->history->revision;
    leave_if_free_to(c);
    arm_timer(c);
}

static void timer_fired(void *ctx)
{
    struct coordinator *c = ctx;
    if (c->ending) {
        loop_stop(c->loop);
        return;
    }
    struct rdzv_event event = {.kind = c->relief_asked ? RDZV_RELIEVE : RDZV_TICK, .relief = c->relief};
    c->relief_asked = false;
    step_coordinator(c, &event);
}

static void conn_opened(void *ctx, struct ws_conn *conn)
{
    struct coordinator *c = ctx;
    int slot = 0;
    while (slot < CONNECTIONS_MAX && c->peer[slot])
        slot++;
    bool welcome = !c->ending && !c->preparing;
    struct peer *peer = slot < CONNECTIONS_MAX && welcome ? calloc(1, sizeof *peer) : NULL;
    if (!peer) {
        ws_close(conn, c->preparing ? "the job is still looked at" : "there is no room for it");
        return;
    }
    *peer = (struct peer){.conn = conn, .id = c->next_id++};
    crypto_random(peer->challenge, sizeof peer->challenge);
    c->peer[slot] = peer;
    ws_conn_set(conn, peer);

    struct message *message = c->message;
    message->type = MSG_CHALLENGE;
    message->term = 0;
    message->generation = (struct msg_generation){0};
    memcpy(message->challenge.nonce, peer->challenge, sizeof peer->challenge);
    struct str text = str_init(RM_FRAME_MAX);
    message_write(message, &text);
    ws_send(conn, str_text(&text), text.length);
    str_clear(&text);
}

/* The first frame must be a hello of this job under its key. */
static int hello_verify(struct coordinator *c, struct peer *peer, const char *frame, size_t length,
                        struct error *err)
{
    const char *text = NULL;
    size_t text_length = 0;
    uint8_t proof[RM_HASH_BYTES];
    const struct msg_hello *hello = &c->message->hello;
    if (session_peek(frame, length, &text, &text_length, err) < 0 ||
        message_read(c->message, text, text_length, err) < 0)
        return -1;
    if (c->message->type != MSG_HELLO)
        return err_set(err, ERR_PROTOCOL, "it says %s before hello", msg_type_name(c->message->type));
    struct session_terms terms = {
        .job_key = c->files->key, .challenge = peer->challenge, .nonce = hello->nonce, .coordinator = true};
    session_init(&peer->session, &terms);
    if (session_open(&peer->session, frame, length, &text, &text_length, err) < 0)
        return -1;
    session_proof(PROOF_HELLO, &terms, hello, proof);
    if (!crypto_equal(proof, hello->proof, sizeof proof) ||
        (*hello->job && strcmp(hello->job, c->files->spec.name) != 0))
        return err_set(err, ERR_PROTOCOL, "its proof is not one of this job");
    session_proof(PROOF_WELCOME, &terms, hello, peer->welcome_proof);
    return 0;
}

static int message_open(struct coordinator *c, struct peer *peer, const char *frame, size_t length,
                        struct error *err)
{
    const char *text = NULL;
    size_t text_length = 0;
    if (!peer->known)
        return hello_verify(c, peer, frame, length, err);
    if (session_open(&peer->session, frame, length, &text, &text_length, err) < 0)
        return -1;
    return message_read(c->message, text, text_length, err);
}

static void conn_message(void *ctx, struct ws_conn *conn, const char *frame, size_t length)
{
    struct coordinator *c = ctx;
    struct peer *peer = ws_conn_get(conn);
    struct error err;
    if (!peer || c->ending)
        return;
    if (message_open(c, peer, frame, length, &err) < 0) {
        log_warn(peer->known ? "an agent's message is refused" : "a stranger is refused",
                 "peer=%s why=\"%s\"", ws_conn_peer(conn), err.text);
        ws_close(conn, "refused");
        return;
    }
    if (!peer->known && !ws_prove(conn)) {
        ws_close(conn, "as many agents as there may be are connected");
        return;
    }
    peer->known = true;
    FAULT("coordinator-heard");
    step_coordinator(c, &(struct rdzv_event){.kind = RDZV_MESSAGE, .conn = peer->id, .message = c->message});
}

static void conn_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    struct coordinator *c = ctx;
    struct peer *peer = ws_conn_get(conn);
    if (!peer)
        return;
    log_debug("connection closed", "peer=%s why=\"%s\"", ws_conn_peer(conn), why);
    int left = 0;
    for (int i = 0; i < CONNECTIONS_MAX; i++) {
        if (c->peer[i] == peer)
            c->peer[i] = NULL;
        left += c->peer[i] != NULL;
    }
    if (c->ending && !left)
        loop_stop(c->loop);
    if (peer->known)
        step_coordinator(c, &(struct rdzv_event){.kind = RDZV_CLOSED, .conn = peer->id});
    explicit_bzero(peer, sizeof *peer);
    free(peer);
}

/* The core is told in a turn of its own: what comes of it may answer this question, too. Of one that waits it
 * was told when it came, and a newer one may have been asked since. */
static void note_relief(struct coordinator *c, const struct ws_get *get, const struct query *query)
{
    bool first = get->waited == 0 || get->waited == RM_NEVER;
    if (!c->options->pod || !query->relieves || !first)
        return;
    c->relief = query->relief;
    c->relief_asked = true;
    arm_timer(c);
}

static int http_status(struct coordinator *c, const struct ws_get *get, struct str *body)
{
    struct query query;
    query_read(get->query, &query);
    note_relief(c, get, &query);
    bool news = query.after != c->history->revision;
    if (!news && !c->ending && get->waited < news_within) {
        if (!ws_gets_waiting(c->ws))
            loop_timer_set(c->patience, loop_now(c->loop) + news_look);
        return 0;
    }
    struct history_terms terms = terms_of(c);
    terms.told = query.told;
    history_print_status(c->history, c->rdzv, &terms, loop_now(c->loop), body);
    return 200;
}

static int metrics_get(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    const struct coordinator *c = ctx;
    if (strcmp(get->path, "/metrics") != 0)
        return 404;
    struct exposition page = exposition_begin(body, "ringmaster_", get->accept);
    history_print_metrics(c->history, c->rdzv, loop_now(c->loop), &page);
    exposition_end(&page);
    *type = exposition_type(&page);
    return 200;
}

static int http_get(void *ctx, const struct ws_get *get, struct str *body, const char **type)
{
    struct coordinator *c = ctx;
    if (!strcmp(get->path, "/v1/status")) {
        *type = "application/json";
        return http_status(c, get, body);
    }
    if (strcmp(get->path, "/healthz") != 0)
        return metrics_get(ctx, get, body, type);
    str_adds(body, "ok\n");
    return 200;
}

static void command_line(void *ctx, char *text, size_t length)
{
    struct coordinator *c = ctx;
    struct rdzv_event event;
    struct error err;
    log_debug("command", "text=%s", text);
    if (rdzv_command_read(&event, text, length, &err) < 0)
        log_warn("a command is not understood", "why=\"%s\"", err.text);
    else
        step_coordinator(c, &event);
}

static void commands_closed(void *ctx, const char *why)
{
    struct coordinator *c = ctx;
    (void)why;
    if (!c->ending)
        c->exit_code = EXIT_MACHINE; /* nobody is left who could read why */
    loop_stop(c->loop);
}

static void events_closed(void *ctx, const char *why)
{
    struct coordinator *c = ctx;
    if (!c->options->pod) {
        commands_closed(ctx, why);
        return;
    }
    log_warn("nobody reads the events any more", "why=\"%s\"", why);
    stream_free(c->events);
    c->events = NULL;
    c->mute = true;
}

static void successor_came(void *ctx)
{
    struct coordinator *c = ctx;
    c->successor_there = true;
    step_coordinator(c, &(struct rdzv_event){.kind = RDZV_TICK});
}

static void look_for_successor(struct coordinator *c)
{
    struct error err;
    struct successor_options options = {.address = c->options->name,
                                        .job = terms_of(c).job,
                                        .term = c->options->term,
                                        .there = successor_came,
                                        .ctx = c};
    if (c->options->name && successor_watch(&c->successor, c->loop, &options, &err) < 0)
        log_warn("the successor can't be looked for", "why=\"%s\"", err.text);
}

static void asked_to_end(void *ctx, int signo)
{
    struct coordinator *c = ctx;
    (void)signo;
    if (!c->options->pod) {
        step_coordinator(c, &(struct rdzv_event){.kind = RDZV_INTERRUPT});
    } else if (!c->ending && c->leave_at == RM_NEVER) {
        log_info("told to go", "agents=%d", agents(c));
        c->leave_at = loop_now(c->loop) + pod_leave_within(c->options->pod);
        look_for_successor(c);
        step_coordinator(c, &(struct rdzv_event){.kind = RDZV_TICK});
    }
}

static int open_sockets(struct coordinator *c, struct error *err)
{
    struct ws_options options = {.address = c->options->listen,
                                 .port = c->options->port,
                                 .strangers_max = STRANGERS_MAX,
                                 .watchers_max = WATCHERS_MAX,
                                 .proven_max = PROVEN_MAX,
                                 .stranger_within = hello_within,
                                 .queue_max = QUEUE_MAX,
                                 .opened = conn_opened,
                                 .message = conn_message,
                                 .closed = conn_closed,
                                 .get = http_get,
                                 .ctx = c};
    return ws_open(&c->ws, c->loop, &options, err);
}

static void scraper_opened(void *ctx, struct ws_conn *conn)
{
    (void)ctx;
    ws_close(conn, "there are only metrics here");
}

static void scraper_message(void *ctx, struct ws_conn *conn, const char *text, size_t length)
{
    (void)ctx, (void)conn, (void)text, (void)length; /* never: it is being closed */
}

static void scraper_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    (void)ctx, (void)conn, (void)why;
}

/* Numbers are nothing that a job ends for. */
static void open_metrics(struct coordinator *c)
{
    struct error err;
    struct ws_options options = {.address = c->options->listen,
                                 .port = c->options->metrics_port,
                                 .strangers_max = SCRAPERS_MAX,
                                 .watchers_max = SCRAPERS_MAX,
                                 .queue_max = QUEUE_MAX,
                                 .opened = scraper_opened,
                                 .message = scraper_message,
                                 .closed = scraper_closed,
                                 .get = metrics_get,
                                 .ctx = c};
    if (c->options->metrics_port >= 0 && ws_open(&c->metrics, c->loop, &options, &err) < 0)
        log_warn("metrics have no port of their own", "why=\"%s\"", err.text);
}

static int open_pipes(struct coordinator *c, struct error *err)
{
    struct stream_options events = {
        .fd = STDOUT_FILENO, .ceiling = EVENTS_WAITING_MAX, .closed = events_closed, .ctx = c};
    struct lines_options commands = {.fd = STDIN_FILENO,
                                     .ceiling = LINE_MAX_BYTES,
                                     .line = command_line,
                                     .closed = commands_closed,
                                     .ctx = c};
    if (stream_open(&c->events, c->loop, &events, NULL) < 0)
        c->events = NULL; /* a regular file can't be watched */
    if (c->options->pod)
        return 0;
    if (lines_open(&c->commands, c->loop, &commands, err) < 0)
        return err_wrap(err, "stdin must be a pipe that lives as long as the job");
    return 0;
}

/* ---- before the first agent is heard ---- */

/* The core begins now: the time until here is none of its own. */
static void prepared(void *ctx)
{
    struct coordinator *c = ctx;
    struct rdzv_settings settings = settings_of(c->options);
    struct rdzv *fresh = rdzv_open(&settings, loop_now(c->loop));
    if (fresh) {
        rdzv_free(c->rdzv);
        c->rdzv = fresh;
    }
    c->preparing = false;
    c->store_waits = (struct error){0};
    log_info("the job may begin", "name=%s", c->files->spec.name);
    step_coordinator(c, &(struct rdzv_event){.kind = RDZV_TICK});
}

/* Nobody is needed any more: what was the result is told once more. */
static void complete_already(void *ctx, const struct checkpoint_entry *final)
{
    struct coordinator *c = ctx;
    struct rdzv_tell again = {.kind = TELL_COMPLETE,
                              .step = final->step,
                              .loss = NAN,
                              .goodput = NAN,
                              .exact = final->exact,
                              .bytes = final->bytes};
    memcpy(again.digest, final->weights_sha256, sizeof again.digest);
    tell_event(c, &again);
    end_coordinator(c, 0, "complete already");
}

/* NULL: a store is waited for no more. */
static void store_waits(void *ctx, const struct error *why)
{
    struct coordinator *c = ctx;
    struct rdzv_tell waiting = {.kind = TELL_WAITING, .loss = NAN, .goodput = NAN};
    text_copy(waiting.text, sizeof waiting.text, why ? why->text : "");
    if (c->ending || !strcmp(waiting.text, c->waits_for))
        return;
    text_copy(c->waits_for, sizeof c->waits_for, waiting.text);
    c->store_waits = why ? *why : (struct error){0};
    if (why) {
        log_warn("a store is waited for", "why=\"%s\"", why->text);
        tell_event(c, &waiting);
    } else
        history_news(c->history);
    answer_watchers(c);
}

static void preparation_refused(void *ctx, const struct error *why)
{
    struct coordinator *c = ctx;
    end_coordinator(c, error_exit_code(why->code), why->text);
}

static int start_preparation(struct coordinator *c, struct error *err)
{
    struct pod_job_options options = {.files = c->files,
                                      .successor = c->options->term > 1,
                                      .ready = prepared,
                                      .complete = complete_already,
                                      .waits = store_waits,
                                      .refused = preparation_refused,
                                      .ctx = c};
    if (!c->options->pod)
        return 0;
    c->preparing = true;
    text_copy(c->waits_for, sizeof c->waits_for, "looking at the checkpoints and the data");
    return pod_job_open(&c->preparation, c->loop, &options, err);
}

static int coordinator_open(struct coordinator *c, const struct coordinator_options *options,
                            struct error *err)
{
    struct rdzv_settings settings = settings_of(options);
    c->heartbeat = settings.heartbeat;
    c->options = options;
    c->files = options->files;
    c->leave_at = RM_NEVER;
    c->exit_code = EXIT_MACHINE;
    signal(SIGINT, SIG_IGN); /* Ctrl-C reaches the whole process group; who started us decides */
    fault_who("coordinator");
    if (options->term > 1)
        fault_disarm();
    if (loop_open(&c->loop, err) < 0)
        return -1;
    c->rdzv = rdzv_open(&settings, loop_now(c->loop));
    c->out = calloc(1, sizeof *c->out);
    c->message = calloc(1, sizeof *c->message);
    c->history = calloc(1, sizeof *c->history);
    if (!c->rdzv || !c->out || !c->message || !c->history)
        return err_set(err, ERR_MACHINE, "no memory for the coordinator");
    if (loop_timer_open(&c->timer, c->loop, timer_fired, c, err) < 0 ||
        loop_timer_open(&c->pulse, c->loop, pulse_fired, c, err) < 0 ||
        loop_timer_open(&c->patience, c->loop, patience_over, c, err) < 0 ||
        loop_signal_open(&c->term_signal, c->loop, SIGTERM, asked_to_end, c, err) < 0 ||
        open_sockets(c, err) < 0 || open_pipes(c, err) < 0)
        return -1;
    open_metrics(c);
    return start_preparation(c, err);
}

static void coordinator_close(struct coordinator *c)
{
    successor_free(c->successor); /* it opens sockets, and so does who takes somebody in: see ws_free */
    ws_deafen(c->ws);
    ws_free(c->metrics); /* it turns the loop, and who is heard meanwhile finds all that is there */
    if (c->events)
        stream_drain(c->events, clock_now() + goodbye_within);
    pod_job_free(c->preparation);
    ws_free(c->ws);
    for (int i = 0; i < CONNECTIONS_MAX; i++)
        free(c->peer[i]);
    lines_free(c->commands);
    stream_free(c->events);
    loop_signal_free(c->term_signal);
    loop_timer_free(c->timer);
    loop_timer_free(c->pulse);
    loop_timer_free(c->patience);
    rdzv_free(c->rdzv);
    free(c->out);
    free(c->message);
    free(c->history);
    loop_free(c->loop);
}

int coordinator_run(const struct coordinator_options *options, struct error *err)
{
    struct coordinator *c = calloc(1, sizeof *c);
    if (!c)
        return err_set(err, ERR_MACHINE, "no memory for the coordinator");
    int result = coordinator_open(c, options, err);
    if (result == 0) {
        tell_listening(c);
        history_look(c->history, c->rdzv);
        if (options->watched)
            pulse_fired(c);
        arm_timer(c);
        loop_run(c->loop);
        result = c->exit_code;
    }
    coordinator_close(c);
    free(c);
    return result;
}
