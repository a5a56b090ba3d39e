/* Who speaks on a control connection: proofs in both directions and a seal on every frame.
 *
 * The coordinator opens with `challenge` (its nonce, not sealed). The agent answers with `hello`, which holds
 * the agent's nonce and a proof, and seals that frame already: both nonces and the job key give the
 * connection's two keys, one per direction. Every frame from there on is
 *     64 hex digits of HMAC-SHA-256(key of the direction, number of the frame | text), then the text
 * so that nobody who takes over a port or a connection can say anything, repeat it or leave it out. The key
 * itself is never sent. */
#ifndef RM_NET_SESSION_H
#define RM_NET_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/wire/message.h"

enum { JOB_KEY_BYTES = 32, SEAL_CHARS = 2 * RM_HASH_BYTES };

struct session {
    uint8_t key_in[RM_HASH_BYTES], key_out[RM_HASH_BYTES];
    uint64_t frames_in, frames_out;
};

struct session_terms {
    const uint8_t *job_key;   /* (JOB_KEY_BYTES) */
    const uint8_t *challenge; /* the coordinator's nonce (MSG_NONCE_BYTES) */
    const uint8_t *nonce;     /* the agent's (MSG_NONCE_BYTES) */
    bool coordinator;         /* which side this is */
};

void session_init(struct session *session, const struct session_terms *terms);

/* Replaces *out by the sealed frame of text. */
void session_seal(struct session *session, const struct str *text, struct str *out);
/* The text of a frame, inside the frame; ERR_PROTOCOL where the seal is not that of the next frame. */
int session_open(struct session *session, const char *frame, size_t length, const char **ret_text,
                 size_t *ret_length, struct error *err);
/* The text of a first frame before its seal can be checked: to find the nonce in it, nothing else. */
int session_peek(const char *frame, size_t length, const char **ret_text, size_t *ret_length,
                 struct error *err);

enum proof_role { PROOF_HELLO, PROOF_WELCOME };

/* The proof that `hello` carries and the one that `welcome` answers it with: over the role, the job, the
 * worker, its attempt and incarnation, and both nonces. hello->proof is not read. */
void session_proof(enum proof_role role, const struct session_terms *terms, const struct msg_hello *hello,
                   uint8_t out[RM_HASH_BYTES]);

#endif
