#include "common/base/error.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

Test(error, a_context_goes_in_front_and_the_code_stays)
{
    struct error err = {0};
    err_set(&err, ERR_DATA, "%s is empty", "a.txt");
    cr_assert_eq(err_wrap(&err, "read %s", "corpus"), -1);
    cr_assert_eq(err.code, ERR_DATA);
    cr_assert_str_eq(err.text, "read corpus: a.txt is empty");
}

Test(error, a_system_call_says_why_it_failed)
{
    struct error err = {0};
    errno = ENOSPC;
    err_errno(&err, ERR_MACHINE, "write %s", "model");
    cr_assert_str_eq(err.text, "write model: No space left on device");
}

Test(error, a_text_that_is_too_long_is_cut_and_terminated)
{
    struct error err = {0};
    char lots[2 * sizeof err.text];
    memset(lots, 'x', sizeof lots);
    lots[sizeof lots - 1] = 0;
    err_set(&err, ERR_DATA, "%s", lots);
    err_wrap(&err, "%s", lots);
    cr_assert_eq(strlen(err.text), sizeof err.text - 1);
}

Test(error, nobody_has_to_want_the_text)
{
    cr_assert_eq(err_set(NULL, ERR_DATA, "lost"), -1);
    cr_assert_eq(err_wrap(NULL, "lost"), -1);
}

Test(error, exit_codes_are_the_documented_ones)
{
    const struct {
        enum error_code code;
        int exit;
    } rows[] = {{ERR_NONE, 0},     {ERR_USAGE, 2},   {ERR_DATA, 3},          {ERR_MACHINE, 4},
                {ERR_TRAINING, 5}, {ERR_TOO_FEW, 6}, {ERR_INTERRUPTED, 130}, {ERR_PEER, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        cr_expect_eq(error_exit_code(rows[i].code), rows[i].exit, "code %d", (int)rows[i].code);
}
