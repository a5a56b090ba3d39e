/* Graphs: captured once, done as often as they are started, and what a capture may not hold. */
#include "gpu_case.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "trainer/backend/cuda/kernels/fill.h"

enum { MIB = 1 << 20, WORDS = 300 };

struct rig {
    struct gpu g;
    struct cuda_memory m;
    struct cuda_stream main, side;
    struct cuda_event out, back;
    struct cuda_module module;
    struct cuda_kernel fill;
    uint32_t *host; // (WORDS)
};

static void rig_open(struct rig *r, const char *script)
{
    const struct cuda_kernel_shape shape = {"fill", FILL_THREADS, 0, sizeof(struct fill_args)};
    gpu_open(&r->g, script);
    r->m = gpu_memory(&r->g, MIB);
    r->main = gpu_stream(&r->g);
    r->side = gpu_stream(&r->g);
    r->out = gpu_event(&r->g);
    r->back = gpu_event(&r->g);
    GPU_OK(cuda_module_open(&r->module, r->g.device, gpu_image, "exact", &gpu_err));
    GPU_OK(cuda_kernel_open(&r->fill, &r->module, &shape, &gpu_err));
    r->host = gpu_pinned(&r->g, sizeof *r->host * WORDS);
}

static void rig_close(struct rig *r)
{
    cuda_pinned_free(r->g.device, r->host);
    cuda_module_clear(&r->module);
    cuda_event_clear(&r->out);
    cuda_event_clear(&r->back);
    cuda_stream_clear(&r->main);
    cuda_stream_clear(&r->side);
    cuda_memory_clear(&r->m);
    gpu_close(&r->g);
}

static void launch_fill(struct rig *r, struct cuda_stream *s, CUdeviceptr at, uint32_t word)
{
    const struct fill_args args = {(uint32_t *)(uintptr_t)at, WORDS, word};
    GPU_OK(cuda_kernel_launch(&r->fill, s, 2, &args, &gpu_err));
}

/* main: the host's words come in; side, meanwhile: another place is filled; main, after both: that is added
 * behind and all goes out. */
static void capture(struct rig *r, struct cuda_graph *ret, bool joined)
{
    const size_t half = sizeof *r->host * WORDS / 2;
    GPU_OK(cuda_graph_begin(&r->main, &gpu_err));
    GPU_OK(cuda_event_record(&r->out, &r->main, &gpu_err));
    GPU_OK(cuda_event_before(&r->out, &r->side, &gpu_err));
    GPU_OK(cuda_copy_in(&r->main, r->m.at, r->host, half, &gpu_err));
    launch_fill(r, &r->side, r->m.at + MIB / 2, 77);
    GPU_OK(cuda_event_record(&r->back, &r->side, &gpu_err));
    if (joined)
        GPU_OK(cuda_event_before(&r->back, &r->main, &gpu_err));
    GPU_OK(cuda_copy(&r->main, r->m.at + half, r->m.at + MIB / 2, half, &gpu_err));
    GPU_OK(cuda_copy_out(&r->main, r->host, r->m.at, 2 * half, &gpu_err));
    if (joined)
        GPU_OK(cuda_graph_end(ret, &r->main, &gpu_err));
}

static void check_done(struct rig *r, struct cuda_graph *g, uint32_t word)
{
    for (int i = 0; i < WORDS; i++)
        r->host[i] = word;
    GPU_OK(cuda_graph_launch(g, &r->main, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->main, &gpu_err));
    for (int i = 0; i < WORDS; i++)
        cr_assert_eq(r->host[i], i < WORDS / 2 ? word : 77, "%d: %u", i, r->host[i]);
}

