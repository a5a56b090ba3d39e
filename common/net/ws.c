/* WebSockets and GET over libwebsockets on the project's loop: sockets are accepted here, behind the door
 * (door.h), and given to the library once there is a place for them. */
#include "common/net/ws.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <libwebsockets.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/address.h"
#include "common/base/assert.h"
#include "common/base/limits.h"
#include "common/net/door.h"
#include "common/os/descriptors.h"
#include "common/os/endpoint.h"
#include "common/os/fault.h"

enum {
    ACCEPTS_PER_TURN = 64,
    HTTP_BODY_MAX = 4 << 20,
    CLOSE_SECONDS = 2, /* for what is queued to leave a connection that is being closed */
    GETS_WAITING_MAX = 32,
    GET_PATH_MAX = 256,
    QUERY_MAX = 640, /* more than an operator has to say of all of a job's workers */
    ACCEPT_MAX = 1024,
    HOST_MAX = 256,
    BACKLOG = 1024,
    /* descriptors of libwebsockets besides the connections: its own, outgoing ones, those sent away */
    WSI_RESERVE = 64 + ACCEPTS_PER_TURN,
};

static const rm_time stranger_within = 5 * RM_S;

static const char subprotocol[] = "ringmaster.v1";

struct frame {
    struct frame *next;
    size_t length;
    unsigned char bytes[]; /* LWS_PRE bytes of room, then the text */
};

struct ws {
    struct loop *loop;
    struct ws_options options;
    struct lws_context *context;
    struct lws_vhost *vhost;
    struct lws_protocols protocols[2];
    int listener, port;
    struct door door;
    struct loop_timer *timer; /* of strangers, and of accepting again */
    rm_time accept_again;     /* RM_NEVER: it accepts */
    struct ws_conn *waiting;  /* GETs without an answer yet */
    int gets_waiting;
    struct loop_watch *watch;
    bool ending;
};

struct ws_conn {
    struct door_entry entry; /* of an incoming one */
    struct ws *ws;
    struct lws *wsi;
    void *owner;
    bool incoming, reached, opened, closing;
    bool starting; /* inside ws_connect: a failure is its result, not a callback */
    struct str in;
    struct frame *first, *last;
    size_t queued;
    char peer[RM_ADDRESS_MAX];
    char why[RM_WHY_MAX]; /* of ws_close */
    /* of a GET */
    char path[GET_PATH_MAX], query[QUERY_MAX], accept[ACCEPT_MAX];
    rm_time asked;
    struct ws_conn *next_waiting;
    int status; /* whose head has not left yet, else 0 */
    const char *type;
    struct str body;
};

static struct ws_conn *conn_new(struct ws *ws, bool incoming)
{
    struct ws_conn *conn = calloc(1, sizeof *conn);
    if (!conn)
        return NULL;
    conn->ws = ws;
    conn->incoming = incoming;
    conn->in = str_init(RM_FRAME_MAX + 1);
    conn->body = str_init(HTTP_BODY_MAX);
    return conn;
}

static void stop_waiting(struct ws_conn *conn)
{
    struct ws_conn **at = &conn->ws->waiting;
    while (*at && *at != conn)
        at = &(*at)->next_waiting;
    if (!*at)
        return;
    *at = conn->next_waiting;
    conn->entry.waits = false;
    conn->ws->gets_waiting--;
}

static void conn_free(struct ws_conn *conn)
{
    stop_waiting(conn);
    for (struct frame *frame = conn->first, *next; frame; frame = next) {
        next = frame->next;
        free(frame);
    }
    door_leave(&conn->ws->door, &conn->entry);
    str_clear(&conn->in);
    str_clear(&conn->body);
    free(conn);
}

/* In a turn of its own. libwebsockets looks at its times only where something comes for it, which from one
 * that nobody answers nothing does: it is woken. */
static void conn_kill(struct ws_conn *conn)
{
    lws_set_timeout(conn->wsi, PENDING_TIMEOUT_AWAITING_CONNECT_RESPONSE, LWS_TO_KILL_ASYNC);
    lws_cancel_service(conn->ws->context);
}

/* At once, but in a turn of its own: this may be called in the middle of another connection's affairs. */
static void send_away(struct ws_conn *conn, const char *why)
{
    door_leave(&conn->ws->door, &conn->entry);
    if (!conn->closing)
        text_copy(conn->why, sizeof conn->why, why);
    conn->closing = true;
    conn_kill(conn);
}

