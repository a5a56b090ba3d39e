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

Test(error, class_and_person_stay_under_a_new_sentence_and_end_with_a_new_error)
{
    struct error why = {0}, err = {0};
    err_set(&why, ERR_DATA, "403 from the store");
    cr_assert_eq(err_class(&why, CLASS_MACHINE), -1);
    cr_assert_eq(err_person(&why), -1);
    cr_assert_eq(err_from(&err, &why, "can't be read: %s", why.text), -1);
    err_wrap(&err, "step 20");
    cr_assert_str_eq(err.text, "step 20: can't be read: 403 from the store");
    cr_assert(err.code == ERR_DATA && err.class == CLASS_MACHINE && err.person);
    err_from(&err, &err, "of %s", err.text);
    cr_assert_str_eq(err.text, "of step 20: can't be read: 403 from the store");
    cr_assert(err.class == CLASS_MACHINE && err.person);
    err_set(&err, ERR_MACHINE, "another one");
    cr_assert(err.class == CLASS_UNKNOWN && !err.person);
    err_class(&err, CLASS_OBJECT);
    errno = EIO;
    err_errno(&err, ERR_MACHINE, "read");
    cr_assert(err.class == CLASS_UNKNOWN && !err.person);
}

Test(error, nobody_has_to_want_the_text)
{
    cr_assert_eq(err_class(NULL, CLASS_JOB), -1);
    cr_assert_eq(err_person(NULL), -1);
    cr_assert_eq(err_from(NULL, &(struct error){.code = ERR_DATA}, "lost"), -1);
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