Test(graph, is_done_as_often_as_it_is_started_each_time_with_what_lies_there_then)
{
    for (int seed = 0; seed < 4; seed++) {
        struct rig r;
        struct cuda_graph g;
        char script[32];
        snprintf(script, sizeof script, "seed=%d", seed);
        rig_open(&r, script);
        memset(r.host, 0, sizeof *r.host * WORDS);
        capture(&r, &g, true);
        cr_assert_eq(r.host[0], 0, "capturing did something");
        for (uint32_t word = 1; word < 10; word++) {
            GPU_OK(cuda_set_words(&r.side, r.m.at + MIB / 2, 5, WORDS, &gpu_err));
            GPU_OK(cuda_stream_wait(&r.side, &gpu_err));
            check_done(&r, &g, word);
        }
        cuda_graph_clear(&g);
        rig_close(&r);
    }
}

/* A copy in the graph spoils its target when the graph is handed over, as one outside does. */
Test(graph, is_not_done_when_the_call_returns)
{
    struct rig r;
    struct cuda_graph g;
    rig_open(&r, "seed=0");
    capture(&r, &g, true);
    GPU_OK(cuda_graph_launch(&g, &r.main, &gpu_err));
    cr_assert_neq(r.host[WORDS - 1], 77);
    GPU_OK(cuda_stream_wait(&r.main, &gpu_err));
    cr_assert_eq(r.host[WORDS - 1], 77);
    cuda_graph_clear(&g);
    rig_close(&r);
}

static void ends_with(struct rig *r, const char *code)
{
    struct cuda_graph g = {0};
    struct error err = {0};
    cr_assert_eq(cuda_graph_end(&g, &r->main, &err), -1);
    cr_assert_not_null(strstr(err.text, code), "%s", err.text);
    cr_assert_eq(err.class, CLASS_SOFTWARE);
    GPU_OK(cuda_set_words(&r->main, r->m.at, 1, 1, &gpu_err));
    GPU_OK(cuda_set_words(&r->side, r->m.at, 1, 1, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->main, &gpu_err));
    GPU_OK(cuda_stream_wait(&r->side, &gpu_err));
}

Test(graph, a_stream_that_has_not_come_back_is_missed_and_both_are_streams_again)
{
    struct rig r;
    rig_open(&r, "");
    capture(&r, NULL, false);
    ends_with(&r, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED");
    rig_close(&r);
}

Test(graph, who_waits_in_the_middle_of_a_capture_has_broken_it)
{
    struct rig r;
    struct error err = {0};
    rig_open(&r, "");
    GPU_OK(cuda_graph_begin(&r.main, &gpu_err));
    cr_assert_eq(cuda_stream_wait(&r.main, &err), -1);
    cr_assert_not_null(strstr(err.text, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"), "%s", err.text);
    ends_with(&r, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    rig_close(&r);
}

Test(graph, memory_is_not_taken_in_the_middle_of_a_capture)
{
    struct rig r;
    struct error err = {0};
    void *at;
    rig_open(&r, "");
    GPU_OK(cuda_graph_begin(&r.main, &gpu_err));
    cr_assert_eq(cuda_pinned_open(&at, r.g.device, 64, "a test", &err), -1);
    ends_with(&r, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    rig_close(&r);
}

Test(graph, waits_for_nothing_that_is_not_in_it)
{
    struct rig r;
    struct error err = {0};
    rig_open(&r, "");
    GPU_OK(cuda_event_record(&r.out, &r.side, &gpu_err));
    GPU_OK(cuda_graph_begin(&r.main, &gpu_err));
    cr_assert_eq(cuda_event_before(&r.out, &r.main, &err), -1);
    ends_with(&r, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED");
    rig_close(&r);
}

Test(graph, one_that_can_not_be_made_ready_leaves_nothing_behind)
{
    struct rig r;
    rig_open(&r, "fail:cuGraphInstantiateWithFlags@1=OUT_OF_MEMORY");
    GPU_OK(cuda_graph_begin(&r.main, &gpu_err));
    launch_fill(&r, &r.main, r.m.at, 1);
    struct cuda_graph g = {0};
    struct error err = {0};
    cr_assert_eq(cuda_graph_end(&g, &r.main, &err), -1);
    cr_assert_null(g.device);
    cr_assert_eq(cuda_device_trouble(r.g.device), CUDA_SHORT);
    rig_close(&r);
}