static struct ws_conn *conn_of(struct door_entry *entry)
{
    return (struct ws_conn *)((char *)entry - offsetof(struct ws_conn, entry));
}

static void send_surplus_away(struct ws *ws)
{
    struct door_entry *entry;
    while ((entry = door_surplus(&ws->door)))
        send_away(conn_of(entry), "too many come whom nobody knows: the oldest is closed");
}

static void timer_arm(struct ws *ws)
{
    rm_time late = door_deadline(&ws->door);
    loop_timer_set(ws->timer, late < ws->accept_again ? late : ws->accept_again);
}

static void timer_fired(void *ctx)
{
    struct ws *ws = ctx;
    struct door_entry *entry;
    rm_time now = loop_now(ws->loop);
    while ((entry = door_late(&ws->door, now)))
        send_away(conn_of(entry), "it did not say in time who it is");
    if (ws->accept_again <= now) {
        ws->accept_again = RM_NEVER;
        loop_watch_set(ws->watch, LOOP_READABLE);
    }
    timer_arm(ws);
}

/* The connection's end, told once; what libwebsockets still does with the socket is its own affair. */
static void conn_end(struct ws_conn *conn, const char *why)
{
    struct ws *ws = conn->ws;
    if (conn->wsi)
        lws_set_opaque_user_data(conn->wsi, NULL);
    bool tell = !ws->ending && !conn->starting && (conn->opened || !conn->incoming);
    if (tell)
        ws->options.closed(ws->options.ctx, conn, conn->why[0] ? conn->why : why);
    if (!conn->starting)
        conn_free(conn);
    else
        conn->wsi = NULL;
}

/* What goes out in two parts, as an answer's head and body do, is not held back until the other side has
 * acknowledged the first one, for which it may take 40 ms. */
