/* A state that outlives its trainer on a GPU: on the stand-ins, whose memory is a memfd. An agent, which is
 * this test, keeps the state's memfd and the shelf; trainers come and go, some by SIGKILL in the middle of an
 * update. What the next one goes on with has the bits that it would have had; what is not whole is found. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/os/file.h"
#include "common/os/shelf.h"
#include "gpu_case.h"
#include "tests/unit/trainer/backend/one.h"
#include "trainer/backend/cuda/gpu/gpu_parts.h"

enum { CONTEXT = 3, LAST = 2, OTHERS = 16 /* MiB that the driver takes for itself */ };

static struct model_layout layout;
static const struct model_shape tiny = {
    .layers = 1, .heads = 1, .width = 8, .context = CONTEXT, .vocabulary = 7};

/* What an agent keeps. */
static struct keeper {
    int state_fd;
    struct shelf shelf;
    bool fast;
} kept;

static void keep_anew(void)
{
    GPU_OK(file_memory(&kept.state_fd, "state", 0, &gpu_err));
    GPU_OK(shelf_open(&kept.shelf, &gpu_err));
    kept.fast = false;
}

static void prepare(void)
{
    model_layout_init(&layout, &tiny);
    gpu_blas_at(STANDIN_CUBLASLT);
    keep_anew();
}

static int open_gpu(struct backend **ret, const struct backend_options *options, struct error *err)
{
    const struct backend_gpu_parts parts = {on_gpu_image("exact"), on_gpu_image("model"), true};
    return backend_gpu_open_with(ret, options, &parts, err);
}

static struct backend_options wished(void)
{
    return (struct backend_options){.layout = &layout,
                                    .sequences = ONE_SEQUENCES,
                                    .threads = 1,
                                    .isa = "Auto",
                                    .bf16 = true,
                                    .rule = one_rule,
                                    .shelf = &kept.shelf};
}

/* A trainer's start. */
static struct one attached(const char *script)
{
    const struct backend_options options = wished();
    gpu_script(script);
    return one_attach(open_gpu, &options, kept.fast, dup(kept.state_fd));
}

/* A trainer that made that many steps. */
static struct one trained(int steps)
{
    struct one o = attached("");
    one_first(&o);
    while (steps--)
        one_step(&o, one_in_order);
    return o;
}

/* ---- what is gone on with ---- */

static void goes_on(bool fast)
{
    kept.fast = fast;
    struct one first = trained(2);
    struct one_bits left = one_bits(&first);
    struct state_point point;
    struct state_update update;
    cr_assert(!first.b->kept && !*first.b->found, "the first one finds nothing");
    one_close(&first);
    struct one next = attached("seed=2");
    cr_assert(next.b->kept, "%s", next.b->found);
    cr_assert(strstr(next.b->found, " pieces of step 2 add up, 0 of them half done"), "%s", next.b->found);
    cr_assert(state_holds(next.state, &point) && point.step == 2);
    cr_assert(state_kept(next.state, &update) && update.step == 2, "who is a step behind can have it");
    cr_assert(one_same(one_bits(&next), left));
    one_step(&next, one_in_order);
    struct one_bits end = one_bits(&next);
    one_close(&next);
    keep_anew();
    kept.fast = fast;
    struct one undisturbed = trained(3);
    cr_assert(one_same(end, one_bits(&undisturbed)));
    one_close(&undisturbed);
}

Test(gpu_takeover, the_next_trainer_goes_on_with_the_state_that_was_left, .init = prepare)
{
    goes_on(false);
}

Test(gpu_takeover, and_so_it_does_where_words_are_fp32, .init = prepare)
{
    goes_on(true);
}

