/* The order of work: what is promised holds for each seed, and what is not promised shows for some. */
#include "gpu_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

enum { TURNS = 20, MIB = 1 << 20 };

#define LABEL "Stand-in GPU GPU-5eed0000-0000-0000-0000-000000000000"

struct pair { /* two streams that write one word after the other */
    struct gpu g;
    struct cuda_memory m;
    struct cuda_stream first, second;
    struct cuda_event between;
    uint32_t *host;
};

static void pair_open(struct pair *p, unsigned seed)
{
    char script[64];
    snprintf(script, sizeof script, "seed=%u", seed);
    gpu_open(&p->g, script);
    p->m = gpu_memory(&p->g, MIB);
    p->first = gpu_stream(&p->g);
    p->second = gpu_stream(&p->g);
    p->between = gpu_event(&p->g);
    p->host = gpu_pinned(&p->g, 64);
    memset(p->host, 0, 64);
}

static void pair_close(struct pair *p)
{
    cuda_pinned_free(p->g.device, p->host);
    cuda_event_clear(&p->between);
    cuda_stream_clear(&p->first);
    cuda_stream_clear(&p->second);
    cuda_memory_clear(&p->m);
    gpu_close(&p->g);
}

/* Each turn has another order: the stand-in goes on with its random numbers. */
static uint32_t last_word(struct pair *p, bool ordered)
{
    GPU_OK(cuda_set_words(&p->first, p->m.at, 1, 1, &gpu_err));
    if (ordered) {
        GPU_OK(cuda_event_record(&p->between, &p->first, &gpu_err));
        GPU_OK(cuda_event_before(&p->between, &p->second, &gpu_err));
    }
    GPU_OK(cuda_set_words(&p->second, p->m.at, 2, 1, &gpu_err));
    GPU_OK(cuda_stream_wait(&p->second, &gpu_err));
    GPU_OK(cuda_stream_wait(&p->first, &gpu_err));
    GPU_OK(cuda_copy_out(&p->first, p->host, p->m.at, 4, &gpu_err));
    GPU_OK(cuda_stream_wait(&p->first, &gpu_err));
    return *p->host;
}

Test(stream, work_behind_an_event_comes_after_it_and_without_one_it_may_come_first)
{
    for (unsigned seed = 0; seed < 4; seed++) {
        struct pair p;
        int other_way = 0;
        pair_open(&p, seed);
        for (int i = 0; i < TURNS; i++) {
            cr_assert_eq(last_word(&p, true), 2);
            other_way += last_word(&p, false) == 1;
        }
        cr_assert_gt(other_way, 0, "a missing event does not show");
        pair_close(&p);
    }
}

/* What a copy reads may change until it is done, and what it writes is nothing until then. */
Test(stream, a_copy_is_not_done_when_the_call_returns)
{
    struct pair p;
    pair_open(&p, 0);
    p.host[0] = 5;
    GPU_OK(cuda_copy_in(&p.first, p.m.at, p.host, 4, &gpu_err));
    p.host[0] = 6; /* too early */
    p.host[1] = 7;
    GPU_OK(cuda_copy_out(&p.first, p.host + 1, p.m.at, 4, &gpu_err));
    cr_assert_neq(p.host[1], 5, "a missing wait does not show");
    cr_assert_neq(p.host[1], 7, "what was there before the copy looks like its result");
    GPU_OK(cuda_stream_wait(&p.first, &gpu_err));
    cr_assert_eq(p.host[1], 6);
    pair_close(&p);
}

Test(stream, who_asks_again_and_again_sees_it_done)
{
    struct pair p;
    struct error err = {0};
    pair_open(&p, 0);
    for (int i = 0; i < 5; i++)
        GPU_OK(cuda_set_words(&p.first, p.m.at, 1, 4, &gpu_err));
    GPU_OK(cuda_event_record(&p.between, &p.first, &gpu_err));
    cr_assert_eq(cuda_stream_done(&p.first, &err), 0);
    cr_assert_eq(cuda_event_done(&p.between, &err), 0);
    int asked = 0;
    while (cuda_event_done(&p.between, &err) == 0)
        cr_assert_lt(asked++, 100);
    while (cuda_stream_done(&p.first, &err) == 0)
        cr_assert_lt(asked++, 100);
    cr_assert_eq(cuda_stream_done(&p.first, &err), 1);
    pair_close(&p);
}

