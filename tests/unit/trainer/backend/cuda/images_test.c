/* What nvcc made of the kernels: for which GPUs, of which instructions, within which limits. Skipped where
 * the build found no CUDA compiler. */
#include "trainer/backend/cuda/images.h"

#include <criterion/criterion.h>
#include <stdbool.h>
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

static void has_entries(const char *text, const char *const *kernels, int count)
{
    for (int i = 0; i < count; i++) {
        char entry[64];
        snprintf(entry, sizeof entry, ".visible .entry %s(", kernels[i]);
        cr_assert_eq(count_of(text, entry), 1, "%s", entry);
    }
    cr_assert_eq(count_of(text, ".visible .entry "), count);
}

Test(images, the_exact_half_has_each_operation_rounded_by_itself)
{
    static const char *const banned[] = {"fma.", "mad.f32", "mad.rn.f32", ".approx", "div.full",
                                         "rcp.", "rsqrt.",  "ex2.",       "lg2.",    "tanh"};
    static const char *const there[] = {"mul.rn.ftz.f32", "add.rn.ftz.f32",  "sub.rn.ftz.f32",
                                        "div.rn.ftz.f32", "sqrt.rn.ftz.f32", "cvt.rni.ftz.s32.f32",
                                        "cvt.rn.f32.s32", "mul.rn.f64",      "add.rn.f64"};
    need_compiler();
    char *text = read_built("exact.ptx");
    has_entries(text, exact_kernels, EXACT_KERNELS);
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

static const char *const model_kernels[] = {
    "attend_64", "attend_128", "attend_keys_64", "attend_keys_128", "attend_queries_64", "attend_queries_128",
    "classify",  "columns",    "embed",          "embed_places",    "embed_tokens",      "gelu",
    "gelu_back", "halve",      "norm_back",      "norm_rows"};
enum { MODEL_KERNELS = sizeof model_kernels / sizeof *model_kernels };

/* How often `what` stands in the code of that kernel. */
static int count_in_kernel(const char *text, const char *kernel, const char *what)
{
    char entry[64];
    int count = 0;
    snprintf(entry, sizeof entry, ".visible .entry %s(", kernel);
    const char *at = strstr(text, entry);
    cr_assert_not_null(at, "%s", kernel);
    const char *end = strstr(at + strlen(entry), ".visible .entry ");
    for (at = strstr(at, what); at && (!end || at < end); at = strstr(at + 1, what))
        count++;
    return count;
}

/* A logarithm is the compiler's own function, with 12 of them; attention takes two for each sixteen rows. */
static int fused_most(const char *kernel)
{
    if (!strcmp(kernel, "classify"))
        return 12;
    return !strcmp(kernel, "attend_64") ? 48 : !strcmp(kernel, "attend_128") ? 24 : 0;
}

/* The exponential alone is approximate, and only in logarithms is anything fused that no kernel has asked
 * for. */
Test(images, the_model_rounds_each_operation_by_itself_but_for_exponentials)
{
    static const char *const banned[] = {"div.full", "div.approx",  "rcp.approx", "rsqrt.",
                                         "lg2.",     "sqrt.approx", "tanh",       "mad.f32"};
    need_compiler();
    char *text = read_built("model.ptx");
    has_entries(text, model_kernels, MODEL_KERNELS);
    for (size_t i = 0; i < sizeof banned / sizeof *banned; i++)
        cr_assert_eq(count_of(text, banned[i]), 0, "%s", banned[i]);
    for (int i = 0; i < MODEL_KERNELS; i++) {
        const int asked = count_in_kernel(text, model_kernels[i], "// begin inline asm\n\tfma.rn.ftz.f32");
        cr_assert_leq(count_in_kernel(text, model_kernels[i], "fma.") - asked, fused_most(model_kernels[i]),
                      "%s", model_kernels[i]);
    }
    cr_assert_eq(count_of(text, ".approx"), count_of(text, "ex2.approx.ftz.f32"));
    cr_assert_gt(count_of(text, "ex2.approx.ftz.f32"), 0);
    cr_assert_gt(count_of(text, "cvt.rn.bf16.f32"), 0);
    free(text);
}

/* Bytes or registers that ptxas says of a kernel: the number between both texts, from `at` on. */
static int number_of(const char *at, const char *before, const char *after)
{
    for (; (at = strstr(at, before)); at++) {
        char *end;
        long n = strtol(at + strlen(before), &end, 10);
        if (!strncmp(end, after, strlen(after)))
            return (int)n;
    }
    return -1;
}

/* The compiler holds sums of columns to 64 registers, two short of what they need. */
static int may_spill(const char *name)
{
    return strstr(name, "attend_keys_") ? 128 : !strcmp(name, "columns") ? 8 : 0;
}

/* Attention holds its sums in registers, and of its keys a few bytes more than there are; its tiles are
 * shared. A norm holds a row, and on its way back two sums of its columns; sums of columns read 32 numbers
 * before they add one. All others leave room for a thousand threads on each processor. */
static int fits(const char *name, const char *says)
{
    const bool tiles =
        strstr(name, "_64") || strstr(name, "_128") || !strncmp(name, "norm_", 5) || !strcmp(name, "columns");
    const int registers = number_of(says, "Used ", " registers"),
              shared = number_of(says, "barriers, ", " bytes smem");
    const int spilled = number_of(says, "bytes stack frame, ", " bytes spill stores"),
              stack = number_of(says, "    ", " bytes stack frame");
    cr_assert(registers > 0 && registers <= (tiles ? 255 : 64), "%s: %d registers", name, registers);
    cr_assert(shared <= (tiles ? 38 << 10 : 4096), "%s: %d bytes of shared memory", name, shared);
    cr_assert(spilled >= 0 && spilled <= may_spill(name), "%s: %d bytes", name, spilled);
    cr_assert_eq(stack, spilled, "%s: %d bytes of stack beside what is spilled", name, stack - spilled);
    return shared;
}

static void all_fit(const char *log, int kernels)
{
    static const char begin[] = "Compiling entry function '";
    char *text = read_built(log), *at = strstr(text, begin);
    int seen = 0, shared = 0;
    for (char *next; at; at = next, seen++) {
        char name[64] = "";
        next = strstr(at + 1, begin);
        if (next)
            next[-1] = 0;
        sscanf(at + strlen(begin), "%63[^']", name);
        int own = fits(name, at);
        shared = own > shared ? own : shared;
    }
    cr_assert_eq(seen, 3 * kernels);
    cr_assert_gt(shared, 0, "%s says it in other words", log);
    free(text);
}

Test(images, registers_and_shared_memory_leave_room_for_many_threads)
{
    need_compiler();
    all_fit("exact.log", EXACT_KERNELS);
    all_fit("model.log", MODEL_KERNELS);
}
