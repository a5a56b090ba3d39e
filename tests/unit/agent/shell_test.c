/* The two programs as processes, met through their pipes and ports. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "agent/app.h"
#include "common/loop/stream.h"
#include "common/net/http.h"
#include "common/net/ws.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "coordinator/coordinator.h"

struct desk {
    struct loop *loop;
    struct ws *ws;
    struct http *http;
    struct lines *events; /* the child's stdout */
    struct job_files files;
    pid_t child;
    int commands; /* the child's stdin */
    char address[RM_ADDRESS_MAX];
    char metrics[RM_ADDRESS_MAX]; /* of the port that has nothing else; "" */
    int metrics_port;             /* that a coordinator is asked for; -1: none */
    char log[4096];
    /* as a stand-in for one side of a control connection */
    struct ws_conn *conn;
    uint8_t key[JOB_KEY_BYTES];
    uint8_t challenge[MSG_NONCE_BYTES];
    struct session session;
    bool sealed;
    struct message message;
};

static void note(struct desk *d, const char *what, const char *text)
{
    size_t used = strlen(d->log);
    snprintf(d->log + used, sizeof d->log - used, "%s(%.80s)\n", what, text);
}

static void until(struct desk *d, const char *text)
{
    rm_time end = clock_now() + 30 * RM_S;
    while (!strstr(d->log, text)) {
        cr_assert_lt(clock_now(), end, "never came: %s; log:\n%s", text, d->log);
        loop_turn(d->loop, true);
    }
}

static void make_job(struct desk *d)
{
    struct job_spec *spec = &d->files.spec;
    job_spec_defaults(spec);
    spec->steps = 10;
    spec->threads = 1;
    text_copy(spec->name, sizeof spec->name, "tiny");
    spec->workers.min = 1;
    spec->workers.max = spec->workers.target = 2;
    spec->model.shape =
        (struct model_shape){.layers = 1, .heads = 1, .width = 4, .context = 4, .vocabulary = 256};
    spec->batch.lanes = spec->batch.lane_sequences = 2;
    spec->checkpoint.keep = 1;
    spec->elasticity.lost_after = 30 * RM_S;
    spec->elasticity.heartbeat = 20 * RM_MS;
    text_copy(spec->checkpoint.uri, sizeof spec->checkpoint.uri, "file:///nonexistent/checkpoints");
    memset(d->files.key, 7, sizeof d->files.key);
    memset(d->key, 7, sizeof d->key);
    d->files.spec_text = str_init(MSG_SPEC_MAX - 1);
    job_spec_write(spec, &d->files.spec_text);
}

static void send_message(struct desk *d, const struct message *message)
{
    struct str text = str_init(RM_FRAME_MAX), frame = str_init(RM_FRAME_MAX + SEAL_CHARS);
    message_write(message, &text);
    if (d->sealed) {
        session_seal(&d->session, &text, &frame);
        ws_send(d->conn, str_text(&frame), frame.length);
    } else
        ws_send(d->conn, str_text(&text), text.length);
    str_clear(&text);
    str_clear(&frame);
}

static struct session_terms terms(struct desk *d, const uint8_t *nonce, bool coordinator)
{
    return (struct session_terms){
        .job_key = d->key, .challenge = d->challenge, .nonce = nonce, .coordinator = coordinator};
}

/* As an agent: worker 0 says hello under d->key. */
static void answer_challenge(struct desk *d, const char *text, size_t length)
{
    static const uint8_t nonce[MSG_NONCE_BYTES] = "the nonce of a test";
    struct msg_hello *hello = &d->message.hello;
    cr_assert_eq(message_read(&d->message, text, length, NULL), 0);
    cr_assert_eq(d->message.type, MSG_CHALLENGE);
    memcpy(d->challenge, d->message.challenge.nonce, sizeof d->challenge);
    d->message = (struct message){.type = MSG_HELLO};
    hello->protocol = MSG_PROTOCOL;
    text_copy(hello->job, sizeof hello->job, "tiny");
    hello->incarnation = 1;
    hello->agent_pid = getpid();
    memcpy(hello->nonce, nonce, sizeof nonce);
    struct session_terms t = terms(d, nonce, false);
    session_proof(PROOF_HELLO, &t, hello, hello->proof);
    session_init(&d->session, &t);
    d->sealed = true;
    send_message(d, &d->message);
}

