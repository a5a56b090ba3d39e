/* The second place for the arrays: an update may lead there, the next one leads home, and in between it is a
 * snapshot that nobody had to copy. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/os/crypto.h"
#include "tests/unit/trainer/backend/cpu/sums/exact_case.h"
#include "trainer/state/state_file.h"

enum { STEPS = 8, PAGE = 4096 };

struct spare {
    int fd;
    size_t bytes;
    float *seen; /* as whoever reads the snapshot maps it */
};

/* Behind one page that belongs to somebody else. */
static struct spare make_spare(void)
{
    struct spare spare = {.fd = case_memfd(), .bytes = 3 * (size_t)case_layout()->parameters * sizeof(float)};
    cr_assert_eq(ftruncate(spare.fd, (off_t)(PAGE + spare.bytes)), 0);
    spare.seen = mmap(NULL, spare.bytes, PROT_READ, MAP_SHARED, spare.fd, PAGE);
    cr_assert_neq(spare.seen, MAP_FAILED);
    return spare;
}

static void free_spare(struct spare *spare)
{
    munmap(spare->seen, spare->bytes);
    close(spare->fd);
}

static void add(struct state *s, const struct spare *spare)
{
    struct error err = {0};
    cr_assert_eq(state_add_spare(s, spare->fd, PAGE, &err), 0, "%s", err.text);
}

static struct case_hash hash_of(const void *bytes, size_t size)
{
    struct case_hash out;
    sha256_once(bytes, size, out.bytes);
    return out;
}

static struct case_hash hash_of_arrays(struct state *s)
{
    struct case_hash out;
    struct near_arrays a = near_arrays(s);
    size_t bytes = (size_t)a.count * sizeof(float);
    struct sha256 *h = sha256_open();
    sha256_add(h, a.params, bytes);
    sha256_add(h, a.m, bytes);
    sha256_add(h, a.v, bytes);
    sha256_finish(h, out.bytes);
    return out;
}

static struct case_hash plain(int steps, int threads)
{
    struct ring r;
    ring_open(&r, 1, false, threads);
    for (int i = 0; i < steps; i++)
        ring_step(&r, 0);
    struct case_hash hash = case_hash(r.state[0]);
    ring_close(&r);
    return hash;
}

Test(spare, wherever_the_updates_lead_the_bits_are_the_same)
{
    struct case_hash wanted = plain(STEPS, 0);
    for (int every = 1; every <= 4; every++) {
        for (int threads = 0; threads <= 3; threads++) {
            struct ring r;
            struct spare spare = make_spare();
            int visits = 0;
            ring_open(&r, 1, false, threads);
            add(r.state[0], &spare);
            for (int i = 1; i <= STEPS; i++) {
                state_aim_spare(r.state[0], i % every == 0);
                ring_step(&r, 0);
                visits += state_in_spare(r.state[0]);
            }
            cr_assert(case_same(wanted, case_hash(r.state[0])), "every %d, %d threads", every, threads);
            cr_assert_eq(visits, every == 1 ? STEPS / 2 : STEPS / every, "from the spare it leads home");
            ring_close(&r);
            free_spare(&spare);
        }
    }
}

Test(spare, the_snapshot_stays_as_it_is_while_training_goes_on)
{
    struct ring r;
    struct spare spare = make_spare();
    ring_open(&r, 1, false, 2);
    add(r.state[0], &spare);
    ring_step(&r, 0);
    cr_assert_not(state_in_spare(r.state[0]), "nobody aimed there");
    state_aim_spare(r.state[0], true);
    ring_step(&r, 0);
    cr_assert(state_in_spare(r.state[0]));
    struct case_hash held = hash_of_arrays(r.state[0]);
    cr_assert(case_same(held, hash_of(spare.seen, spare.bytes)), "it lies there as params | m | v");
    for (int i = 0; i < 3; i++) {
        ring_step(&r, 0);
        cr_assert_not(state_in_spare(r.state[0]));
        cr_assert(case_same(held, hash_of(spare.seen, spare.bytes)), "%d steps later", i + 1);
    }
    ring_close(&r);
    free_spare(&spare);
}

struct reader {
    const struct spare *spare;
    struct case_hash wanted;
    atomic_bool stop;
    atomic_int reads, torn;
};

static void *read_on(void *arg)
{
    struct reader *reader = arg;
    while (!atomic_load(&reader->stop)) {
        struct case_hash now = hash_of(reader->spare->seen, reader->spare->bytes);
        atomic_fetch_add(&reader->torn, !case_same(now, reader->wanted));
        atomic_fetch_add(&reader->reads, 1);
    }
    return NULL;
}

