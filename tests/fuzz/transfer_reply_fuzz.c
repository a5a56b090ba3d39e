/* What a source that has the key answers. The first byte chooses between state and update, and whether the
 * rest is sent as it is or cut into chunks with right checksums. What fails leaves no state that is held, or
 * the state that was there. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/transfer_state.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer.h"
#include "trainer/io/transfer_wire.h"

enum { CHUNKS = 4, CHUNK_MAX = 1 << 16, WANT_UPDATE = 1, SEALED = 2 };

static const struct handshake_secret secret = {.job = "job", .key = {1, 2, 3}};
static const struct patience forever = {.abort = NULL, .deadline = RM_NEVER};

/* What the source's thread sends once it is asked. */
struct source {
    int listener;
    const uint8_t *data;
    size_t size;
    bool sealed;
    size_t chunk[CHUNKS]; /* bytes of each */
};

static void send_sealed(const struct source *s, int fd)
{
    static uint8_t chunk[CHUNK_MAX];
    const uint8_t *at = s->data;
    size_t left = s->size;
    size_t head = left < sizeof(struct transfer_reply) ? left : sizeof(struct transfer_reply);
    int rc = socket_send(fd, at, head, &forever, NULL);
    at += head;
    left -= head;
    for (int i = 0; i < CHUNKS && rc == 0; i++) {
        size_t length = s->chunk[i], given = left < length ? left : length;
        memset(chunk, 0, length);
        memcpy(chunk, at, given);
        at += given;
        left -= given;
        uint32_t crc = chunk_crc32c(chunk, length);
        rc = socket_send(fd, &crc, 4, &forever, NULL);
        if (rc == 0)
            rc = socket_send(fd, chunk, length, &forever, NULL);
    }
}

static void *source_main(void *arg)
{
    struct source *s = arg;
    uint8_t hello[HANDSHAKE_HELLO], answer[HANDSHAKE_ANSWER], confirm[HANDSHAKE_CONFIRM];
    struct transfer_request request;
    struct handshake_called called;
    struct handshake_claim claim;
    int fd = -1;
    if (socket_wait(s->listener, POLLIN, &forever, NULL) < 0 ||
        (fd = accept4(s->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) < 0)
        fuzz_broken("the receiver calls its source");
    if (socket_receive(fd, hello, sizeof hello, &forever, NULL) < 0 ||
        handshake_answer(&called, &secret, hello, &claim, answer, NULL) < 0 ||
        socket_send(fd, answer, sizeof answer, &forever, NULL) < 0 ||
        socket_receive(fd, confirm, sizeof confirm, &forever, NULL) < 0 ||
        !handshake_confirmed(&called, &secret, confirm) ||
        socket_receive(fd, &request, sizeof request, &forever, NULL) < 0)
        fuzz_broken("the receiver proves itself and asks");
    if (s->sealed)
        send_sealed(s, fd);
    else
        socket_send(fd, s->data, s->size, &forever, NULL);
    close(fd);
    return NULL;
}

static void plan_chunks(struct source *s, struct state *state, const struct model_layout *layout, bool update)
{
    size_t array = (size_t)layout->parameters * 4;
    s->chunk[0] = (size_t)layout->tensors * 4;
    s->chunk[1] = s->chunk[2] = s->chunk[3] = array;
    if (update) {
        struct state_update buffers;
        state_update_receive_begin(state, &buffers);
        s->chunk[2] = (size_t)buffers.header_count * 4;
        s->chunk[3] = 0;
    }
}

static void receive(struct source *s, const char *address, bool update)
{
    const struct model_layout *layout;
    struct state *state = fuzz_state(&layout);
    struct transfer_peer peer = {.end = {1, 51}};
    struct transfer_want want = {.secret = secret,
                                 .generation = {1, 1},
                                 .self = {9, 99},
                                 .step = FUZZ_STATE_STEP + update,
                                 .lineage = {7},
                                 .tensors = layout->tensors,
                                 .sources = 1,
                                 .source = &peer};
    struct error err = {0};
    bool exact;
    int at;
    text_copy(peer.address, sizeof peer.address, address);
    fuzz_state_fill(state);
    plan_chunks(s, state, layout, update);
    pthread_t thread;
    if (pthread_create(&thread, NULL, source_main, s))
        fuzz_broken("no thread");
    int rc = update ? transfer_receive_update(state, &want, &exact, &at, &err)
                    : transfer_receive_state(state, &want, &exact, &at, &err);
    pthread_join(thread, NULL);
    if (rc == 0 && update)
        rc = state_update_receive_end(state, want.step, &err);
    if (rc < 0)
        fuzz_refused(&err);
    if (!update && state_holds(state, NULL) != (rc == 0))
        fuzz_broken("a state is held where it came whole, and only there");
    if (update && state_pending(state) != (rc == 0))
        fuzz_broken("an update is pending where it came whole, and only there");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int listener = -1;
    static char address[RM_ADDRESS_MAX];
    struct error err = {0};
    if (listener < 0 && socket_listen(&listener, "127.0.0.1", address, &err) < 0)
        fuzz_broken(err.text);
    if (!size || size > CHUNK_MAX)
        return 0;
    struct source source = {
        .listener = listener, .data = data + 1, .size = size - 1, .sealed = data[0] & SEALED};
    receive(&source, address, data[0] & WANT_UPDATE);
    return 0;
}
