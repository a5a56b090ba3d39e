/* The called side of the proof between trainers: 64 bytes of hello, 32 of confirmation. Nobody without the
 * key is let in, whatever he says. */
#include <string.h>

#include "tests/fuzz/fuzz.h"
#include "trainer/collective/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct handshake_secret secret = {.job = "job", .key = {1, 2, 3}};
    uint8_t said[HANDSHAKE_HELLO + HANDSHAKE_CONFIRM] = {0}, answer[HANDSHAKE_ANSWER];
    struct handshake_called called;
    struct handshake_claim claim;
    struct error err = {0};
    if (size)
        memcpy(said, data, size < sizeof said ? size : sizeof said);
    if (handshake_answer(&called, &secret, said, &claim, answer, &err) < 0) {
        fuzz_refused(&err);
        return 0;
    }
    if (claim.purpose < HANDSHAKE_RING || claim.purpose > HANDSHAKE_PROBE)
        fuzz_broken("an accepted hello has a purpose");
    if (handshake_confirmed(&called, &secret, said + HANDSHAKE_HELLO))
        fuzz_broken("nobody is let in without the key");
    if (handshake_confirmed(&called, &secret, answer + HANDSHAKE_NONCE))
        fuzz_broken("our own proof sent back is none of theirs");
    return 0;
}