Test(event, is_the_newest_place_that_was_recorded_and_tells_the_time_between_two)
{
    struct pair p;
    struct error err = {0};
    float ms = -1;
    pair_open(&p, 0);
    struct cuda_event begin = gpu_event(&p.g);
    cr_assert_eq(cuda_event_done(&p.between, &err), 1, "never recorded: nothing to wait for");
    GPU_OK(cuda_event_record(&begin, &p.first, &gpu_err));
    GPU_OK(cuda_set_words(&p.first, p.m.at, 1, 1, &gpu_err));
    GPU_OK(cuda_event_record(&p.between, &p.first, &gpu_err));
    GPU_OK(cuda_event_wait(&p.between, &gpu_err));
    GPU_OK(cuda_event_ms(&begin, &p.between, &ms, &gpu_err));
    cr_assert_gt(ms, 0);
    GPU_OK(cuda_set_words(&p.first, p.m.at, 1, 1, &gpu_err));
    GPU_OK(cuda_event_record(&p.between, &p.first, &gpu_err));
    cr_assert_eq(cuda_event_done(&p.between, &err), 0);
    GPU_OK(cuda_stream_wait(&p.first, &gpu_err));
    cuda_event_clear(&begin);
    pair_close(&p);
}

/* ---- a device that fails ---- */

/* No call succeeds any more, so nothing but the process's own can be given back. */
Test(lost, an_error_comes_out_of_the_call_and_of_all_after_it)
{
    static const char sick[] =
        LABEL ": the GPU failed, to finish its work: CUDA_ERROR_ECC_UNCORRECTABLE (214: as the stand-in "
              "says); what its memory holds is not used; look for Xid in this machine's kernel log, it "
              "may need a reset";
    struct gpu g;
    gpu_open(&g, "lost:cuStreamSynchronize@2=ECC_UNCORRECTABLE");
    struct cuda_memory m = gpu_memory(&g, MIB);
    struct cuda_stream s = gpu_stream(&g);
    GPU_OK(cuda_set_words(&s, m.at, 1, 1, &gpu_err));
    GPU_OK(cuda_stream_wait(&s, &gpu_err));
    cr_assert_eq(cuda_device_trouble(g.device), CUDA_FINE);
    GPU_FAILS(cuda_stream_wait(&s, &gpu_err), sick);
    GPU_FAILS(cuda_stream_wait(&s, &gpu_err), sick);
    struct error err = {0};
    cr_assert_eq(cuda_set_words(&s, m.at, 1, 1, &err), -1);
    cr_assert_eq(cuda_stream_done(&s, &err), -1);
    cr_assert_eq(cuda_device_use(g.device, &err), -1);
    cr_assert_eq(cuda_device_trouble(g.device), CUDA_SICK);
    gpu_close(&g);
}

/* The worst counts, whatever came later. */
Test(lost, a_call_that_is_refused_does_not_hide_that_the_gpu_is_sick)
{
    struct gpu g;
    struct error err = {0};
    gpu_open(&g, "fail:cuStreamQuery@1=ECC_UNCORRECTABLE,fail:cuStreamQuery@2=INVALID_VALUE");
    struct cuda_stream s = gpu_stream(&g);
    cr_assert_eq(cuda_stream_done(&s, &err), -1);
    cr_assert_eq(cuda_stream_done(&s, &err), -1);
    cr_assert_eq(err.class, CLASS_SOFTWARE);
    cr_assert_eq(cuda_device_trouble(g.device), CUDA_SICK);
    cuda_stream_clear(&s);
    gpu_close(&g);
}
