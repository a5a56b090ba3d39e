/* The state's way from trainer to trainer: whole and right, or not at all. */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/clock.h"
#include "common/os/file.h"
#include "tests/unit/trainer/state/near_arrays.h"
#include "trainer/io/crc32c.h"
#include "trainer/io/transfer.h"
#include "trainer/io/transfer_wire.h"

enum { SOURCES = 3, LANES = 4 };

struct holder {
    int fd;
    struct state *state;
    struct transfer_source *source;
    struct data_port *port;
};

static struct model_layout layout;
static struct handshake_secret secret = {.job = "job"};
static const struct handshake_end receiver = {9, 99};

static struct handshake_end end_of(int worker)
{
    return (struct handshake_end){worker, 50 + (uint64_t)worker};
}

static void open_state(struct holder *h)
{
    struct state_shape shape = {.layout = &layout, .lanes = LANES};
    struct error err;
    cr_assert_eq(file_memory(&h->fd, "state", 0, &err), 0);
    cr_assert_eq(state_open(&h->state, h->fd, &shape, &err), 0, "%s", err.text);
}

static float value(int array, int64_t i)
{
    return (float)(i * 3 + array) + 0.25f;
}

static void fill(struct holder *h, int64_t step)
{
    struct near_arrays a = near_arrays(h->state);
    struct state_point point = {.step = step, .lineage = {7}};
    state_receive_begin(h->state);
    for (int64_t i = 0; i < a.count; i++) {
        a.params[i] = value(0, i);
        a.m[i] = value(1, i);
        a.v[i] = value(2, i);
    }
    for (int t = 0; t < layout.tensors; t++)
        point.k[t] = t - 5;
    state_receive_end(h->state, &point, NULL);
}

static void source_open(struct holder *h, int worker, int64_t step)
{
    struct error err;
    open_state(h);
    fill(h, step);
    cr_assert_eq(transfer_source_open(&h->source, h->state, layout.tensors, &err), 0);
    transfer_allow(h->source, true);
    struct data_port_options o = {.listen = "127.0.0.1",
                                  .secret = secret,
                                  .self = end_of(worker),
                                  .serve = transfer_serve,
                                  .ctx = h->source};
    cr_assert_eq(data_port_open(&h->port, &o, &err), 0);
}

static void holder_close(struct holder *h)
{
    data_port_free(h->port);
    transfer_source_free(h->source);
    state_free(h->state);
    close(h->fd);
}

/* 1.3 million parameters: several chunks for each source. */
static void begin(void)
{
    struct model_shape shape = {2, 4, 256, 64, 256};
    model_layout_init(&layout, &shape);
}

static struct transfer_want want_of(struct holder *sources, int n, struct transfer_peer *peers, int64_t step)
{
    for (int i = 0; i < n; i++) {
        peers[i].end = end_of(i);
        text_copy(peers[i].address, sizeof peers[i].address, data_port_address(sources[i].port));
    }
    return (struct transfer_want){.secret = secret,
                                  .generation = {1, 1},
                                  .self = receiver,
                                  .step = step,
                                  .lineage = {7},
                                  .tensors = layout.tensors,
                                  .sources = n,
                                  .source = peers};
}

static void expect_whole(struct state *state, int64_t step)
{
    struct state_point point;
    struct near_arrays a = near_arrays(state);
    cr_assert(state_holds(state, &point));
    cr_assert_eq(point.step, step);
    cr_assert_eq(point.lineage[0], 7);
    for (int t = 0; t < layout.tensors; t++)
        cr_assert_eq(point.k[t], t - 5);
    for (int64_t i = 0; i < a.count; i++)
        cr_assert(a.params[i] == value(0, i) && a.m[i] == value(1, i) && a.v[i] == value(2, i), "element %ld",
                  (long)i);
}

Test(transfer, a_state_comes_whole_from_one_two_or_three_sources, .init = begin)
{
    for (int n = 1; n <= SOURCES; n++) {
        struct holder sources[SOURCES], mine = {0};
        struct transfer_peer peers[SOURCES];
        struct error err;
        bool exact = false;
        int failed;
        for (int i = 0; i < n; i++)
            source_open(&sources[i], i, 12);
        open_state(&mine);
        struct transfer_want want = want_of(sources, n, peers, 12);
        cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), 0, "%s", err.text);
        cr_assert(exact);
        expect_whole(mine.state, 12);
        for (int i = 0; i < n; i++)
            holder_close(&sources[i]);
        holder_close(&mine);
    }
}

