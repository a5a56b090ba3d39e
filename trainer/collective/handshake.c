#include "trainer/collective/handshake.h"

#include <string.h>

#include "common/os/crypto.h"

/* The wire is little-endian, as every machine that we build for. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "a big-endian machine needs byte swaps here");

struct hello_wire {
    char magic[4]; /* "RMD1" */
    uint16_t purpose, stream;
    int64_t term, n;
    uint64_t from_incarnation, to_incarnation;
    int32_t from_worker, to_worker;
    uint8_t nonce[HANDSHAKE_NONCE];
};
_Static_assert(sizeof(struct hello_wire) == HANDSHAKE_HELLO, "no padding");

static const char magic[4] = {'R', 'M', 'D', '1'};

int ring_generation_compare(struct ring_generation a, struct ring_generation b)
{
    if (a.term != b.term)
        return a.term < b.term ? -1 : 1;
    return (a.n > b.n) - (a.n < b.n);
}

static void hello_write(const struct handshake_claim *claim, uint8_t out[HANDSHAKE_HELLO])
{
    struct hello_wire w = {
        .purpose = (uint16_t)claim->purpose,
        .stream = (uint16_t)claim->stream,
        .term = claim->generation.term,
        .n = claim->generation.n,
        .from_incarnation = claim->from.incarnation,
        .to_incarnation = claim->to.incarnation,
        .from_worker = claim->from.worker,
        .to_worker = claim->to.worker,
    };
    memcpy(w.magic, magic, sizeof magic);
    crypto_random(w.nonce, sizeof w.nonce);
    memcpy(out, &w, sizeof w);
}

static int hello_read(const uint8_t hello[HANDSHAKE_HELLO], struct handshake_claim *ret, struct error *err)
{
    struct hello_wire w;
    memcpy(&w, hello, sizeof w);
    if (memcmp(w.magic, magic, sizeof magic))
        return err_set(err, ERR_PROTOCOL, "it does not speak this trainer's protocol");
    if (w.purpose < HANDSHAKE_RING || w.purpose > HANDSHAKE_PROBE)
        return err_set(err, ERR_PROTOCOL, "its purpose %u is unknown", w.purpose);
    if (w.stream >= (w.purpose == HANDSHAKE_RING ? HANDSHAKE_STREAMS : 1))
        return err_set(err, ERR_PROTOCOL, "its stream %u is unknown", w.stream);
    *ret = (struct handshake_claim){
        .purpose = (enum handshake_purpose)w.purpose,
        .generation = {w.term, w.n},
        .from = {w.from_worker, w.from_incarnation},
        .to = {w.to_worker, w.to_incarnation},
        .stream = w.stream,
    };
    return 0;
}

/* role tells the two directions apart, so that no side's proof can be sent back to it as the other's. */
static void prove(const struct handshake_secret *secret, const char *role,
                  const uint8_t said[HANDSHAKE_HELLO + HANDSHAKE_NONCE], uint8_t mac[RM_HASH_BYTES])
{
    uint8_t text[16 + sizeof secret->job + HANDSHAKE_HELLO + HANDSHAKE_NONCE] = {0};
    memcpy(text, role, strlen(role));
    memcpy(text + 16, secret->job, strnlen(secret->job, sizeof secret->job));
    memcpy(text + 16 + sizeof secret->job, said, HANDSHAKE_HELLO + HANDSHAKE_NONCE);
    hmac_sha256(secret->key, sizeof secret->key, text, sizeof text, mac);
}

int handshake_call(int fd, const struct handshake_secret *secret, const struct handshake_claim *claim,
                   const struct patience *patience, struct error *err)
{
    uint8_t said[HANDSHAKE_HELLO + HANDSHAKE_NONCE], answer[HANDSHAKE_ANSWER], mac[RM_HASH_BYTES];
    hello_write(claim, said);
    if (socket_send(fd, said, HANDSHAKE_HELLO, patience, err) < 0 ||
        socket_receive(fd, answer, sizeof answer, patience, err) < 0)
        return err_wrap(err, "handshake with worker %d", claim->to.worker);
    memcpy(said + HANDSHAKE_HELLO, answer, HANDSHAKE_NONCE);
    prove(secret, "called", said, mac);
    if (!crypto_equal(mac, answer + HANDSHAKE_NONCE, sizeof mac))
        return err_set(err, ERR_PROTOCOL, "who listens at worker %d's address does not hold this job's key",
                       claim->to.worker);
    prove(secret, "caller", said, mac);
    return socket_send(fd, mac, sizeof mac, patience, err);
}

int handshake_answer(struct handshake_called *h, const struct handshake_secret *secret,
                     const uint8_t hello[HANDSHAKE_HELLO], struct handshake_claim *ret_claim,
                     uint8_t answer[HANDSHAKE_ANSWER], struct error *err)
{
    if (hello_read(hello, ret_claim, err) < 0)
        return -1;
    memcpy(h->said, hello, HANDSHAKE_HELLO);
    crypto_random(h->said + HANDSHAKE_HELLO, HANDSHAKE_NONCE);
    memcpy(answer, h->said + HANDSHAKE_HELLO, HANDSHAKE_NONCE);
    prove(secret, "called", h->said, answer + HANDSHAKE_NONCE);
    return 0;
}

bool handshake_confirmed(const struct handshake_called *h, const struct handshake_secret *secret,
                         const uint8_t confirm[HANDSHAKE_CONFIRM])
{
    uint8_t mac[RM_HASH_BYTES];
    prove(secret, "caller", h->said, mac);
    return crypto_equal(mac, confirm, sizeof mac);
}
