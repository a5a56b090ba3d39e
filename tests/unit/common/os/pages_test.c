#include "common/os/pages.h"

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The sanitizer's own refusal would end the program before ours can be seen. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "allocator_may_return_null=1";
}

Test(pages, memory_of_any_size_is_aligned_and_can_be_written_to_its_end)
{
    const size_t sizes[] = {1, 64, 100, (2 << 20) - 1, 2 << 20, (5 << 20) + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        unsigned char *memory = pages_alloc(sizes[i]);
        cr_assert_not_null(memory);
        cr_assert_eq((uintptr_t)memory % 64, 0);
        memset(memory, 0xA5, sizes[i]);
        cr_assert_eq(memory[sizes[i] - 1], 0xA5);
        free(memory);
    }
}

Test(pages, memory_that_no_machine_has_is_refused)
{
    cr_assert_null(pages_alloc(SIZE_MAX - 5));
    cr_assert_null(pages_alloc(SIZE_MAX / 2));
}

Test(pages, what_is_available_is_a_part_of_what_the_machine_has)
{
    size_t all = (size_t)sysconf(_SC_PHYS_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
    cr_assert_gt(pages_available(), 0);
    cr_assert_leq(pages_available(), all);
}