/* Or the memory that others hold for it would be in its own way. */
Test(gpu_takeover, a_gpu_that_has_room_for_one_state_is_enough, .init = prepare)
{
    GPU_BY_SCRIPT();
    const struct backend_options options = wished();
    const long long needs = (long long)(backend_gpu_bytes(&options) >> 20) + 1;
    char script[64], small[64];
    struct backend *b;
    struct error err = {0};
    snprintf(script, sizeof script, "memory=%lldM", needs + OTHERS);
    snprintf(small, sizeof small, "memory=%lldM", needs + OTHERS - 8);
    struct one first = attached(script);
    one_first(&first);
    one_step(&first, one_in_order);
    one_close(&first);
    struct one next = attached(script);
    cr_assert(next.b->kept);
    one_close(&next);
    gpu_script(small);
    cr_assert_eq(open_gpu(&b, &options, &err), -1, "the control: less than a state is too little");
}

Test(gpu_takeover, a_state_that_was_never_added_up_is_not_used, .init = prepare)
{
    struct one first = trained(0);
    struct state_point point;
    one_close(&first);
    struct one next = attached("");
    cr_assert_not(state_holds(next.state, &point));
    cr_assert_str_eq(next.b->found, "the pieces of step 0 had not been added up yet");
    one_close(&next);
}

/* ---- what is found ---- */

static void flip(struct one *o, const volatile void *place)
{
    const struct far at = {(uint64_t)(uintptr_t)place};
    uint32_t word;
    GPU_OK(memory_read(o->state->in, &word, at, sizeof word, &gpu_err));
    word ^= 1 << 2;
    GPU_OK(memory_write(o->state->in, at, &word, sizeof word, &gpu_err));
}

static void flip_weight(struct one *o)
{
    flip(o, o->state->place[STATE_HOME].params + 70);
}

static void flip_moment(struct one *o)
{
    flip(o, o->state->place[STATE_HOME].v + layout.parameters - 1);
}

static void flip_stamp(struct one *o)
{
    flip(o, &o->state->stamp[1]);
}

static void flip_sum(struct one *o)
{
    flip(o, &o->state->proof[0]);
}

static void flip_slot(struct one *o)
{
    flip(o, &o->state->slot[9].piece);
    const uint32_t valid = 1;
    GPU_OK(memory_write(o->state->in, far_here(&o->state->slot[9]), &valid, sizeof valid, &gpu_err));
}

static void flip_word(struct one *o)
{
    struct state_update update;
    cr_assert(state_kept(o->state, &update));
    flip(o, (const void *)(uintptr_t)update.words.at);
}

static const struct {
    void (*spoil)(struct one *o);
    const char *begins, *has;
} spoilt[] = {
    {flip_weight, "piece ", " adds up to "},
    {flip_moment, "piece ", " adds up to "},
    {flip_stamp, "piece 1 of ", " is of step 6, the state of step 2"},
    {flip_sum, "piece 0 of ", " was written"},
    {flip_slot, "undo slot 9 has old values of piece ", ", and no update was under way"},
    {flip_word, "the words of step 2 have another sum", ""},
};

static void found(int i)
{
    struct one first = trained(2);
    struct state_point point;
    spoilt[i].spoil(&first);
    one_close(&first);
    struct one next = attached("");
    cr_assert_not(next.b->kept);
    cr_assert_eq(strncmp(next.b->found, spoilt[i].begins, strlen(spoilt[i].begins)), 0, "%d: %s", i,
                 next.b->found);
    cr_assert(strstr(next.b->found, spoilt[i].has), "%d: %s", i, next.b->found);
    cr_assert(!state_holds(next.state, &point) && !state_pending(next.state));
    one_first(&next); /* the memory is as good as any other */
    one_step(&next, one_in_order);
    struct one_bits bits = one_bits(&next);
    one_close(&next);
    struct one third = attached("");
    cr_assert(third.b->kept && one_same(one_bits(&third), bits), "%s", third.b->found);
    one_close(&third);
}

Test(gpu_takeover, what_is_not_as_it_was_written_is_found_and_nothing_of_it_is_used, .init = prepare)
{
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        found((int)i);
        keep_anew();
    }
}

