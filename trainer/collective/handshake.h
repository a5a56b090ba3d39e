/* The proof that opens every connection between trainers, in both directions, under the job's key.
 *
 * The caller sends a hello (purpose, generation, both ends, nonce); the called side, if it is that end and
 * likes the generation, answers with its own nonce and an HMAC-SHA-256 over everything said so far; the
 * caller checks it and answers with its own. So neither end ever speaks with a stranger, a replayed hello is
 * worth nothing (fresh nonces), and what was meant for another generation or for the dead process whose port
 * somebody else has now fails. The job's name is in the MACs and never on the wire, nor is the key. */
#ifndef RM_COLLECTIVE_HANDSHAKE_H
#define RM_COLLECTIVE_HANDSHAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "trainer/collective/socket.h"

enum {
    HANDSHAKE_KEY = 32,
    HANDSHAKE_NONCE = 16,
    HANDSHAKE_HELLO = 64,   /* bytes on the wire, caller to called */
    HANDSHAKE_ANSWER = 48,  /* called to caller: nonce, MAC */
    HANDSHAKE_CONFIRM = 32, /* caller to called: MAC */
    HANDSHAKE_STREAMS = 8,
};

enum handshake_purpose {
    HANDSHAKE_RING = 1,
    HANDSHAKE_TRANSFER = 2,
    HANDSHAKE_PROBE = 3, /* only to see that the port answers: nothing follows */
};

/* (term, n), compared in that order. */
struct ring_generation {
    int64_t term, n;
};

/* <0, 0, >0 as a is older than, the same as, or newer than b. */
int ring_generation_compare(struct ring_generation a, struct ring_generation b);

struct handshake_end {
    int worker;
    uint64_t incarnation;
};

/* What a connection is for, and who speaks to whom. */
struct handshake_claim {
    enum handshake_purpose purpose;
    struct ring_generation generation;
    struct handshake_end from, to;
    int stream; /* of a ring's connections between the same two, which this is: 0 to HANDSHAKE_STREAMS - 1 */
};

struct handshake_secret {
    char job[64];
    uint8_t key[HANDSHAKE_KEY];
};

/* The whole of the caller's side on a fresh connection. ERR_PROTOCOL where the proof is wrong. */
int handshake_call(int fd, const struct handshake_secret *secret, const struct handshake_claim *claim,
                   const struct patience *patience, struct error *err);

/* The called side, in steps that do not wait, for a thread that serves many (trainer/io/data_port.c): bytes
 * in, bytes out. handshake_answer reads a hello into *ret_claim and writes the answer (the caller of this
 * function decides by the claim whether to send it); handshake_confirmed checks the last message. */
struct handshake_called {
    uint8_t said[HANDSHAKE_HELLO + HANDSHAKE_NONCE]; /* hello and our nonce: what the MACs cover */
};
int handshake_answer(struct handshake_called *h, const struct handshake_secret *secret,
                     const uint8_t hello[HANDSHAKE_HELLO], struct handshake_claim *ret_claim,
                     uint8_t answer[HANDSHAKE_ANSWER], struct error *err);
bool handshake_confirmed(const struct handshake_called *h, const struct handshake_secret *secret,
                         const uint8_t confirm[HANDSHAKE_CONFIRM]);

#endif
