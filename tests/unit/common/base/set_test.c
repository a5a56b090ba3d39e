#include "common/base/set.h"

#include <criterion/criterion.h>
#include <setjmp.h>
#include <string.h>

enum { MOST = RM_WORKERS_MAX, MEMBERS = 6 };

/* Members of each, -1 behind the last. */
static const struct row {
    int a[MEMBERS], b[MEMBERS], either[MEMBERS], both[MEMBERS], a_alone[MEMBERS];
} rows[] = {
    {{-1}, {-1}, {-1}, {-1}, {-1}},
    {{0, -1}, {-1}, {0, -1}, {-1}, {0, -1}},
    {{-1}, {MOST - 1, -1}, {MOST - 1, -1}, {-1}, {-1}},
    {{0, 1, -1}, {1, 2, -1}, {0, 1, 2, -1}, {1, -1}, {0, -1}},
    {{5, MOST - 1, -1}, {5, MOST - 1, -1}, {5, MOST - 1, -1}, {5, MOST - 1, -1}, {-1}},
    {{0, 31, 32, 63, -1}, {31, 33, -1}, {0, 31, 32, 33, 63, -1}, {31, -1}, {0, 32, 63, -1}},
};

static struct worker_set of(const int *members)
{
    struct worker_set set = {0};
    for (; *members >= 0; members++)
        set_add(&set, *members);
    return set;
}

static void expect(struct worker_set set, const int *members, size_t row)
{
    int at = -1, count = 0;
    for (; *members >= 0; members++, count++) {
        cr_assert(set_has(set, *members), "row %zu: %d", row, *members);
        at = set_next(set, at);
        cr_assert_eq(at, *members, "row %zu: %d, not %d", row, at, *members);
    }
    cr_assert_eq(set_next(set, at), -1, "row %zu: more than %d", row, count);
    cr_assert_eq(set_count(set), count, "row %zu", row);
    cr_assert_eq(set_is_empty(set), !count, "row %zu", row);
}

Test(set, two_are_joined_and_parted_member_by_member)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct worker_set a = of(rows[i].a), b = of(rows[i].b);
        expect(a, rows[i].a, i);
        expect(b, rows[i].b, i);
        expect(set_union(a, b), rows[i].either, i);
        expect(set_common(a, b), rows[i].both, i);
        expect(set_minus(a, b), rows[i].a_alone, i);
        cr_assert_eq(set_meets(a, b), rows[i].both[0] >= 0);
        cr_assert_eq(set_equals(a, b), rows[i].either[0] == rows[i].both[0] && rows[i].a_alone[0] < 0);
        cr_assert(set_equals(a, of(rows[i].a)));
    }
}

Test(set, each_number_comes_and_goes_alone)
{
    struct worker_set all = set_below(MOST), rising = {0};
    for (int i = 0; i < MOST; i++) {
        struct worker_set others = all;
        cr_assert(set_equals(set_below(i), rising), "%d", i);
        set_remove(&others, i);
        set_remove(&others, i);
        cr_assert_not(set_has(others, i));
        cr_assert_eq(set_count(others), MOST - 1);
        cr_assert(set_equals(set_minus(all, others), set_of(i)));
        cr_assert_eq(set_first(set_of(i)), i);
        cr_assert_eq(set_next(set_of(i), i), -1);
        set_add(&rising, i);
        set_add(&rising, i);
    }
    cr_assert(set_equals(rising, all));
}

Test(set, as_text_it_has_sixteen_digits_and_more_only_where_they_are_needed)
{
    static const struct {
        int members[MEMBERS];
        const char *text, *told;
    } texts[] = {
        {{-1}, "0000000000000000", "0"},
        {{0, -1}, "0000000000000001", "1"},
        {{1, 4, 5, -1}, "0000000000000032", "32"},
        {{0, 63, -1}, "8000000000000001", "8000000000000001"},
#if RM_WORKERS_MAX >= 256
        {{64, -1}, "00000000000000010000000000000000", "10000000000000000"},
        {{0, 255, -1},
         "8000000000000000000000000000000000000000000000000000000000000001",
         "8000000000000000000000000000000000000000000000000000000000000001"},
#endif
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct worker_set set = of(texts[i].members), back;
        char text[SET_TEXT_MAX], told[SET_TEXT_MAX];
        set_write(set, text);
        set_describe(set, told);
        cr_assert_str_eq(text, texts[i].text);
        cr_assert_str_eq(told, texts[i].told);
        cr_assert(set_read(text, &back));
        cr_assert(set_equals(back, set));
    }
}

Test(set, text_that_is_none_is_refused)
{
    static const char *const bad[] = {
        "",
        "1",
        "000000000000001",
        "00000000000000001",
        "000000000000000g",
        "0x00000000000001",
        " 000000000000001",
#if RM_WORKERS_MAX == 64
        "00000000000000000000000000000001",
#endif
        "100000000000000000000000000000000000000000000000000000000000000000000000000"
        "00000"
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct worker_set set = set_of(3);
        cr_assert_not(set_read(bad[i], &set), "%s", bad[i]);
        cr_assert(set_equals(set, set_of(3)), "it is as it was");
    }
}

/* The hook gets out: a number that no worker has must not be read from beside the set. */
static jmp_buf out_of_it;

static void jump(const char *sentence)
{
    cr_assert(strstr(sentence, "of a set"), "%s", sentence);
    longjmp(out_of_it, 1);
}

Test(set, a_number_that_no_worker_has_ends_the_program)
{
    static const int bad[] = {-1, -64, MOST, MOST + 1, 1 << 20};
    assertion_hook = jump;
    for (volatile size_t i = 0; i < sizeof bad / sizeof *bad; i++) { /* it lives through the jump */
        struct worker_set set = {0};
        if (setjmp(out_of_it))
            continue;
        set_add(&set, bad[i]);
        cr_assert_fail("%d was taken", bad[i]);
    }
}