static bool lies_there(void)
{
    char note[256];
    ssize_t n = recv(kept.shelf.out, note, sizeof note, MSG_PEEK | MSG_DONTWAIT);
    return n > 0;
}

/* A trainer, with the first weights where it holds none, whose pass fails by the script. In a process of its
 * own: what a device that was lost is to that process, it stays. */
static void fail_in_a_pass(const char *script)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        struct one o = attached(script);
        const struct backend_pass pass = {.world = 1};
        struct error err = {0};
        struct state_point point;
        if (!state_holds(o.state, &point))
            one_first(&o);
        int failed = o.ops->weights(o.b, one_params(&o), &err);
        failed |= o.ops->begin(o.b, &pass, &err);
        for (int lane = 0; lane < ONE_LANES && !failed; lane++)
            failed |= o.ops->lane(o.b, lane, one_tokens(&layout, lane), NULL, &err);
        _exit(failed ? 7 : 0);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7, "%s", script);
}

Test(gpu_takeover, after_a_device_that_failed_nothing_lies_there, .init = prepare)
{
    GPU_BY_SCRIPT();
    struct one first = trained(1);
    one_close(&first);
    cr_assert(lies_there());
    fail_in_a_pass("lost:kernel@40=ECC_UNCORRECTABLE");
    cr_assert_not(lies_there());
    struct one next = attached("");
    cr_assert(!next.b->kept && !*next.b->found);
    one_close(&next);
}

Test(gpu_takeover, nor_after_one_that_can_not_be_opened, .init = prepare)
{
    GPU_BY_SCRIPT();
    struct one first = trained(1);
    const struct backend_options options = wished();
    struct backend *b;
    struct error err = {0};
    one_close(&first);
    cr_assert(lies_there());
    gpu_script("memory=100M");
    cr_assert_eq(open_gpu(&b, &options, &err), -1);
    cr_assert_not(lies_there());
}

/* A crash of a kernel spoils nothing that was written. */
Test(gpu_takeover, what_a_kernel_that_crashed_leaves_is_used, .init = prepare)
{
    GPU_BY_SCRIPT();
    struct one first = trained(1);
    struct one_bits left = one_bits(&first);
    one_close(&first);
    fail_in_a_pass("lost:kernel@40=ILLEGAL_ADDRESS");
    struct one next = attached("");
    cr_assert(next.b->kept && one_same(one_bits(&next), left), "%s", next.b->found);
    one_close(&next);
}

/* Whoever knows nothing of a shelf leaves what lies there; whatever that is, it is not what he had. */
Test(gpu_takeover, a_trainer_without_a_shelf_between_two_others_changes_nothing_for_the_second,
     .init = prepare)
{
    struct one first = trained(1);
    struct backend_options options = wished();
    one_close(&first);
    options.shelf = NULL;
    gpu_script("");
    struct one other = one_attach(open_gpu, &options, false, dup(kept.state_fd));
    struct state_point point;
    cr_assert(!other.b->kept && !state_holds(other.state, &point));
    one_first(&other);
    one_step(&other, one_in_order);
    one_step(&other, one_in_order);
    one_close(&other);
    struct one third = attached("");
    cr_assert_not(third.b->kept);
    cr_assert(strstr(third.b->found, " is of step 1, the state of step 2"), "%s", third.b->found);
    one_close(&third);
}

/* ---- SIGKILL ---- */

/* What a life has to say at its end; seen by all. */
struct last_words {
    struct one_bits bits;
    bool kept, ended;
    char found[RM_WHY_MAX];
};
static struct last_words *words;

