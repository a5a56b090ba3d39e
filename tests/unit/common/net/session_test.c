#include "common/net/session.h"

#include <criterion/criterion.h>
#include <string.h>

static const uint8_t job_key[JOB_KEY_BYTES] = "the key of this job, 32 bytes..";
static const uint8_t other_key[JOB_KEY_BYTES] = "the key of another job, 32 byte";
static const uint8_t challenge[MSG_NONCE_BYTES] = "a nonce of the coordinator";
static const uint8_t nonce[MSG_NONCE_BYTES] = "a nonce of the agent";

struct desk {
    struct session coordinator, agent;
    struct str text, frame;
};

static struct session_terms terms(const uint8_t *key, bool coordinator)
{
    return (struct session_terms){
        .job_key = key, .challenge = challenge, .nonce = nonce, .coordinator = coordinator};
}

static void desk_open(struct desk *d, const uint8_t *agents_key)
{
    struct session_terms mine = terms(job_key, true), its = terms(agents_key, false);
    session_init(&d->coordinator, &mine);
    session_init(&d->agent, &its);
    d->text = str_init(256);
    d->frame = str_init(1024);
}

static void desk_close(struct desk *d)
{
    str_clear(&d->text);
    str_clear(&d->frame);
}

static void seal(struct desk *d, struct session *by, const char *text)
{
    str_reset(&d->text);
    str_adds(&d->text, text);
    session_seal(by, &d->text, &d->frame);
}

static int unseal(struct desk *d, struct session *by)
{
    const char *text;
    size_t length;
    int result = session_open(by, d->frame.data, d->frame.length, &text, &length, NULL);
    if (result == 0)
        cr_assert(length == d->text.length && !memcmp(text, d->text.data, length));
    return result;
}

Test(session, frames_pass_in_both_directions_in_their_order)
{
    struct desk d;
    desk_open(&d, job_key);
    for (int i = 0; i < 3; i++) {
        seal(&d, &d.agent, "{\"type\":\"hello\"}");
        cr_assert_eq(unseal(&d, &d.coordinator), 0);
        seal(&d, &d.coordinator, "{\"type\":\"welcome\"}");
        cr_assert_eq(unseal(&d, &d.agent), 0);
    }
    desk_close(&d);
}

Test(session, another_key_opens_nothing)
{
    struct desk d;
    desk_open(&d, other_key);
    seal(&d, &d.agent, "{\"type\":\"hello\"}");
    cr_assert_eq(unseal(&d, &d.coordinator), -1);
    seal(&d, &d.coordinator, "{\"type\":\"welcome\"}");
    cr_assert_eq(unseal(&d, &d.agent), -1);
    desk_close(&d);
}

Test(session, no_changed_byte_passes)
{
    struct desk d;
    desk_open(&d, job_key);
    seal(&d, &d.agent, "{\"type\":\"progress\"}");
    for (size_t i = 0; i < d.frame.length; i++) {
        d.frame.data[i] ^= 1;
        cr_assert_eq(unseal(&d, &d.coordinator), -1, "byte %zu", i);
        d.frame.data[i] ^= 1;
    }
    cr_assert_eq(unseal(&d, &d.coordinator), 0);
    desk_close(&d);
}

Test(session, a_frame_said_twice_or_left_out_is_noticed)
{
    struct desk d;
    desk_open(&d, job_key);
    seal(&d, &d.agent, "one");
    cr_assert_eq(unseal(&d, &d.coordinator), 0);
    cr_assert_eq(unseal(&d, &d.coordinator), -1);
    seal(&d, &d.agent, "left out");
    seal(&d, &d.agent, "three");
    cr_assert_eq(unseal(&d, &d.coordinator), -1);
    desk_close(&d);
}

Test(session, a_frame_sent_back_to_its_speaker_is_refused)
{
    struct desk d;
    desk_open(&d, job_key);
    seal(&d, &d.agent, "mine");
    cr_assert_eq(unseal(&d, &d.agent), -1);
    desk_close(&d);
}

Test(session, frames_too_short_for_a_seal_are_refused)
{
    struct desk d;
    desk_open(&d, job_key);
    const char *text;
    size_t length;
    char bytes[SEAL_CHARS + 1];
    memset(bytes, '0', sizeof bytes);
    for (size_t n = 0; n <= SEAL_CHARS; n++) {
        cr_assert_eq(session_open(&d.coordinator, bytes, n, &text, &length, NULL), -1);
        cr_assert_eq(session_peek(bytes, n, &text, &length, NULL), -1);
    }
    desk_close(&d);
}

Test(session, a_proof_is_of_one_role_one_worker_and_one_pair_of_nonces)
{
    struct msg_hello hello = {.job = "job", .worker = 1, .attempt = 2, .incarnation = 3};
    struct session_terms said = terms(job_key, false), other = terms(other_key, false);
    uint8_t proof[RM_HASH_BYTES], again[RM_HASH_BYTES];
    session_proof(PROOF_HELLO, &said, &hello, proof);
    session_proof(PROOF_HELLO, &said, &hello, again);
    cr_assert_eq(memcmp(proof, again, sizeof proof), 0);
    session_proof(PROOF_WELCOME, &said, &hello, again);
    cr_assert_neq(memcmp(proof, again, sizeof proof), 0);
    session_proof(PROOF_HELLO, &other, &hello, again);
    cr_assert_neq(memcmp(proof, again, sizeof proof), 0);
    said.nonce = challenge;
    session_proof(PROOF_HELLO, &said, &hello, again);
    cr_assert_neq(memcmp(proof, again, sizeof proof), 0);
    said.nonce = nonce;
    hello.attempt = 4;
    session_proof(PROOF_HELLO, &said, &hello, again);
    cr_assert_neq(memcmp(proof, again, sizeof proof), 0);
}