Test(spare, a_reader_at_work_while_the_optimizer_runs_never_sees_a_mixture)
{
    struct ring r;
    struct spare spare = make_spare();
    struct reader reader = {.spare = &spare};
    pthread_t thread;
    ring_open(&r, 1, false, 2);
    add(r.state[0], &spare);
    state_aim_spare(r.state[0], true);
    ring_step(&r, 0);
    reader.wanted = hash_of_arrays(r.state[0]);
    cr_assert_eq(pthread_create(&thread, NULL, read_on, &reader), 0);
    for (int i = 0; i < 10 || atomic_load(&reader.reads) < 10; i++)
        ring_step(&r, 0);
    atomic_store(&reader.stop, true);
    pthread_join(thread, NULL);
    cr_assert_eq(atomic_load(&reader.torn), 0, "of %d", atomic_load(&reader.reads));
    ring_close(&r);
    free_spare(&spare);
}

Test(spare, without_its_memory_a_state_in_the_spare_is_not_held)
{
    struct ring r;
    struct spare spare = make_spare();
    struct state *s = NULL;
    const struct state_shape shape = {.layout = case_layout(), .lanes = CASE_LANES, .fast = false};
    ring_open(&r, 1, false, 0);
    add(r.state[0], &spare);
    state_aim_spare(r.state[0], true);
    ring_step(&r, 0);
    struct case_hash held = case_hash(r.state[0]);
    cr_assert_eq(state_open(&s, r.fd[0], &shape, NULL), 0);
    cr_assert_not(state_holds(s, NULL));
    add(s, &spare);
    cr_assert(state_holds(s, NULL));
    cr_assert(case_same(held, case_hash(s)), "whoever opens it next finds it there");
    state_free(s);
    ring_close(&r);
    free_spare(&spare);
}

Test(spare, a_state_that_is_received_lies_at_home)
{
    struct ring r;
    struct spare spare = make_spare();
    ring_open(&r, 1, false, 0);
    add(r.state[0], &spare);
    struct case_hash first = case_hash(r.state[0]);
    state_aim_spare(r.state[0], true);
    ring_step(&r, 0);
    struct case_hash held = hash_of_arrays(r.state[0]);
    case_first_weights(r.state[0]);
    cr_assert_not(state_in_spare(r.state[0]));
    cr_assert(case_same(first, case_hash(r.state[0])));
    cr_assert(case_same(held, hash_of(spare.seen, spare.bytes)), "who reads the snapshot is not disturbed");
    ring_close(&r);
    free_spare(&spare);
}

Test(spare, an_update_that_was_missed_leads_home_from_the_spare)
{
    struct ring r;
    struct spare spare = make_spare();
    const struct update_rule rule = case_rule();
    struct state_update from, to;
    ring_open(&r, 2, false, 0);
    add(r.state[1], &spare);
    state_aim_spare(r.state[1], true);
    ring_step(&r, 0);
    ring_step(&r, 1 << 1);
    cr_assert(state_in_spare(r.state[1]));
    cr_assert(state_kept(r.state[0], &from));
    state_update_receive_begin(r.state[1], &to);
    memcpy(to.k, from.k, (size_t)case_layout()->tensors * sizeof *to.k);
    memcpy(near_words(&to), near_words(&from),
           (size_t)(from.words_count + from.header_count) * sizeof *to.header);
    cr_assert_eq(state_update_receive_end(r.state[1], from.step, NULL), 0);
    update_apply(r.state[1], &rule, NULL, NULL);
    cr_assert_not(state_in_spare(r.state[1]));
    cr_assert(case_same(case_hash(r.state[0]), case_hash(r.state[1])));
    ring_close(&r);
    free_spare(&spare);
}

Test(spare, memory_that_is_not_there_is_refused_at_once)
{
    struct ring r;
    struct error err = {0};
    int fd = case_memfd();
#ifdef RM_EMULATED
    cr_skip("qemu-user says of MADV_POPULATE_WRITE that it was done, whatever is there");
#endif
    ring_open(&r, 1, false, 0);
    cr_assert_lt(state_add_spare(r.state[0], fd, 0, &err), 0, "the file is empty");
    cr_assert_eq(err.code, ERR_MACHINE);
    state_aim_spare(r.state[0], true);
    ring_step(&r, 0);
    cr_assert_not(state_in_spare(r.state[0]));
    close(fd);
    ring_close(&r);
}
