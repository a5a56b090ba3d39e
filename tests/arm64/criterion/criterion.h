/* As much of Criterion as the tests that are built for arm64 use. Criterion itself starts each test as a
 * program of its own and patches it on the way, which an emulator of single programs doesn't let it do. Here
 * a test is a fork (runner.c).
 *
 * As there, cr_assert ends the test that it is in, cr_expect lets it go on; both take a message as printf
 * does. */
#ifndef RM_TESTS_ARM64_CRITERION_H
#define RM_TESTS_ARM64_CRITERION_H

#pragma GCC system_header /* as Criterion's is: a comparison that somebody writes is not this header's */

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cr_options {
    int signal; /* by which it has to end; 0: it returns */
    void (*init)(void), (*fini)(void);
};

struct cr_test {
    const char *suite, *name;
    void (*body)(void); /* NULL: what holds for the whole suite */
    struct cr_options options;
    struct cr_test *next;
};

void cr_register(struct cr_test *test);
/* For what does not hold: says where and why, and ends the test if it is fatal. */
void cr_failed(bool fatal, const char *file, int line, const char *what, const char *format, ...);
_Noreturn void cr_skipped(const char *format, ...);

#define CR_ENTRY_(suite_, name_, body_, ...)                                                                 \
    __attribute__((constructor)) static void suite_##_##name_##_register(void)                               \
    {                                                                                                        \
        static struct cr_test test = {#suite_, #name_, body_, {__VA_ARGS__}, NULL};                          \
        cr_register(&test);                                                                                  \
    }

#define Test(suite_, name_, ...)                                                                             \
    static void suite_##_##name_##_body(void);                                                               \
    CR_ENTRY_(suite_, name_, suite_##_##name_##_body, ##__VA_ARGS__)                                         \
    static void suite_##_##name_##_body(void)

#define TestSuite(suite_, ...) CR_ENTRY_(suite_, all_of_it, NULL, ##__VA_ARGS__)

#define CR_CHECK_(fatal, holds, what, ...)                                                                   \
    ((holds) ? (void)0 : cr_failed(fatal, __FILE__, __LINE__, what, " " __VA_ARGS__))
#define CR_COMPARE_(fatal, a, op, b, ...) CR_CHECK_(fatal, (a)op(b), #a " " #op " " #b, __VA_ARGS__)

#define cr_assert(a, ...)          CR_CHECK_(true, a, #a, __VA_ARGS__)
#define cr_assert_not(a, ...)      CR_CHECK_(true, !(a), "not " #a, __VA_ARGS__)
#define cr_expect(a, ...)          CR_CHECK_(false, a, #a, __VA_ARGS__)
#define cr_expect_not(a, ...)      CR_CHECK_(false, !(a), "not " #a, __VA_ARGS__)
#define cr_fail(...)               CR_CHECK_(true, false, "cr_fail", __VA_ARGS__)
#define cr_assert_fail(...)        CR_CHECK_(true, false, "cr_assert_fail", __VA_ARGS__)
#define cr_assert_null(a, ...)     CR_CHECK_(true, (a) == NULL, #a " is NULL", __VA_ARGS__)
#define cr_assert_not_null(a, ...) CR_CHECK_(true, (a) != NULL, #a " is not NULL", __VA_ARGS__)

#define cr_assert_eq(a, b, ...)  CR_COMPARE_(true, a, ==, b, __VA_ARGS__)
#define cr_assert_neq(a, b, ...) CR_COMPARE_(true, a, !=, b, __VA_ARGS__)
#define cr_assert_lt(a, b, ...)  CR_COMPARE_(true, a, <, b, __VA_ARGS__)
#define cr_assert_leq(a, b, ...) CR_COMPARE_(true, a, <=, b, __VA_ARGS__)
#define cr_assert_gt(a, b, ...)  CR_COMPARE_(true, a, >, b, __VA_ARGS__)
#define cr_assert_geq(a, b, ...) CR_COMPARE_(true, a, >=, b, __VA_ARGS__)
#define cr_expect_eq(a, b, ...)  CR_COMPARE_(false, a, ==, b, __VA_ARGS__)

#define CR_STRINGS_(fatal, a, op, b, ...)                                                                    \
    CR_CHECK_(fatal, strcmp(a, b) op 0, "the strings " #a " " #op " " #b, __VA_ARGS__)
#define cr_assert_str_eq(a, b, ...)  CR_STRINGS_(true, a, ==, b, __VA_ARGS__)
#define cr_assert_str_neq(a, b, ...) CR_STRINGS_(true, a, !=, b, __VA_ARGS__)
#define cr_expect_str_eq(a, b, ...)  CR_STRINGS_(false, a, ==, b, __VA_ARGS__)

#define cr_assert_arr_eq(a, b, size, ...)                                                                    \
    CR_CHECK_(true, memcmp(a, b, size) == 0, "the arrays " #a " == " #b, __VA_ARGS__)
#define cr_assert_float_eq(a, b, off, ...)                                                                   \
    CR_CHECK_(true, (a) - (b) <= (off) && (b) - (a) <= (off), #a " is " #b " within " #off, __VA_ARGS__)

#define cr_skip(...)     cr_skipped(" " __VA_ARGS__)
#define cr_log_info(...) (printf(__VA_ARGS__), (void)putchar('\n'))

#endif