/* As a coordinator: welcome under d->key. */
static void answer_hello(struct desk *d, const char *frame, size_t length)
{
    const char *text = NULL;
    size_t text_length = 0;
    uint8_t proof[RM_HASH_BYTES];
    cr_assert_eq(session_peek(frame, length, &text, &text_length, NULL), 0);
    cr_assert_eq(message_read(&d->message, text, text_length, NULL), 0);
    cr_assert_eq(d->message.type, MSG_HELLO);
    note(d, "hello", d->message.hello.job);
    struct msg_hello hello = d->message.hello;
    struct session_terms t = terms(d, hello.nonce, true);
    session_init(&d->session, &t);
    session_open(&d->session, frame, length, &text, &text_length, NULL); /* fails for the wrong key */
    session_proof(PROOF_WELCOME, &t, &hello, proof);
    d->message = (struct message){.type = MSG_WELCOME, .term = 1};
    memcpy(d->message.welcome.proof, proof, sizeof proof);
    d->sealed = true;
    send_message(d, &d->message);
}

static void conn_opened(void *ctx, struct ws_conn *conn)
{
    struct desk *d = ctx;
    d->conn = conn;
    note(d, "opened", "");
    if (!ws_conn_incoming(conn))
        return;
    d->message = (struct message){.type = MSG_CHALLENGE};
    memset(d->challenge, 9, sizeof d->challenge);
    memcpy(d->message.challenge.nonce, d->challenge, sizeof d->challenge);
    d->sealed = false;
    send_message(d, &d->message);
}

static void conn_message(void *ctx, struct ws_conn *conn, const char *frame, size_t length)
{
    struct desk *d = ctx;
    const char *text = NULL;
    size_t text_length = 0;
    struct error err;
    if (!d->sealed && ws_conn_incoming(conn))
        answer_hello(d, frame, length);
    else if (!d->sealed)
        answer_challenge(d, frame, length);
    else if (session_open(&d->session, frame, length, &text, &text_length, &err) < 0)
        note(d, "bad seal", err.text);
    else if (message_read(&d->message, text, text_length, &err) == 0)
        note(d, "told", msg_type_name(d->message.type));
}

static void conn_closed(void *ctx, struct ws_conn *conn, const char *why)
{
    struct desk *d = ctx;
    (void)conn;
    note(d, "closed", why);
    d->sealed = false;
}

static void find_address(const char *line, const char *key, char out[RM_ADDRESS_MAX])
{
    const char *at = strstr(line, key);
    if (!at)
        return;
    at += strlen(key);
    snprintf(out, RM_ADDRESS_MAX, "%.*s", (int)strcspn(at, "\""), at);
}

static void event_line(void *ctx, char *text, size_t length)
{
    struct desk *d = ctx;
    (void)length;
    find_address(text, "\"address\":\"", d->address);
    find_address(text, "\"metrics\":\"", d->metrics);
    note(d, "event", text);
}

static void events_closed(void *ctx, const char *why)
{
    (void)why;
    note(ctx, "child", "has ended");
}

static void page_came(void *ctx, int status, const char *body, size_t length, const char *why)
{
    char text[200];
    (void)length;
    snprintf(text, sizeof text, "%d %s%s", status, body, why);
    note(ctx, "page", text);
}

static void listen_and_connect(struct desk *d)
{
    struct ws_options options = {.address = "127.0.0.1",
                                 .strangers_max = 8,
                                 .watchers_max = 8,
                                 .queue_max = RM_FRAME_MAX,
                                 .opened = conn_opened,
                                 .message = conn_message,
                                 .closed = conn_closed,
                                 .ctx = d};
    cr_assert_eq(loop_open(&d->loop, NULL), 0);
    cr_assert_eq(ws_open(&d->ws, d->loop, &options, NULL), 0);
    cr_assert_eq(http_open(&d->http, d->loop, NULL), 0);
}

/* Forks a child that runs one of the programs with pipes for stdin and stdout. The child touches nothing of
 * this process's loop. */