static void live(const char *script)
{
    struct one o = attached(script);
    struct state_point point;
    words->kept = o.b->kept;
    memcpy(words->found, o.b->found, sizeof words->found);
    if (state_pending(o.state))
        GPU_OK(o.ops->finish(o.b, &gpu_err));
    if (!state_holds(o.state, &point))
        one_first(&o);
    while (state_holds(o.state, &point) && point.step < LAST)
        one_step(&o, one_in_order);
    words->bits = one_bits(&o);
    words->ended = true;
    _exit(0);
}

/* Whether it was ended by the fault point or the script. */
static bool killed(const char *fault, const char *script)
{
    int status = 0;
    *words = (struct last_words){.ended = false};
    pid_t child = fork();
    if (child == 0) {
        if (fault)
            setenv("RINGMASTER_FAULT", fault, 1);
        live(script);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status))
        cr_assert_eq(WTERMSIG(status), SIGKILL, "signal %d: %s %s", WTERMSIG(status), fault, script);
    else
        cr_assert(words->ended, "exit %d: %s %s", WEXITSTATUS(status), fault, script);
    return WIFSIGNALED(status);
}

static struct one_bits undisturbed(void)
{
    words = mmap(NULL, sizeof *words, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    cr_assert_neq(words, MAP_FAILED);
    cr_assert_not(killed(NULL, ""));
    struct one_bits out = words->bits;
    keep_anew();
    return out;
}

/* The trainer behind the one that was killed goes on with its state, to the same end. */
static void goes_on_behind(struct one_bits wanted, const char *fault, const char *script)
{
    cr_assert(killed(fault, script), "not reached: %s %s", fault ? fault : "", script);
    cr_assert_not(killed(NULL, "seed=1"));
    cr_assert(words->kept, "%s %s: %s", fault ? fault : "", script, words->found);
    cr_assert(one_same(words->bits, wanted), "other bits: %s %s", fault ? fault : "", script);
    keep_anew();
}

Test(gpu_takeover, a_trainer_killed_at_each_named_point_of_an_update_leaves_the_state_whole, .init = prepare)
{
    static const char *const points[] = {"kept-forgotten", "header-copied", "words-complete", "update-record",
                                         "update-valid",   "before-commit", "record-written", "after-commit"};
    GPU_BY_SCRIPT();
    const struct one_bits wanted = undisturbed();
    for (size_t i = 0; i < sizeof points / sizeof *points; i++) {
        char fault[64];
        snprintf(fault, sizeof fault, "%s:2", points[i]);
        goes_on_behind(wanted, fault, "");
    }
}

/* Moments of the emulator's: of nearly six thousand, most of them before the first slot is valid. */
Test(gpu_takeover, a_trainer_killed_inside_the_kernel_of_an_update_leaves_pieces_that_are_put_back,
     .init = prepare)
{
    static const int moments[] = {1, 2000, 2400, 3600, 5400};
    GPU_BY_SCRIPT();
    const struct one_bits wanted = undisturbed();
    int half_done = 0;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        char script[64];
        snprintf(script, sizeof script, "sms=2,die:update@2=%d", moments[i]);
        goes_on_behind(wanted, NULL, script);
        half_done += !strstr(words->found, " 0 of them");
    }
    cr_assert_geq(half_done, 3, "pieces were half done in %d cases", half_done);
}

Test(gpu_takeover, and_so_does_one_that_is_killed_in_the_repair, .init = prepare)
{
    static const int moments[] = {1, 100, 500};
    GPU_BY_SCRIPT();
    const struct one_bits wanted = undisturbed();
    int in_repair = 0;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++) {
        char script[64];
        cr_assert(killed(NULL, "sms=2,die:update@2=3600"));
        snprintf(script, sizeof script, "die:restore@1=%d", moments[i]);
        in_repair += killed(NULL, script);
        cr_assert_not(killed(NULL, "seed=1"));
        cr_assert(words->kept, "%s", words->found);
        cr_assert(one_same(words->bits, wanted), "other bits: %s", script);
        keep_anew();
    }
    cr_assert_eq(in_repair, 3, "it was killed in %d repairs", in_repair);
}
