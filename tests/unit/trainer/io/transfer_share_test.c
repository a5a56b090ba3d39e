/* The shares of a checkpoint from member to member: whole in the end, or it is known what is missing. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/str.h"
#include "common/os/file.h"
#include "tests/unit/bits.h"
#include "trainer/io/transfer_share.h"

enum { MEMBERS_MAX = 4, LANES = 4 };

static struct model_layout layout;
static struct handshake_secret secret = {.job = "job"};

struct member {
    int fd, worker, n; /* of n members */
    struct state *state;
    struct transfer_source *source;
    struct data_port *port;
    struct transfer_share share;
    struct transfer_peer peers[MEMBERS_MAX];
    struct abort_flag abort;
    struct worker_set missing;
    int result;
    struct error err;
    pthread_t thread;
};

static void begin(void)
{
    struct model_shape shape = {2, 4, 256, 64, 256};
    model_layout_init(&layout, &shape);
}

static struct handshake_end end_of(int worker)
{
    return (struct handshake_end){worker, 50 + (uint64_t)worker};
}

static float value(int array, int64_t i)
{
    return (float)(i * 3 + array) + 0.25f;
}

static float *array_of(const struct state_arrays *a, int i)
{
    return memory_near(a->in, a->array[i].at);
}

static void member_open(struct member *m, int worker, int n)
{
    struct state_shape shape = {.layout = &layout, .lanes = LANES};
    struct error err;
    *m = (struct member){.worker = worker, .n = n};
    cr_assert_eq(abort_flag_init(&m->abort, &err), 0);
    cr_assert_eq(file_memory(&m->fd, "state", 0, &err), 0);
    cr_assert_eq(state_open(&m->state, m->fd, &shape, &err), 0, "%s", err.text);
    cr_assert_eq(transfer_source_open(&m->source, m->state, layout.tensors, &err), 0);
    struct data_port_options o = {.listen = "127.0.0.1",
                                  .secret = secret,
                                  .self = end_of(worker),
                                  .serve = transfer_serve,
                                  .ctx = m->source};
    cr_assert_eq(data_port_open(&m->port, &o, &err), 0);
}

static void member_close(struct member *m)
{
    data_port_free(m->port);
    transfer_source_free(m->source);
    state_free(m->state);
    abort_flag_clear(&m->abort);
    close(m->fd);
}

static void introduce(struct member *member, int n)
{
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            member[i].peers[j].end = end_of(j);
            text_copy(member[i].peers[j].address, RM_ADDRESS_MAX, data_port_address(member[j].port));
        }
}

/* As if its agent had read it: a share of each array, empty ones among them. */
static void read_share(struct member *m, int64_t generation)
{
    struct state_arrays a = state_arrays(m->state);
    m->share = (struct transfer_share){
        .generation = {1, generation}, .point = {.step = 12, .lineage = {7}}, .exact = true, .arrays = a};
    for (int t = 0; t < layout.tensors; t++)
        m->share.point.k[t] = t - 5;
    for (int i = 0; i < MODEL_ARRAYS; i++) {
        m->share.range[i] = model_part(a.count, m->worker, m->n);
        if (i == 2) /* all of v is the last one's */
            m->share.range[i] = (struct model_range){0, m->worker == m->n - 1 ? a.count : 0};
        for (int64_t e = 0; e < m->share.range[i].count; e++)
            array_of(&a, i)[m->share.range[i].first + e] = value(i, m->share.range[i].first + e);
    }
}

static void *gather_main(void *arg)
{
    struct member *m = arg;
    struct transfer_want want = {.secret = secret,
                                 .generation = m->share.generation,
                                 .self = end_of(m->worker),
                                 .step = 12,
                                 .lineage = {7},
                                 .tensors = layout.tensors,
                                 .sources = m->n,
                                 .source = m->peers,
                                 .abort = &m->abort};
    struct transfer_gather g = {.want = &want,
                                .to = m->share.arrays,
                                .point = &m->share.point,
                                .wanted = set_minus(set_below(m->n), set_of(m->worker)),
                                .have = m->share.range};
    m->result = transfer_share_gather(&g, &m->missing, &m->err);
    return NULL;
}

static void gather(struct member *m)
{
    cr_assert_eq(pthread_create(&m->thread, NULL, gather_main, m), 0);
}

static void expect_all(struct member *m)
{
    struct state_arrays a = state_arrays(m->state);
    pthread_join(m->thread, NULL);
    cr_assert_eq(m->result, 0, "%s", m->err.text);
    cr_assert(set_is_empty(m->missing));
    for (int i = 0; i < MODEL_ARRAYS; i++)
        for (int64_t e = 0; e < a.count; e++)
            cr_assert(array_of(&a, i)[e] == value(i, e), "member %d: element %lld of array %d", m->worker,
                      (long long)e, i);
}

static void open_all(struct member *member, int n)
{
    for (int i = 0; i < n; i++)
        member_open(&member[i], i, n);
    introduce(member, n);
}

static void close_all(struct member *member, int n)
{
    for (int i = 0; i < n; i++)
        member_close(&member[i]);
}