static void start(struct desk *d, int (*program)(struct desk *d))
{
    int in[2], out[2];
    listen_and_connect(d);
    snprintf(d->address, sizeof d->address, "127.0.0.1:%d", ws_port(d->ws));
    cr_assert_eq(pipe2(in, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(out, O_CLOEXEC), 0);
    d->child = fork();
    if (d->child == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(in[1]);
        _exit(program(d));
    }
    close(in[0]);
    close(out[1]);
    d->commands = in[1];
    struct lines_options options = {
        .fd = out[0], .ceiling = RM_FRAME_MAX, .line = event_line, .closed = events_closed, .ctx = d};
    cr_assert_eq(lines_open(&d->events, d->loop, &options, NULL), 0);
}

static int wait_for_exit(struct desk *d)
{
    int status;
    cr_assert_eq(waitpid(d->child, &status, 0), d->child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void desk_close(struct desk *d)
{
    lines_free(d->events);
    http_free(d->http);
    ws_free(d->ws);
    loop_free(d->loop);
    str_clear(&d->files.spec_text);
    free(d);
}

static int coordinate(struct desk *d)
{
    struct error err = {0};
    int code = coordinator_run(
        &(struct coordinator_options){
            .files = &d->files, .term = 1, .listen = "127.0.0.1", .port = 0, .metrics_port = d->metrics_port},
        &err);
    return code < 0 ? 99 : code;
}

static struct desk *coordinator_start_with(int metrics_port)
{
    struct desk *d = calloc(1, sizeof *d);
    make_job(d);
    d->metrics_port = metrics_port;
    start(d, coordinate);
    until(d, "\"listening\"");
    return d;
}

static struct desk *coordinator_start(void)
{
    return coordinator_start_with(-1);
}

static void dial_at(struct desk *d, const char *address)
{
    struct ws_conn *conn;
    cr_assert_eq(ws_connect(&conn, d->ws, address, NULL), 0);
}

static void dial(struct desk *d)
{
    dial_at(d, d->address);
}

static void read_page_at(struct desk *d, const char *address, const char *path)
{
    char url[128];
    snprintf(url, sizeof url, "http://%s%s", address, path);
    struct http_get get = {.url = url, .within = 20 * RM_S, .body_max = 1 << 20, .done = page_came, .ctx = d};
    cr_assert_eq(http_get(d->http, &get, NULL), 0);
}

static void read_page(struct desk *d, const char *path)
{
    read_page_at(d, d->address, path);
}

static int coordinator_end(struct desk *d)
{
    close(d->commands);
    until(d, "has ended");
    int code = wait_for_exit(d);
    desk_close(d);
    return code;
}

Test(coordinator, it_says_where_it_listens_and_ends_with_its_pipe)
{
    struct desk *d = coordinator_start();
    cr_assert_eq(strncmp(d->address, "127.0.0.1:", 10), 0, "%s", d->address);
    cr_assert_eq(coordinator_end(d), 4);
}

Test(coordinator, watchers_are_answered)
{
    struct desk *d = coordinator_start();
    read_page(d, "/healthz");
    until(d, "page(200 ok");
    read_page(d, "/v1/status");
    until(d, "page(200 {");
    read_page(d, "/metrics");
    until(d, "page(200 #");
    read_page(d, "/else");
    until(d, "page(404");
    coordinator_end(d);
}

Test(coordinator, metrics_have_a_port_of_their_own_at_which_there_is_nothing_else)
{
    static const char *const others[] = {"/v1/status", "/healthz", "/v1/agents", "/"};
    struct desk *d = coordinator_start_with(0);
    cr_assert(*d->metrics && strcmp(d->metrics, d->address) != 0, "%s", d->log);
    read_page_at(d, d->metrics, "/metrics");
    until(d, "page(200 #");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        d->log[0] = 0;
        read_page_at(d, d->metrics, others[i]);
        until(d, "page(");
        cr_assert(strstr(d->log, "page(404"), "%s: %s", others[i], d->log);
    }
    d->log[0] = 0;
    dial_at(d, d->metrics); /* an agent with the key */
    until(d, "closed(");
    cr_assert_not(strstr(d->log, "told("), "%s", d->log);
    d->log[0] = 0;
    read_page(d, "/metrics");
    until(d, "page(200 #");
    dial(d);
    until(d, "told(welcome)");
    coordinator_end(d);
}

Test(coordinator, without_being_asked_it_opens_no_second_port)
{
    struct desk *d = coordinator_start();
    cr_assert_str_eq(d->metrics, "");
    coordinator_end(d);
}

Test(coordinator, a_port_for_metrics_that_is_taken_ends_no_job)
{
    struct desk *other = coordinator_start(), *d;
    int port = 0;
    cr_assert_eq(sscanf(other->address, "127.0.0.1:%d", &port), 1);
    d = coordinator_start_with(port);
    cr_assert_str_eq(d->metrics, "");
    dial(d);
    until(d, "told(welcome)");
    coordinator_end(d);
    coordinator_end(other);
}

/* A connection to the port for metrics that says nothing. */
static int caller(const struct desk *d)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), port = 0;
    cr_assert_eq(sscanf(d->metrics, "127.0.0.1:%d", &port), 1);
    at.sin_port = htons((uint16_t)port);
    cr_assert_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    return fd;
}

static int sockets_of(pid_t pid)
{
    char path[64], to[64];
    int count = 0;
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *folder = opendir(path);
    cr_assert(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        ssize_t length = readlinkat(dirfd(folder), entry->d_name, to, sizeof to);
        count += length > 7 && !strncmp(to, "socket:", 7);
    }
    closedir(folder);
    return count;
}

