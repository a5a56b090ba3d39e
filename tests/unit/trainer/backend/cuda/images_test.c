/* What nvcc made of the kernels: for which GPUs, of which instructions, within which limits. Skipped where
 * the build found no CUDA compiler. */
#include "trainer/backend/cuda/images.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void need_compiler(void)
{
    if (!cuda_images_count())
        cr_skip_test("built without a CUDA compiler: tools/install-packages --cuda");
}

/* A file that the build left, with a 0 behind it. */
static char *read_built(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", CUDA_FOLDER, name);
    FILE *f = fopen(path, "r");
    cr_assert(f, "%s", path);
    size_t room = 1 << 22;
    char *text = calloc(room, 1);
    size_t bytes = fread(text, 1, room - 1, f);
    fclose(f);
    cr_assert(bytes > 0 && bytes < room - 1, "%s", path);
    return text;
}

static int count_of(const char *text, const char *what)
{
    int count = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        count++;
    return count;
}

Test(images, each_holds_code_for_three_kinds_of_gpu_and_nothing_to_compile)
{
    static const uint32_t wanted[] = {80, 90, 100};
    need_compiler();
    for (int i = 0; i < cuda_images_count(); i++) {
        struct cuda_code code[CUDA_CODES_MAX];
        struct cuda_image image = cuda_image(i);
        cr_assert_eq(cuda_image_codes(image.data, image.bytes, code), 3, "%s", image.name);
        for (int j = 0; j < 3; j++) {
            cr_assert_eq(code[j].architecture, wanted[j], "%s", image.name);
            cr_assert(code[j].bytes > 64 && !memcmp(code[j].elf, "\177ELF", 4), "%s", image.name);
        }
    }
}

/* A changed byte of a head, or an end too early, is no image; and nothing behind its end is looked at. */
Test(images, what_is_cut_or_changed_is_refused)
{
    need_compiler();
    struct cuda_code code[CUDA_CODES_MAX];
    struct cuda_image image = cuda_image(0);
    for (size_t bytes = 0; bytes < image.bytes; bytes += bytes < 200 ? 1 : 997) {
        void *copy = malloc(bytes ? bytes : 1);
        memcpy(copy, image.data, bytes);
        cr_assert_eq(cuda_image_codes(copy, bytes, code), -1, "%zu bytes", bytes);
        free(copy);
    }
    unsigned char *copy = malloc(image.bytes);
    memcpy(copy, image.data, image.bytes);
    copy[16] = 1; /* the kind of the first entry: text */
    cr_assert_eq(cuda_image_codes(copy, image.bytes, code), -1);
    free(copy);
}

static const char *const exact_kernels[] = {"fill", "lanes_add", "prove", "restore", "sums", "update"};
enum { EXACT_KERNELS = sizeof exact_kernels / sizeof *exact_kernels };

Test(images, the_exact_half_has_each_operation_rounded_by_itself)
{
    static const char *const banned[] = {"fma.", "mad.f32", "mad.rn.f32", ".approx", "div.full",
                                         "rcp.", "rsqrt.",  "ex2.",       "lg2.",    "tanh"};
    static const char *const there[] = {"mul.rn.ftz.f32", "add.rn.ftz.f32",  "sub.rn.ftz.f32",
                                        "div.rn.ftz.f32", "sqrt.rn.ftz.f32", "cvt.rni.ftz.s32.f32",
                                        "cvt.rn.f32.s32", "mul.rn.f64",      "add.rn.f64"};
    need_compiler();
    char *text = read_built("exact.ptx");
    for (int i = 0; i < EXACT_KERNELS; i++) {
        char entry[64];
        snprintf(entry, sizeof entry, ".visible .entry %s(", exact_kernels[i]);
        cr_assert_eq(count_of(text, entry), 1, "%s", entry);
    }
    cr_assert_eq(count_of(text, ".visible .entry "), EXACT_KERNELS);
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++)
        cr_assert_eq(count_of(text, banned[i]), 0, "%s", banned[i]);
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        cr_assert_gt(count_of(text, there[i]), 0, "%s", there[i]);
    /* no float operation without .ftz: what is left when those with it are taken away */
    cr_assert_eq(count_of(text, ".rn.f32"), count_of(text, "cvt.rn.f32.s32"));
    free(text);
}

/* As many as the sources have, whose barriers the emulator's tests leave out one by one (exact_test.c,
 * cut_off_test.c); what a missing fence does shows on no emulator. A compiler may repeat code, never drop
 * these. */
Test(images, the_exact_half_has_each_barrier_and_each_fence)
{
    need_compiler();
    char *text = read_built("exact.ptx");
    int barriers = count_of(text, "bar.sync") + count_of(text, "barrier.sync");
    int fences = count_of(text, "membar.gl") + count_of(text, "fence.");
    cr_assert_geq(barriers, 1 + 2 + 1 + 4, "%d barriers in lanes_add, prove, restore and update", barriers);
    cr_assert_geq(fences, 5 + 2, "%d fences in update and restore", fences);
    free(text);
}

/* Of ptxas's lines: "Used N registers", and of each function "N bytes stack frame, N bytes spill stores,
 * ...". */
static int largest_of(const char *text, const char *before, const char *after)
{
    int largest = -1;
    for (const char *at = text; (at = strstr(at, before));) {
        char *end;
        long n = strtol(at + strlen(before), &end, 10);
        if (!strncmp(end, after, strlen(after)) && n > largest)
            largest = (int)n;
        at = end;
    }
    return largest;
}

Test(images, registers_and_shared_memory_leave_room_for_a_thousand_threads_and_nothing_is_spilled)
{
    need_compiler();
    char *text = read_built("exact.log");
    cr_assert_eq(count_of(text, "Compiling entry function '"), 3 * EXACT_KERNELS);
    int registers = largest_of(text, "Used ", " registers"),
        shared = largest_of(text, "barriers, ", " bytes smem");
    cr_assert(registers > 0 && registers <= 64, "%d registers, of 65536 that a processor has", registers);
    cr_assert(shared > 0 && shared <= 4096, "%d bytes of shared memory", shared);
    cr_assert_eq(count_of(text, "bytes stack frame"), 3 * EXACT_KERNELS);
    cr_assert_eq(count_of(text, "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
                 3 * EXACT_KERNELS);
    free(text);
}
