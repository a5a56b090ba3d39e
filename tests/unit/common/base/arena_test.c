#include "common/base/arena.h"

#include <criterion/criterion.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "common/base/assert.h"

enum { ROOM = 64 };

static _Alignas(ARENA_UNIT) unsigned char memory[ROOM + ARENA_UNIT];
static jmp_buf out_of_it;

static void jump(const char *sentence)
{
    cr_assert(strstr(sentence, "of 64 bytes are taken"), "%s", sentence);
    longjmp(out_of_it, 1);
}

Test(arena, what_is_taken_is_zero_aligned_and_apart)
{
    static const size_t sizes[] = {1, 8, 3, 0, 17};
    unsigned char *last = memory;
    memset(memory, 0xff, sizeof memory);
    struct arena arena = arena_over(memory, ROOM);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *at = arena_take(&arena, sizes[i]);
        cr_assert_eq((uintptr_t)at % ARENA_UNIT, 0);
        cr_assert(at == last, "nothing lies between two");
        for (size_t k = 0; k < sizes[i]; k++)
            cr_assert_eq(at[k], 0);
        memset(at, 0xff, sizes[i]);
        last = at + arena_size(sizes[i]);
    }
    cr_assert_eq(arena.used, (size_t)(last - memory));
    cr_assert_str_eq(arena_text(&arena, "seven b"), "seven b");
    cr_assert_eq(arena.used, (size_t)(last - memory) + 8);
}

Test(arena, begun_anew_all_of_it_is_there_again)
{
    struct arena arena = arena_over(memory, ROOM);
    arena_take(&arena, ROOM);
    arena = arena_over(memory, ROOM);
    cr_assert(arena_take(&arena, ROOM) == memory);
}

Test(arena, more_than_there_is_ends_the_program_and_touches_nothing_behind_it)
{
    static const size_t sizes[] = {1, ROOM, SIZE_MAX / 2};
    struct arena arena = arena_over(memory, ROOM);
    memset(memory, 0x5a, sizeof memory);
    arena_take(&arena, ROOM);
    assertion_hook = jump;
    for (volatile size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        if (setjmp(out_of_it))
            continue;
        arena_take(&arena, sizes[i]);
        cr_assert_fail("%zu bytes more were given", sizes[i]);
    }
    for (int i = ROOM; i < ROOM + ARENA_UNIT; i++)
        cr_assert_eq(memory[i], 0x5a);
}
