/* The worker's connection to its coordinator: who is called, the handshake, and the seal on what is said. */
#include "agent/contact.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/reach.h"
#include "common/base/address.h"
#include "common/net/resolve.h"
#include "common/net/session.h"
#include "common/os/crypto.h"
#include "common/os/fault.h"
#include "common/os/log.h"

enum { HOST_MAX = 256 };

/* For a handshake of whose job nothing is known yet: its lostAfter, which may be long, is in the welcome. */
static const rm_time first_handshake_within = 10 * RM_S;

/* How far the handshake is. */
enum stage { STAGE_NONE, STAGE_CONNECTING, STAGE_CHALLENGED, STAGE_SAID_HELLO, STAGE_WELCOME };

struct contact {
    struct contact_options options;
    struct ws_conn *conn;    /* NULL: none */
    struct resolve *resolve; /* the name is being looked up; NULL: it is not */
    enum stage stage;
    struct reach reach;
    struct loop_timer *timer; /* for the next look at a try */
    rm_time lost_after;
    uint8_t challenge[MSG_NONCE_BYTES], nonce[MSG_NONCE_BYTES];
    struct msg_hello hello; /* the one said on this connection */
    struct session session;
    struct message *message;
    bool over;
};

static struct session_terms terms_of(const struct contact *contact)
{
    return (struct session_terms){
        .job_key = contact->options.job_key, .challenge = contact->challenge, .nonce = contact->nonce};
}

/* --- a try --- */

static void no_stage(struct contact *contact)
{
    contact->stage = STAGE_NONE;
    loop_timer_set(contact->timer, RM_NEVER);
}

static void not_connected(struct contact *contact, const char *why)
{
    contact->conn = NULL;
    no_stage(contact);
    contact->options.gone(contact->options.ctx, why);
}

static void look_at_try(void *ctx)
{
    struct contact *contact = ctx;
    if (!contact->conn)
        return;
    enum reach_found found =
        reach_look(&contact->reach, ws_conn_reached(contact->conn), loop_now(contact->options.loop));
    loop_timer_set(contact->timer, found == REACH_WAIT ? contact->reach.look : RM_NEVER);
    if (found != REACH_WAIT)
        ws_close(contact->conn,
                 found == REACH_NOBODY ? "nobody is at its address" : "the coordinator does not answer");
}

static void dial(struct contact *contact, const char *address)
{
    struct error err;
    contact->stage = STAGE_CONNECTING;
    reach_begin(&contact->reach, loop_now(contact->options.loop), contact->lost_after);
    loop_timer_set(contact->timer, contact->reach.look);
    if (ws_connect(&contact->conn, contact->options.ws, address, &err) < 0)
        not_connected(contact, err.text);
}

static void resolved(void *ctx, const char *host, const char *why)
{
    struct contact *contact = ctx;
    struct resolve *done = contact->resolve; /* what it found lies in it */
    char address[RM_ADDRESS_MAX], name[HOST_MAX];
    int port = 0;
    contact->resolve = NULL;
    if (host && address_split(contact->options.address, name, sizeof name, &port)) {
        address_join(address, sizeof address, host, port);
        dial(contact, address);
    } else
        not_connected(contact, why);
    resolve_free(done);
}

/* A name may stand for another machine by now. */
void contact_try(struct contact *contact)
{
    struct error err;
    char host[HOST_MAX];
    int port;
    if (contact->conn || contact->resolve || contact->over)
        return;
    bool name =
        address_split(contact->options.address, host, sizeof host, &port) && !resolve_is_address(host);
    if (!name)
        dial(contact, contact->options.address);
    else if (resolve_start(&contact->resolve, contact->options.loop, host, resolved, contact, &err) < 0)
        not_connected(contact, err.text);
}

void contact_know(struct contact *contact, rm_time lost_after)
{
    contact->lost_after = lost_after;
    if (contact->stage > STAGE_CONNECTING)
        ws_conn_patience(contact->conn, reach_patience(lost_after));
}

bool contact_opened(struct contact *contact, struct ws_conn *conn)
{
    if (conn != contact->conn)
        return false;
    log_debug("connected", "coordinator=%s", ws_conn_peer(conn));
    ws_conn_patience(conn, reach_patience(contact->lost_after));
    return true;
}

/* --- what is said --- */

static void hello_complete(struct contact *contact, struct msg_hello *hello)
{
    struct session_terms terms = terms_of(contact);
    memcpy(hello->nonce, contact->nonce, sizeof hello->nonce);
    session_proof(PROOF_HELLO, &terms, hello, hello->proof);
    if (contact->stage != STAGE_CHALLENGED)
        return; /* another hello on a connection that stands */
    contact->hello = *hello;
    contact->stage = STAGE_SAID_HELLO;
    session_init(&contact->session, &terms);
}