static void send_at_once(const struct ws_conn *conn)
{
    int one = 1;
    setsockopt(lws_get_socket_fd(conn->wsi), IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

static void conn_opened(struct ws_conn *conn)
{
    send_at_once(conn);
    conn->opened = true;
    conn->ws->options.opened(conn->ws->options.ctx, conn);
}

/* -1 ends the connection, as everywhere in libwebsockets' callbacks. */
static int conn_received(struct ws_conn *conn, const void *bytes, size_t length)
{
    if (conn->closing)
        return 0;
    if (conn->in.length + length > RM_FRAME_MAX || lws_frame_is_binary(conn->wsi)) {
        text_copy(conn->why, sizeof conn->why, "it sent a message that is not text or over the limit");
        return -1;
    }
    str_add(&conn->in, bytes, length);
    if (lws_remaining_packet_payload(conn->wsi) || !lws_is_final_fragment(conn->wsi))
        return 0;
    conn->ws->options.message(conn->ws->options.ctx, conn, str_text(&conn->in), conn->in.length);
    str_reset(&conn->in);
    return 0;
}

static int conn_writable(struct ws_conn *conn)
{
    while (conn->first && !lws_send_pipe_choked(conn->wsi)) {
        struct frame *frame = conn->first;
        if (lws_write(conn->wsi, frame->bytes + LWS_PRE, frame->length, LWS_WRITE_TEXT) < 0)
            return -1;
        FAULT("frame-sent");
        conn->queued -= frame->length;
        conn->first = frame->next;
        if (!conn->first)
            conn->last = NULL;
        free(frame);
    }
    if (conn->first)
        lws_callback_on_writable(conn->wsi);
    else if (conn->closing) {
        lws_close_reason(conn->wsi, LWS_CLOSE_STATUS_NORMAL, NULL, 0);
        conn_end(conn, "closed"); /* now: the other side may be long in answering */
        return -1;
    }
    return 0;
}

/* How many wait who come from the same address, of whatever port. */
static int waiting_beside(const struct ws_conn *conn)
{
    size_t host = (size_t)(strrchr(conn->peer, ':') - conn->peer) + 1;
    int count = 0;
    for (const struct ws_conn *other = conn->ws->waiting; other; other = other->next_waiting)
        count += !strncmp(other->peer, conn->peer, host);
    return count;
}

static bool has_room_to_wait(const struct ws_conn *conn)
{
    const struct ws *ws = conn->ws;
    int each = ws->options.waiting_each;
    return ws->gets_waiting < ws->options.waiting_max && (!each || waiting_beside(conn) < each);
}

/* Asks the user; true: there is an answer to send. */
static bool get_ask(struct ws_conn *conn)
{
    struct ws *ws = conn->ws;
    bool crowded = !conn->entry.waits && !has_room_to_wait(conn);
    struct ws_get get = {.path = conn->path,
                         .query = conn->query,
                         .accept = conn->accept,
                         .waited = crowded ? RM_NEVER : loop_now(ws->loop) - conn->asked};
    conn->type = "text/plain";
    conn->status = ws->options.get ? ws->options.get(ws->options.ctx, &get, &conn->body, &conn->type) : 404;
    if (conn->status == 404 && !conn->body.length)
        str_adds(&conn->body, "there is nothing at this path\n");
    return conn->status != 0;
}

/* Not read meanwhile: libwebsockets would not take in the end of a connection in the middle of an answer, and
 * be called for it again and again. Who went away is found out by the answer. */
static void get_wait(struct ws_conn *conn)
{
    lws_set_timeout(conn->wsi, NO_PENDING_TIMEOUT, 0);
    lws_rx_flow_control(conn->wsi, 0);
    conn->entry.waits = true;
    conn->next_waiting = conn->ws->waiting;
    conn->ws->waiting = conn;
    conn->ws->gets_waiting++;
}

/* The head now, the body once the socket takes it. */
static int http_head(struct ws_conn *conn)
{
    unsigned char room[LWS_PRE + 1024];
    unsigned char *start = room + LWS_PRE, *p = start, *end = room + sizeof room - 1;
    unsigned status = (unsigned)conn->status;
    conn->status = 0;
    if (lws_add_http_common_headers(conn->wsi, status, conn->type, conn->body.length, &p, end) ||
        lws_finalize_write_http_header(conn->wsi, start, &p, end))
        return -1;
    lws_callback_on_writable(conn->wsi);
    return 0;
}

static int http_asked(struct ws_conn *conn, const char *path)
{
    char one[QUERY_MAX];
    struct str query = str_init(QUERY_MAX);
    for (int i = 0; lws_hdr_copy_fragment(conn->wsi, one, sizeof one, WSI_TOKEN_HTTP_URI_ARGS, i) > 0; i++)
        str_addf(&query, "%s%s", i ? "&" : "", one);
    text_copy(conn->query, sizeof conn->query, str_text(&query));
    str_clear(&query);
    if (lws_hdr_copy(conn->wsi, conn->accept, sizeof conn->accept, WSI_TOKEN_HTTP_ACCEPT) <= 0)
        *conn->accept = 0;
    text_copy(conn->path, sizeof conn->path, path);
    send_at_once(conn);
    conn->asked = loop_now(conn->ws->loop);
    bool answered = get_ask(conn);
    if (!answered)
        get_wait(conn);
    door_watch(&conn->ws->door, &conn->entry);
    send_surplus_away(conn->ws);
    return answered ? http_head(conn) : 0;
}

int ws_get_again(struct ws *ws)
{
    for (struct ws_conn *conn = ws->waiting, *next; conn; conn = next) {
        next = conn->next_waiting;
        if (!get_ask(conn))
            continue;
        stop_waiting(conn);
        lws_rx_flow_control(conn->wsi, 1);
        lws_callback_on_writable(conn->wsi);
    }
    return ws->gets_waiting;
}

int ws_gets_waiting(const struct ws *ws)
{
    return ws->gets_waiting;
}

static int http_writable(struct ws_conn *conn)
{
    if (conn->entry.waits)
        return 0;
    if (conn->status)
        return http_head(conn);
    if (!conn->body.length)
        return lws_http_transaction_completed(conn->wsi) ? -1 : 0;
    unsigned char *room = malloc(LWS_PRE + conn->body.length);
    if (!room)
        return -1;
    memcpy(room + LWS_PRE, conn->body.data, conn->body.length);
    int n = lws_write(conn->wsi, room + LWS_PRE, conn->body.length, LWS_WRITE_HTTP_FINAL);
    free(room);
    str_reset(&conn->body);
    return n < 0 || lws_http_transaction_completed(conn->wsi) ? -1 : 0;
}

/* What comes is not a WebSocket (yet): a plain request, or something that is no HTTP at all. */
static int http_event(struct ws_conn *conn, enum lws_callback_reasons reason, const char *in)
{
    if (reason == LWS_CALLBACK_HTTP)
        return http_asked(conn, in);
    if (reason == LWS_CALLBACK_HTTP_WRITEABLE)
        return http_writable(conn);
    return 0;
}

static int ws_event(struct lws *wsi, enum lws_callback_reasons reason, void *user, void *in, size_t length)
{
    (void)user;
    struct ws_conn *conn = lws_get_opaque_user_data(wsi);
    if (!conn)
        return reason == LWS_CALLBACK_SERVER_WRITEABLE || reason == LWS_CALLBACK_CLIENT_WRITEABLE ? -1 : 0;
    switch (reason) {
    case LWS_CALLBACK_CLIENT_APPEND_HANDSHAKE_HEADER: /* TCP stands, and HTTP begins */
        conn->reached = true;
        return 0;
    case LWS_CALLBACK_ESTABLISHED:
    case LWS_CALLBACK_CLIENT_ESTABLISHED:
        conn->wsi = wsi;
        conn_opened(conn);
        return 0;
    case LWS_CALLBACK_RECEIVE:
    case LWS_CALLBACK_CLIENT_RECEIVE:
        return conn_received(conn, in, length);
    case LWS_CALLBACK_SERVER_WRITEABLE:
    case LWS_CALLBACK_CLIENT_WRITEABLE:
        return conn_writable(conn);
    case LWS_CALLBACK_CLIENT_CONNECTION_ERROR:
        conn_end(conn, in ? in : "cannot connect");
        return 0;
    case LWS_CALLBACK_CLOSED:
    case LWS_CALLBACK_CLIENT_CLOSED:
        conn_end(conn, "closed by the other side");
        return 0;
    case LWS_CALLBACK_WSI_DESTROY: /* ended before it became a WebSocket */
        conn_end(conn, "the connection ended before it stood");
        return 0;
    case LWS_CALLBACK_HTTP:
    case LWS_CALLBACK_HTTP_WRITEABLE:
        return http_event(conn, reason, in);
    default:
        return 0;
    }
}

/* An IPv4 address that comes through a socket of both families is written as what it is. */
static void print_peer(const struct endpoint *peer, char *out, size_t size)
{
    char host[INET6_ADDRSTRLEN] = "?";
    static const char mapped[] = "::ffff:";
    bool v4 = peer->any.sa_family == AF_INET;
    inet_ntop(peer->any.sa_family, v4 ? (const void *)&peer->v4.sin_addr : &peer->v6.sin6_addr, host,
              sizeof host);
    bool hidden = !v4 && IN6_IS_ADDR_V4MAPPED(&peer->v6.sin6_addr);
    address_join(out, size, hidden ? host + strlen(mapped) : host, endpoint_port(peer));
}

static void accept_one(struct ws *ws, int fd, const struct endpoint *from)
{
    struct ws_conn *conn = conn_new(ws, true);
    if (!conn) {
        close(fd);
        return;
    }
    print_peer(from, conn->peer, sizeof conn->peer);
    struct lws *wsi = lws_adopt_socket_vhost(ws->vhost, fd); /* closes fd where it fails */
    if (!wsi) {
        conn_free(conn);
        return;
    }
    conn->wsi = wsi;
    lws_set_opaque_user_data(wsi, conn);
    door_enter(&ws->door, &conn->entry, loop_now(ws->loop));
    send_surplus_away(ws);
}

/* The listener stays readable while no descriptor is to be had: it is not looked at for a moment. */
static void accept_later(struct ws *ws)
{
    loop_watch_set(ws->watch, 0);
    ws->accept_again = loop_now(ws->loop) + DESCRIPTORS_PAUSE;
}

static void listener_ready(void *ctx, int events)
{
    (void)events;
    struct ws *ws = ctx;
    for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
        struct endpoint from = {.size = sizeof from.v6};
        int fd = accept4(ws->listener, &from.any, &from.size, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd < 0 && descriptors_short(errno))
            accept_later(ws);
        if (fd < 0)
            break;
        accept_one(ws, fd, &from);
    }
    timer_arm(ws);
}

static int bind_failed(const struct ws_options *options, struct error *err)
{
    if (errno == EADDRINUSE)
        return err_set(err, ERR_MACHINE,
                       "port %d on %s is in use by another program: give another one with --port, or none "
                       "for any free port",
                       options->port, options->address);
    return err_errno(err, ERR_MACHINE, "cannot listen on %s port %d", options->address, options->port);
}

/* "::" is any address of both families, whatever this machine's bindv6only says; where the kernel knows no
 * IPv6 it is any of IPv4. */
static int listener_socket(struct endpoint *at, int port)
{
    int one = 1, zero = 0, kind = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;
    int fd = socket(at->any.sa_family, kind, 0);
    bool any = at->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&at->v6.sin6_addr);
    if (fd < 0 && errno == EAFNOSUPPORT && any && endpoint_of("0.0.0.0", port, at))
        fd = socket(AF_INET, kind, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (at->any.sa_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero);
    return fd;
}

static int listen_on(struct ws *ws, struct error *err)
{
    struct endpoint at;
    if (!endpoint_of(ws->options.address, ws->options.port, &at))
        return err_set(err, ERR_MACHINE, "%s is no address to listen on", ws->options.address);
    ws->listener = listener_socket(&at, ws->options.port);
    if (ws->listener < 0)
        return err_errno(err, ERR_MACHINE, "cannot make a socket");
    if (bind(ws->listener, &at.any, at.size) < 0 || listen(ws->listener, BACKLOG) < 0)
        return bind_failed(&ws->options, err);
    if (getsockname(ws->listener, &at.any, &at.size) < 0)
        return err_errno(err, ERR_MACHINE, "cannot name the port");
    ws->port = endpoint_port(&at);
    if (loop_timer_open(&ws->timer, ws->loop, timer_fired, ws, err) < 0 ||
        loop_watch_open(&ws->watch, ws->loop, ws->listener, listener_ready, ws, err) < 0)
        return -1;
    loop_watch_set(ws->watch, LOOP_READABLE);
    return 0;
}

static unsigned connections_max(const struct ws_options *options)
{
    return (unsigned)(options->strangers_max + options->watchers_max + options->proven_max);
}

/* libwebsockets 4.3 loads its plugin for libuv from the working directory if one lies there, whoever put it
 * there: so it is made in a folder in which nobody can put anything. Where nobody can come back to the
 * working directory (no right to search it) nothing can be loaded from it either. Paths of ours are absolute,
 * so no other thread minds. */
static struct lws_context *context_make(const struct lws_context_creation_info *info)
{
    int here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool moved = here >= 0 && fchdir(here) == 0 && chdir("/proc") == 0;
    struct lws_context *context = lws_create_context(info);
    if (moved)
        RM_ASSERT(fchdir(here) == 0, "the working directory was there a moment ago: %s", strerror(errno));
    if (here >= 0)
        close(here);
    return context;
}

static int context_open(struct ws *ws, struct error *err)
{
    lws_set_log_level(0, NULL);
    ws->protocols[0] = (struct lws_protocols){
        .name = subprotocol, .callback = ws_event, .rx_buffer_size = 1 << 16, .tx_packet_size = RM_FRAME_MAX};
    void *loops[] = {loop_native(ws->loop)};
    struct lws_context_creation_info info = {
        .port = CONTEXT_PORT_NO_LISTEN,
        .protocols = ws->protocols,
        .options = LWS_SERVER_OPTION_LIBUV,
        .foreign_loops = loops,
        .pcontext = &ws->context,
        .fd_limit_per_thread = connections_max(&ws->options) + WSI_RESERVE,
        .uid = (uid_t)-1,
        .gid = (gid_t)-1,
    };
    ws->context = context_make(&info);
    if (!ws->context)
        return err_set(
            err, ERR_MACHINE,
            "cannot start libwebsockets on libuv: is Debian's package libwebsockets-evlib-uv installed?");
    ws->vhost = lws_get_vhost_by_name(ws->context, "default");
    return 0;
}

int ws_open(struct ws **ret, struct loop *loop, const struct ws_options *options, struct error *err)
{
    struct ws *ws = calloc(1, sizeof *ws);
    if (!ws)
        return err_set(err, ERR_MACHINE, "no memory for sockets");
    *ws = (struct ws){
        .loop = loop,
        .options = *options,
        .listener = -1,
        .accept_again = RM_NEVER,
        .door = {.most = {[DOOR_STRANGER] = options->strangers_max,
                          [DOOR_WATCHER] = options->watchers_max,
                          [DOOR_PROVEN] = options->proven_max},
                 .patience = options->stranger_within ? options->stranger_within : stranger_within}};
    if (!ws->options.waiting_max)
        ws->options.waiting_max = GETS_WAITING_MAX;
    if (context_open(ws, err) < 0 || (options->address && listen_on(ws, err) < 0)) {
        ws_free(ws);
        return -1;
    }
    *ret = ws;
    return 0;
}

int ws_port(const struct ws *ws)
{
    return ws->port;
}

void ws_deafen(struct ws *ws)
{
    if (!ws || !ws->watch)
        return;
    ws->accept_again = RM_NEVER;
    loop_watch_set(ws->watch, 0);
}

void ws_free(struct ws *ws)
{
    enum { TURNS_MAX = 1000 };
    if (!ws)
        return;
    ws->ending = true;
    loop_watch_free(ws->watch);
    loop_timer_free(ws->timer);
    if (ws->listener >= 0)
        close(ws->listener);
    /* On a loop that is not its own, libwebsockets needs some turns to close its handles; it sets
     * ws->context to NULL (pcontext) when all is gone. */
    if (ws->context)
        lws_context_destroy(ws->context);
    for (int i = 0; ws->context && i < TURNS_MAX; i++)
        loop_turn(ws->loop, false);
    if (ws->context)
        lws_context_destroy(ws->context);
    free(ws);
}

static int connect_start(struct ws_conn *conn, const char *host, int port, struct error *err)
{
    struct lws_client_connect_info info = {.context = conn->ws->context,
                                           .address = host,
                                           .host = host,
                                           .origin = host,
                                           .port = port,
                                           .path = "/v1/agents",
                                           .protocol = subprotocol,
                                           .local_protocol_name = subprotocol,
                                           .opaque_user_data = conn};
    conn->starting = true;
    struct lws *wsi = lws_client_connect_via_info(&info);
    conn->starting = false;
    if (!wsi) {
        conn_free(conn);
        return err_set(err, ERR_PEER, "cannot connect to %s:%d", host, port);
    }
    conn->wsi = wsi;
    return 0;
}

int ws_connect(struct ws_conn **ret, struct ws *ws, const char *address, struct error *err)
{
    char host[HOST_MAX];
    int port;
    if (!address_split(address, host, sizeof host, &port))
        return err_set(err, ERR_USAGE, "\"%s\" is no address: write HOST:PORT", address);
    struct ws_conn *conn = conn_new(ws, false);
    if (!conn)
        return err_set(err, ERR_MACHINE, "no memory for a connection");
    text_copy(conn->peer, sizeof conn->peer, address);
    if (connect_start(conn, host, port, err) < 0)
        return -1;
    *ret = conn;
    return 0;
}

bool ws_conn_reached(const struct ws_conn *conn)
{
    return conn->reached;
}

void ws_conn_patience(const struct ws_conn *conn, rm_time within)
{
    unsigned ms = within > 0 ? (unsigned)(within / RM_MS) : 0;
    setsockopt(lws_get_socket_fd(conn->wsi), IPPROTO_TCP, TCP_USER_TIMEOUT, &ms, sizeof ms);
}

int ws_send(struct ws_conn *conn, const char *text, size_t length)
{
    if (conn->closing || !conn->opened)
        return -1;
    struct frame *frame = length > RM_FRAME_MAX ? NULL : malloc(sizeof *frame + LWS_PRE + length);
    if (!frame || conn->queued + length > conn->ws->options.queue_max) {
        free(frame);
        ws_close(conn, "it does not read what is sent to it");
        return -1;
    }
    frame->next = NULL;
    frame->length = length;
    memcpy(frame->bytes + LWS_PRE, text, length);
    if (conn->last)
        conn->last->next = frame;
    else
        conn->first = frame;
    conn->last = frame;
    conn->queued += length;
    lws_callback_on_writable(conn->wsi);
    return 0;
}

bool ws_prove(struct ws_conn *conn)
{
    return door_prove(&conn->ws->door, &conn->entry);
}

void ws_close(struct ws_conn *conn, const char *why)
{
    if (conn->closing)
        return;
    conn->closing = true;
    text_copy(conn->why, sizeof conn->why, why);
    if (!conn->opened) {
        conn_kill(conn);
        return;
    }
    lws_set_timeout(conn->wsi, PENDING_TIMEOUT_CLOSE_SEND, CLOSE_SECONDS);
    lws_callback_on_writable(conn->wsi);
}

void ws_conn_set(struct ws_conn *conn, void *owner)
{
    conn->owner = owner;
}

void *ws_conn_get(const struct ws_conn *conn)
{
    return conn->owner;
}

const char *ws_conn_peer(const struct ws_conn *conn)
{
    return conn->peer;
}

bool ws_conn_incoming(const struct ws_conn *conn)
{
    return conn->incoming;
}
