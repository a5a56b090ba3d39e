/* What a receiver asks a source of the state for. The answer never holds more than three arrays. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/transfer_state.h"
#include "trainer/io/transfer.h"

static size_t drain(int fd)
{
    uint8_t bytes[1 << 14];
    size_t total = 0;
    for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) > 0;)
        total += (size_t)n;
    return total;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct transfer_source *source;
    static struct abort_flag closing; /* never set: what ends a wait here is that the receiver is gone */
    const struct model_layout *layout;
    struct state *state = fuzz_state(&layout);
    struct handshake_claim claim = {.purpose = HANDSHAKE_TRANSFER};
    struct error err = {0};
    int fds[2];
    if (!source) {
        fuzz_state_fill(state);
        if (abort_flag_init(&closing, &err) < 0 ||
            transfer_source_open(&source, state, layout->tensors, &err) < 0)
            fuzz_broken(err.text);
        transfer_allow(source, true);
    }
    if (size > 4096 || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) < 0)
        return 0;
    if (size && write(fds[0], data, size) != (ssize_t)size)
        fuzz_broken("a request fits a socket");
    shutdown(fds[0], SHUT_WR);
    transfer_serve(source, fds[1], &claim, &closing);
    close(fds[1]);
    size_t most = (size_t)(3 * 4 * layout->parameters) + 4096;
    if (drain(fds[0]) > most)
        fuzz_broken("an answer is no longer than the state");
    close(fds[0]);
    return 0;
}