Test(coordinator, a_crowd_at_the_port_for_metrics_takes_no_more_than_its_places)
{
    enum { CROWD = 300, PLACES = 2 * 16 };
    int fd[CROWD];
    struct desk *d = coordinator_start_with(0);
    int before = sockets_of(d->child);
    for (int i = 0; i < CROWD; i++)
        fd[i] = caller(d);
    read_page_at(d, d->metrics, "/metrics"); /* the last in the row: the others have been accepted */
    until(d, "page(200 #");
    cr_assert_leq(sockets_of(d->child), before + PLACES + 64, "those sent away go in a turn of their own");
    for (int i = 0; i < CROWD; i++)
        close(fd[i]);
    dial(d);
    until(d, "told(welcome)");
    coordinator_end(d);
}

Test(coordinator, an_agent_with_the_key_is_welcome)
{
    struct desk *d = coordinator_start();
    dial(d);
    until(d, "told(welcome)");
    coordinator_end(d);
}

Test(coordinator, a_stranger_without_the_key_is_refused_and_the_next_agent_is_welcome)
{
    struct desk *d = coordinator_start();
    memset(d->key, 8, sizeof d->key);
    dial(d);
    until(d, "closed(");
    cr_assert_null(strstr(d->log, "told("), "%s", d->log);
    memset(d->key, 7, sizeof d->key);
    dial(d);
    until(d, "told(welcome)");
    coordinator_end(d);
}

Test(coordinator, commands_that_make_no_sense_are_left_aside)
{
    static const char commands[] = "garbage\n{\"command\":\"dance\"}\n{}\n";
    struct desk *d = coordinator_start();
    cr_assert_gt(write(d->commands, commands, sizeof commands - 1), 0);
    dial(d);
    until(d, "told(welcome)");
    coordinator_end(d);
}

Test(coordinator, a_port_in_use_is_a_sentence_and_no_event)
{
    struct desk *d = calloc(1, sizeof *d);
    struct error err = {0};
    make_job(d);
    listen_and_connect(d);
    struct coordinator_options options = {
        .files = &d->files, .term = 1, .listen = "127.0.0.1", .port = ws_port(d->ws), .metrics_port = -1};
    cr_assert_eq(coordinator_run(&options, &err), -1);
    cr_assert_eq(err.code, ERR_MACHINE);
    cr_assert(strstr(err.text, "is in use"), "%s", err.text);
    desk_close(d);
}

static int work(struct desk *d)
{
    struct error err = {0};
    int code = app_run(&(struct app_options){.files = &d->files,
                                             .worker = 0,
                                             .attempt = 0,
                                             .coordinator = d->address,
                                             .listen = "127.0.0.1",
                                             .port = -1},
                       &err);
    return code < 0 ? 99 : code;
}

/* The agent dials this test's own server, which welcomes it under a key of these bytes. */
static struct desk *agent_start(uint8_t key)
{
    struct desk *d = calloc(1, sizeof *d);
    char path[RM_URI_MAX];
    make_job(d);
    memset(d->key, key, sizeof d->key);
    cr_assert_eq(file_sibling("fake_trainer", path, sizeof path, NULL), 0);
    setenv("RINGMASTER_TRAINER", path, 1);
    setenv("FAKE_TRAINER", "listens", 1);
    start(d, work);
    return d;
}

Test(agent, it_says_hello_and_ends_with_its_pipe)
{
    struct desk *d = agent_start(7);
    until(d, "hello(tiny)");
    close(d->commands);
    until(d, "has ended");
    cr_assert_eq(wait_for_exit(d), 4);
    desk_close(d);
}

Test(agent, someone_elses_coordinator_is_refused)
{
    struct desk *d = agent_start(8);
    until(d, "has ended");
    cr_assert_eq(wait_for_exit(d), 4);
    cr_assert_null(strstr(d->log, "told("), "%s", d->log);
    close(d->commands);
    desk_close(d);
}

Test(agent, released_it_exits_with_0)
{
    struct desk *d = agent_start(7);
    until(d, "hello(tiny)");
    d->message = (struct message){.type = MSG_RELEASE, .term = 1};
    send_message(d, &d->message);
    until(d, "has ended");
    cr_assert_eq(wait_for_exit(d), 0);
    close(d->commands);
    desk_close(d);
}

Test(agent, asked_to_end_it_says_that_it_leaves)
{
    struct desk *d = agent_start(7);
    until(d, "told(heartbeat)"); /* it has been welcomed; before that it just goes */
    kill(d->child, SIGTERM);
    until(d, "told(leaving)");
    close(d->commands);
    until(d, "has ended");
    wait_for_exit(d);
    desk_close(d);
}