Test(transfer, a_source_at_another_step_or_of_another_history_is_no_source, .init = begin)
{
    struct holder source, mine = {0};
    struct transfer_peer peer;
    struct error err;
    bool exact;
    int failed;
    source_open(&source, 0, 12);
    open_state(&mine);
    struct transfer_want want = want_of(&source, 1, &peer, 13);
    cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), -1);
    cr_assert_eq(failed, 0);
    want.step = 12;
    want.lineage[3] = 1;
    cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), -1);
    cr_assert_eq(err.code, ERR_PEER, "%s", err.text);
    cr_assert_eq(err.class, CLASS_SOURCE, "the connection is well");
    cr_assert_eq(failed, 0);
    cr_assert_not(state_holds(mine.state, NULL));
    holder_close(&source);
    holder_close(&mine);
}

/* Its exponents of the first tensor are off by so much. */
static void source_open_off(struct holder *h, int worker, int32_t off)
{
    struct state_point point;
    source_open(h, worker, 12);
    transfer_forbid(h->source);
    cr_assert(state_holds(h->state, &point));
    point.k[0] += off;
    state_receive_begin(h->state);
    state_receive_end(h->state, &point, NULL);
    transfer_allow(h->source, true);
}

/* odd: of three. off: by what. named: whom the receiver names. */
static void receive_with_one_off(int sources, int odd, int32_t off, int named)
{
    struct holder source[SOURCES], mine = {0};
    struct transfer_peer peers[SOURCES];
    struct error err;
    bool exact;
    int failed;
    for (int i = 0; i < sources; i++)
        source_open_off(&source[i], i, i == odd ? off : 0);
    open_state(&mine);
    struct transfer_want want = want_of(source, sources, peers, 12);
    cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), -1);
    cr_assert_eq(failed, named, "%s", err.text);
    cr_assert_eq(err.class, named < 0 ? CLASS_UNKNOWN : CLASS_SOURCE, "%s", err.text);
    cr_assert_not(state_holds(mine.state, NULL));
    for (int i = 0; i < sources; i++)
        holder_close(&source[i]);
    holder_close(&mine);
}

Test(transfer, a_source_whose_exponents_are_not_those_of_most_is_named, .init = begin)
{
    receive_with_one_off(3, 0, 1, 0);
    receive_with_one_off(3, 2, 1, 2);
    receive_with_one_off(2, 1, 1, -1);
}

Test(transfer, a_source_whose_exponents_are_none_is_named, .init = begin)
{
    receive_with_one_off(1, 0, 100000, 0);
    receive_with_one_off(2, 1, 100000, 1);
}

Test(transfer, a_state_that_is_about_to_change_is_served_no_more, .init = begin)
{
    struct holder source, mine = {0};
    struct transfer_peer peer;
    struct error err;
    bool exact;
    int failed;
    source_open(&source, 0, 12);
    transfer_forbid(source.source);
    open_state(&mine);
    struct transfer_want want = want_of(&source, 1, &peer, 12);
    cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), -1);
    transfer_allow(source.source, true);
    cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), 0, "%s", err.text);
    expect_whole(mine.state, 12);
    holder_close(&source);
    holder_close(&mine);
}

/* Between a receiver and a source: lets `from_source` bytes pass, then does harm. */
struct meddler {
    pthread_t thread;
    int listener;
    char address[RM_ADDRESS_MAX], target[RM_ADDRESS_MAX];
    int64_t from_source;
    bool hold;                      /* nothing comes from there on; else */
    struct transfer_source *forbid; /* NULL: flip a bit; else the source's gate is closed there */
};

/* Returns false where one side has closed. */
static bool pass_on(struct meddler *m, int from, int to, bool down)
{
    static char buffer[65536];
    struct patience patience = {NULL, RM_NEVER};
    size_t room = sizeof buffer;
    if (down && m->from_source > 0 && (int64_t)room > m->from_source)
        room = (size_t)m->from_source;
    ssize_t n = recv(from, buffer, room, 0);
    if (n <= 0)
        return false;
    if (down && m->from_source == 0 && m->hold)
        return true;
    if (down && m->from_source == 0) {
        if (m->forbid)
            transfer_forbid(m->forbid);
        else
            buffer[0] ^= 1;
        m->from_source = -1;
    } else if (down && m->from_source > 0) {
        m->from_source -= n;
    }
    return socket_send(to, buffer, (size_t)n, &patience, NULL) == 0;
}