Test(transfer_share, all_members_end_with_the_whole, .init = begin)
{
    for (int n = 2; n <= MEMBERS_MAX; n++) {
        struct member member[MEMBERS_MAX];
        open_all(member, n);
        for (int i = 0; i < n; i++) {
            read_share(&member[i], 3);
            transfer_share_give(member[i].source, &member[i].share);
            gather(&member[i]); /* those that come later are waited for */
        }
        for (int i = 0; i < n; i++)
            expect_all(&member[i]);
        close_all(member, n);
    }
}

Test(transfer_share, a_member_that_still_gives_an_older_ring_its_share_is_waited_for, .init = begin)
{
    struct member member[2];
    open_all(member, 2);
    read_share(&member[0], 2);
    transfer_share_give(member[0].source, &member[0].share);
    read_share(&member[1], 3);
    gather(&member[1]);
    read_share(&member[0], 3);
    transfer_share_give(member[0].source, &member[0].share);
    expect_all(&member[1]);
    close_all(member, 2);
}

/* Killed, gone on to a newer ring, or its state about to change: only its own share is missing then. */
Test(transfer_share, who_does_not_give_is_named_and_the_others_shares_come, .init = begin)
{
    enum { GONE, NEWER, FORBIDDEN, OTHER_CHECKPOINT, WAYS };
    for (int way = 0; way < WAYS; way++) {
        struct member member[3];
        open_all(member, 3);
        for (int i = 0; i < 3; i++)
            read_share(&member[i], 3);
        if (way == NEWER)
            member[1].share.generation.n = 4;
        if (way == OTHER_CHECKPOINT)
            member[1].share.point.lineage[0] = 8;
        for (int i = 0; i < 2; i++)
            transfer_share_give(member[i].source, &member[i].share);
        if (way == FORBIDDEN)
            transfer_forbid(member[1].source);
        if (way == GONE) {
            data_port_free(member[1].port);
            member[1].port = NULL;
        }
        gather(&member[2]);
        pthread_join(member[2].thread, NULL);
        cr_assert_eq(member[2].result, 0, "%s", member[2].err.text);
        cr_assert_eq(bits_of_set(member[2].missing), 2, "way %d", way);
        const struct model_range *from = &member[0].share.range[0];
        cr_assert_eq(array_of(&member[2].share.arrays, 0)[from->first + 1], value(0, from->first + 1));
        close_all(member, 3);
    }
}

Test(transfer_share, shares_that_leave_a_gap_or_overlap_count_for_nothing, .init = begin)
{
    for (int longer = -1; longer <= 1; longer += 2) {
        struct member member[3];
        open_all(member, 3);
        for (int i = 0; i < 3; i++)
            read_share(&member[i], 3);
        member[0].share.range[1].count += longer;
        for (int i = 0; i < 2; i++)
            transfer_share_give(member[i].source, &member[i].share);
        gather(&member[2]);
        pthread_join(member[2].thread, NULL);
        cr_assert_eq(bits_of_set(member[2].missing), 3);
        close_all(member, 3);
    }
}

/* Where two are written into one place, what arrived of the one is what the other sent: its checksum fails.
 * The other one, which came, may have been written over as well. */
Test(transfer_share, one_that_does_not_come_counts_for_nothing_with_those_that_it_overlapped, .init = begin)
{
    for (int i = 0; i < 10; i++) {
        struct member member[3];
        open_all(member, 3);
        for (int k = 0; k < 3; k++)
            read_share(&member[k], 3);
        member[0].share.range[0] = member[1].share.range[0];
        for (int k = 0; k < 2; k++)
            transfer_share_give(member[k].source, &member[k].share);
        gather(&member[2]);
        pthread_join(member[2].thread, NULL);
        cr_assert_eq(bits_of_set(member[2].missing), 3);
        close_all(member, 3);
    }
}

Test(transfer_share, who_waits_for_a_share_can_be_told_to_give_up, .init = begin)
{
    struct member member[2];
    open_all(member, 2);
    read_share(&member[1], 3);
    gather(&member[1]); /* member 0 never reads its own */
    abort_flag_set(&member[1].abort);
    pthread_join(member[1].thread, NULL);
    cr_assert_eq(member[1].result, -1);
    cr_assert_eq(member[1].err.code, ERR_ABORTED);
    close_all(member, 2); /* ends although a receiver was waiting */
}

/* A share that was read beside the state is given on from where it was copied to. */
Test(transfer_share, the_bytes_may_move_while_they_are_given, .init = begin)
{
    struct member member[2];
    open_all(member, 2);
    for (int i = 0; i < 2; i++)
        read_share(&member[i], 3);
    struct state_arrays a = state_arrays(member[0].state);
    size_t bytes = (size_t)a.count * sizeof(float);
    float *copy = calloc(3, bytes);
    struct state_arrays beside = a;
    for (int i = 0; i < MODEL_ARRAYS; i++) {
        beside.array[i].at = far_here(copy + i * a.count);
        memcpy(array_of(&beside, i), array_of(&a, i), bytes);
    }
    member[0].share.arrays = beside;
    transfer_share_give(member[0].source, &member[0].share);
    gather(&member[1]);
    transfer_share_move(member[0].source, &a);
    memset(copy, 0, 3 * bytes);
    expect_all(&member[1]);
    free(copy);
    close_all(member, 2);
}
