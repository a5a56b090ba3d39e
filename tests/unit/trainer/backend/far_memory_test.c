/* Memory by its functions: the same for who lies here and who is far away, and no way around them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/assert.h"
#include "far_memory.h"

enum { BYTES = 2 * MEMORY_WINDOW + 12345 }; /* three windows, the last one odd */

static uint8_t byte_of(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8) + (i >> 20) * 7); /* another one in each window */
}

static uint8_t *numbered(size_t bytes)
{
    uint8_t *b = malloc(bytes);
    for (size_t i = 0; i < bytes; i++)
        b[i] = byte_of(i);
    return b;
}

struct seen {
    size_t bytes;
    int calls;
    bool same;
};

static void look(void *ctx, const void *at, size_t bytes)
{
    struct seen *seen = ctx;
    const uint8_t *b = at;
    for (size_t i = 0; i < bytes; i++)
        seen->same = seen->same && b[i] == byte_of(seen->bytes + i);
    seen->bytes += bytes;
    seen->calls++;
}

static void write_visit_and_zero(struct memory *m, struct far base, int visits)
{
    uint8_t *bytes = numbered(BYTES), *back = malloc(BYTES);
    struct seen seen = {.same = true};
    struct error err;
    cr_assert_eq(memory_write(m, base, bytes, BYTES, &err), 0);
    cr_assert_eq(memory_visit(m, base, BYTES, look, &seen, &err), 0);
    cr_assert(seen.same, "other bytes come than were written");
    cr_assert_eq(seen.bytes, (size_t)BYTES);
    cr_assert_eq(seen.calls, visits);
    cr_assert_eq(memory_zero(m, far_add(base, 1), BYTES - 2, &err), 0);
    cr_assert_eq(memory_read(m, back, base, BYTES, &err), 0);
    for (size_t i = 0; i < BYTES; i++)
        cr_assert_eq(back[i], i == 0 || i == BYTES - 1 ? bytes[i] : 0, "byte %zu is %u", i, back[i]);
    free(bytes);
    free(back);
}

Test(memory, here_is_near_and_is_seen_in_one_piece)
{
    uint8_t *mine = malloc(BYTES);
    cr_assert_eq(memory_near(memory_here(), far_here(mine)), mine);
    write_visit_and_zero(memory_here(), far_here(mine), 1);
    free(mine);
}

Test(memory, far_away_is_seen_window_by_window)
{
    struct far_memory *f = far_memory_open(BYTES);
    cr_assert_null(memory_near(far_memory_of(f), far_memory_base(f)));
    write_visit_and_zero(far_memory_of(f), far_memory_base(f), 3);
    cr_assert_eq(far_memory_writes(f), 1 + 3);
    cr_assert_eq(far_memory_reads(f), 3 + 1);
    far_memory_free(f);
}

Test(memory, nothing_may_be_asked_of_any_address)
{
    struct far_memory *f = far_memory_open(1);
    struct seen seen = {.same = true};
    struct far nowhere = {0};
    cr_assert_eq(memory_read(far_memory_of(f), NULL, nowhere, 0, NULL), 0);
    cr_assert_eq(memory_write(far_memory_of(f), nowhere, NULL, 0, NULL), 0);
    cr_assert_eq(memory_zero(far_memory_of(f), nowhere, 0, NULL), 0);
    cr_assert_eq(memory_visit(far_memory_of(f), nowhere, 0, look, &seen, NULL), 0);
    cr_assert_eq(seen.calls, 0);
    far_memory_free(f);
}

Test(memory, a_device_that_is_lost_is_an_error_wherever_it_is)
{
    for (int after = 0; after < 3; after++) {
        struct far_memory *f = far_memory_open(BYTES);
        struct seen seen = {.same = true};
        struct error err = {0};
        far_memory_lose_after(f, after);
        cr_assert_eq(memory_zero(far_memory_of(f), far_memory_base(f), BYTES, &err), -1);
        cr_assert_eq(err.code, ERR_MACHINE);
        far_memory_lose_after(f, after);
        cr_assert_eq(memory_visit(far_memory_of(f), far_memory_base(f), BYTES, look, &seen, NULL), -1);
        cr_assert_eq(seen.calls, after);
        far_memory_free(f);
    }
}

/* The kernel is asked to follow it: it says that there is nothing. */
Test(far_memory, at_its_address_lies_nothing)
{
    struct far_memory *f = far_memory_open(4096);
    int ends[2];
    cr_assert_eq(pipe(ends), 0);
    cr_assert_eq(write(ends[1], (const void *)(uintptr_t)far_memory_base(f).at, 1), -1);
    cr_assert_eq(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    far_memory_free(f);
}

static jmp_buf refused;

static void jump(const char *sentence)
{
    (void)sentence;
    longjmp(refused, 1);
}

/* Did an assertion refuse it? */
static bool is_refused(struct far_memory *f, void *buffer, int64_t at, size_t bytes)
{
    assertion_hook = jump;
    bool jumped = setjmp(refused);
    if (!jumped)
        memory_read(far_memory_of(f), buffer, far_add(far_memory_base(f), at), bytes, NULL);
    assertion_hook = NULL;
    return jumped;
}

Test(far_memory, a_part_that_is_not_its_own_is_refused)
{
    struct far_memory *f = far_memory_open(100);
    uint8_t buffer[200];
    cr_assert(!is_refused(f, buffer, 0, 100));
    cr_assert(!is_refused(f, buffer, 99, 1));
    cr_assert(is_refused(f, buffer, 0, 101));
    cr_assert(is_refused(f, buffer, 100, 1));
    cr_assert(is_refused(f, buffer, -1, 1));
    far_memory_free(f);
}

Test(far_memory, a_far_address_is_no_pointer)
{
    struct far_memory *f = far_memory_open(8192);
    cr_assert(is_refused(f, (void *)(uintptr_t)far_memory_base(f).at, 0, 10));
    far_memory_free(f);
}