static void *meddle(void *arg)
{
    struct meddler *m = arg;
    struct patience patience = {NULL, RM_NEVER};
    int up, down;
    bool open = true;
    cr_assert_eq(socket_wait(m->listener, POLLIN, &patience, NULL), 0);
    down = accept4(m->listener, NULL, NULL, SOCK_CLOEXEC);
    cr_assert_eq(socket_connect(&up, m->target, &patience, NULL), 0);
    while (open) {
        struct pollfd fds[2] = {{.fd = down, .events = POLLIN}, {.fd = up, .events = POLLIN}};
        poll(fds, 2, -1);
        if (fds[0].revents)
            open = pass_on(m, down, up, false);
        else if (fds[1].revents)
            open = pass_on(m, up, down, true);
    }
    close(up);
    close(down);
    return NULL;
}

/* Source 1 of two is reached through the meddler. */
static void receive_through(struct meddler *m, bool forbid, enum error_code expected)
{
    struct holder sources[2], mine = {0};
    struct transfer_peer peers[2];
    struct error err;
    bool exact;
    int failed;
    for (int i = 0; i < 2; i++)
        source_open(&sources[i], i, 12);
    m->forbid = forbid ? sources[1].source : NULL;
    open_state(&mine);
    struct transfer_want want = want_of(sources, 2, peers, 12);
    want.silence = m->hold ? RM_S / 5 : 0;
    text_copy(m->target, sizeof m->target, peers[1].address);
    cr_assert_eq(socket_listen(&m->listener, "127.0.0.1", m->address, &err), 0);
    text_copy(peers[1].address, sizeof peers[1].address, m->address);
    cr_assert_eq(pthread_create(&m->thread, NULL, meddle, m), 0);
    cr_assert_eq(transfer_receive_state(mine.state, &want, &exact, &failed, &err), -1);
    cr_assert_eq(err.code, expected, "%s", err.text);
    cr_assert_eq(failed, 1);
    cr_assert_not_null(strstr(err.text, "worker 1"), "%s", err.text);
    cr_assert_not(state_holds(mine.state, NULL), "a part of a state is no state");
    pthread_join(m->thread, NULL);
    close(m->listener);
    for (int i = 0; i < 2; i++)
        holder_close(&sources[i]);
    holder_close(&mine);
}

Test(transfer, a_bit_that_flips_on_the_way_is_found, .init = begin)
{
    /* In the exponents, in the first chunk, and far inside. */
    static const int64_t places[] = {HANDSHAKE_ANSWER + 32 + 9, HANDSHAKE_ANSWER + 32 + 300, 2000000};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        struct meddler m = {.from_source = places[i]};
        receive_through(&m, false, ERR_PROTOCOL);
    }
}

Test(transfer, a_state_that_moves_on_in_the_middle_is_never_a_mixture, .init = begin)
{
    struct meddler m = {.from_source = 100000};
    receive_through(&m, true, ERR_PEER);
}

/* Its receiver would be found late, and blamed. */
Test(transfer, a_source_that_falls_silent_is_named_before_the_ring_is_given_up, .init = begin, .timeout = 20)
{
    struct meddler m = {.from_source = 100000, .hold = true};
    receive_through(&m, false, ERR_PEER);
}

/* It was answered as an update, from buffers that the source did not have. */
Test(transfer, a_request_of_an_unknown_kind_is_answered_with_nothing_held, .init = begin)
{
    struct holder source;
    struct transfer_request request = {
        .magic = TRANSFER_MAGIC, .kind = TRANSFER_BLOCK_WORDS + 1, .step = 12, .lineage = {7}, .count = 10};
    struct handshake_claim claim = {.purpose = HANDSHAKE_TRANSFER};
    uint8_t answer[sizeof(struct transfer_reply) + 1];
    struct transfer_reply reply;
    int fds[2];
    source_open(&source, 0, 12);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    cr_assert_eq(write(fds[0], &request, sizeof request), (ssize_t)sizeof request);
    transfer_serve(source.source, fds[1], &claim, NULL);
    close(fds[1]);
    cr_assert_eq(read(fds[0], answer, sizeof answer), (ssize_t)sizeof reply);
    memcpy(&reply, answer, sizeof reply);
    cr_assert_eq(reply.status, TRANSFER_NOT_HELD);
    close(fds[0]);
    holder_close(&source);
}

Test(transfer, the_checksum_is_the_published_one)
{
    uint8_t ramp[32];
    for (int i = 0; i < 32; i++)
        ramp[i] = (uint8_t)i;
    /* RFC 3720, B.4, and the check value of the catalogue of CRCs. */
    cr_assert_eq(chunk_crc32c("123456789", 9), 0xe3069283u);
    cr_assert_eq(chunk_crc32c(ramp, 32), 0x46dd794eu);
    cr_assert_eq(chunk_crc32c("", 0), 0);
}
