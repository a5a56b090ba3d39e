#include "common/net/session.h"

#include <string.h>

#include "common/os/crypto.h"

static void derive(uint8_t out[RM_HASH_BYTES], const struct session_terms *terms, const char *speaker)
{
    struct str text = str_init(256);
    str_addf(&text, "ringmaster control 1\n%s\n", speaker);
    str_add(&text, terms->challenge, MSG_NONCE_BYTES);
    str_add(&text, terms->nonce, MSG_NONCE_BYTES);
    hmac_sha256(terms->job_key, JOB_KEY_BYTES, text.data, text.length, out);
    str_clear(&text);
}

void session_init(struct session *session, const struct session_terms *terms)
{
    *session = (struct session){0};
    derive(terms->coordinator ? session->key_out : session->key_in, terms, "coordinator");
    derive(terms->coordinator ? session->key_in : session->key_out, terms, "agent");
}

static void seal_of(const uint8_t key[RM_HASH_BYTES], uint64_t number, const char *text, size_t length,
                    uint8_t out[RM_HASH_BYTES])
{
    struct str covered = str_init(RM_FRAME_MAX + sizeof number);
    uint8_t bytes[sizeof number];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(number >> 8 * i);
    str_add(&covered, bytes, sizeof bytes);
    str_add(&covered, text, length);
    hmac_sha256(key, RM_HASH_BYTES, covered.data, covered.length, out);
    str_clear(&covered);
}

void session_seal(struct session *session, const struct str *text, struct str *out)
{
    uint8_t seal[RM_HASH_BYTES];
    char hex[SEAL_CHARS + 1];
    seal_of(session->key_out, session->frames_out++, str_text(text), text->length, seal);
    hex_encode(seal, sizeof seal, hex);
    str_reset(out);
    str_add(out, hex, SEAL_CHARS);
    str_add(out, str_text(text), text->length);
}

int session_peek(const char *frame, size_t length, const char **ret_text, size_t *ret_length,
                 struct error *err)
{
    if (length <= SEAL_CHARS)
        return err_set(err, ERR_PROTOCOL, "a frame without a seal");
    *ret_text = frame + SEAL_CHARS;
    *ret_length = length - SEAL_CHARS;
    return 0;
}

int session_open(struct session *session, const char *frame, size_t length, const char **ret_text,
                 size_t *ret_length, struct error *err)
{
    uint8_t said[RM_HASH_BYTES], seal[RM_HASH_BYTES];
    char hex[SEAL_CHARS + 1];
    const char *text = NULL;
    size_t text_length = 0;
    if (session_peek(frame, length, &text, &text_length, err) < 0)
        return -1;
    memcpy(hex, frame, SEAL_CHARS);
    hex[SEAL_CHARS] = 0;
    seal_of(session->key_in, session->frames_in, text, text_length, seal);
    if (!hex_decode(hex, said, sizeof said) || !crypto_equal(said, seal, sizeof seal))
        return err_set(err, ERR_PROTOCOL, "a frame that is not sealed with this job's key");
    session->frames_in++;
    *ret_text = text;
    *ret_length = text_length;
    return 0;
}

void session_proof(enum proof_role role, const struct session_terms *terms, const struct msg_hello *hello,
                   uint8_t out[RM_HASH_BYTES])
{
    struct str text = str_init(512);
    str_addf(&text, "ringmaster proof 1\n%s\n%s\n%d %d %llx\n", role == PROOF_HELLO ? "hello" : "welcome",
             hello->job, hello->worker, hello->attempt, (unsigned long long)hello->incarnation);
    str_add(&text, terms->challenge, MSG_NONCE_BYTES);
    str_add(&text, terms->nonce, MSG_NONCE_BYTES);
    hmac_sha256(terms->job_key, JOB_KEY_BYTES, text.data, text.length, out);
    str_clear(&text);
}