void contact_send(struct contact *contact, struct message *message)
{
    if (!contact->conn || contact->stage < STAGE_CHALLENGED)
        return;
    if (message->type == MSG_HELLO)
        hello_complete(contact, &message->hello);
    if (contact->stage < STAGE_SAID_HELLO)
        return; /* hello comes first; what it says replaces this */
    struct str text = str_init(RM_FRAME_MAX), frame = str_init(RM_FRAME_MAX + SEAL_CHARS);
    FAULT("agent-send");
    message_write(message, &text);
    session_seal(&contact->session, &text, &frame);
    ws_send(contact->conn, str_text(&frame), frame.length);
    str_clear(&text);
    str_clear(&frame);
}

/* --- what is heard --- */

static void challenged(struct contact *contact, const char *text, size_t length)
{
    struct error err;
    if (message_read(contact->message, text, length, &err) < 0 || contact->message->type != MSG_CHALLENGE) {
        ws_close(contact->conn, "it does not open like a coordinator");
        return;
    }
    memcpy(contact->challenge, contact->message->challenge.nonce, sizeof contact->challenge);
    crypto_random(contact->nonce, sizeof contact->nonce);
    contact->stage = STAGE_CHALLENGED;
    contact->options.greeted(contact->options.ctx);
}

/* Before a welcome whose proof is right, only `abandon` under the right key is heard. */
static bool is_welcome(struct contact *contact)
{
    const struct message *message = contact->message;
    uint8_t proof[RM_HASH_BYTES];
    struct session_terms terms = terms_of(contact);
    if (message->type == MSG_ABANDON)
        return true;
    session_proof(PROOF_WELCOME, &terms, &contact->hello, proof);
    if (message->type != MSG_WELCOME || !crypto_equal(proof, message->welcome.proof, sizeof proof))
        return false;
    contact->stage = STAGE_WELCOME;
    loop_timer_set(contact->timer, RM_NEVER);
    return true;
}

static void refuse_stranger(struct contact *contact)
{
    ws_close(contact->conn, "someone else's coordinator");
    no_stage(contact);
    contact->options.refused(contact->options.ctx);
}

static void sealed(struct contact *contact, const char *frame, size_t length)
{
    const char *text = NULL;
    size_t text_length = 0;
    struct error err;
    if (session_open(&contact->session, frame, length, &text, &text_length, &err) < 0) {
        refuse_stranger(contact);
        return;
    }
    if (message_read(contact->message, text, text_length, &err) < 0) {
        log_warn("the coordinator's message is refused", "why=\"%s\"", err.text);
        ws_close(contact->conn, err.text);
        return;
    }
    if (contact->stage == STAGE_SAID_HELLO && !is_welcome(contact))
        refuse_stranger(contact);
    else
        contact->options.heard(contact->options.ctx, contact->message);
}

void contact_message(struct contact *contact, const struct ws_conn *conn, const char *frame, size_t length)
{
    if (conn != contact->conn || contact->over || contact->stage == STAGE_NONE)
        return;
    if (contact->stage == STAGE_CONNECTING)
        challenged(contact, frame, length);
    else
        sealed(contact, frame, length);
}

/* --- its end --- */

void contact_hang_up(struct contact *contact, const char *why)
{
    if (contact->conn)
        ws_close(contact->conn, why);
}

void contact_closed(struct contact *contact, const struct ws_conn *conn, const char *why)
{
    if (conn == contact->conn)
        not_connected(contact, why);
}

bool contact_up(const struct contact *contact)
{
    return contact->conn;
}

void contact_end(struct contact *contact, const char *why)
{
    contact->over = true;
    resolve_free(contact->resolve);
    contact->resolve = NULL;
    loop_timer_set(contact->timer, RM_NEVER);
    contact_hang_up(contact, why);
}

int contact_open(struct contact **ret, const struct contact_options *options, struct error *err)
{
    struct contact *contact = calloc(1, sizeof *contact);
    if (!contact || !(contact->message = calloc(1, sizeof *contact->message))) {
        free(contact);
        return err_set(err, ERR_MACHINE, "no memory for the coordinator's connection");
    }
    contact->options = *options;
    contact->lost_after = first_handshake_within;
    if (loop_timer_open(&contact->timer, options->loop, look_at_try, contact, err) < 0) {
        contact_free(contact);
        return -1;
    }
    *ret = contact;
    return 0;
}

void contact_free(struct contact *contact)
{
    if (!contact)
        return;
    resolve_free(contact->resolve);
    loop_timer_free(contact->timer);
    explicit_bzero(&contact->session, sizeof contact->session);
    free(contact->message);
    free(contact);
}
