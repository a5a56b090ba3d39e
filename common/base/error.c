#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/str.h"

/* What is formatted before it is cut: a cause comes last, and is kept (text_copy_ends). */
enum { WHOLE = 2048 };

static void set_code(struct error *err, enum error_code code)
{
    err->code = code;
    err->class = CLASS_UNKNOWN;
    err->person = false;
}

int err_set(struct error *err, enum error_code code, const char *format, ...)
{
    if (!err)
        return -1;
    char whole[WHOLE];
    va_list args;
    va_start(args, format);
    vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    text_copy_ends(err->text, sizeof err->text, whole);
    set_code(err, code);
    return -1;
}

int err_errno(struct error *err, enum error_code code, const char *format, ...)
{
    int saved = errno;
    if (!err)
        return -1;
    char whole[WHOLE], reason[128];
    va_list args;
    va_start(args, format);
    vsnprintf(whole, WHOLE - sizeof reason - 2, format, args);
    va_end(args);
    size_t used = strlen(whole);
    snprintf(whole + used, WHOLE - used, ": %s", strerror_r(saved, reason, sizeof reason));
    text_copy_ends(err->text, sizeof err->text, whole);
    set_code(err, code);
    return -1;
}

int err_wrap(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    char whole[WHOLE];
    va_list args;
    va_start(args, format);
    vsnprintf(whole, WHOLE - sizeof err->text - 2, format, args);
    va_end(args);
    size_t used = strlen(whole);
    snprintf(whole + used, WHOLE - used, ": %s", err->text);
    text_copy_ends(err->text, sizeof err->text, whole);
    return -1;
}

int err_from(struct error *err, const struct error *why, const char *format, ...)
{
    if (!err)
        return -1;
    char whole[WHOLE];
    va_list args;
    va_start(args, format);
    vsnprintf(whole, sizeof whole, format, args);
    va_end(args);
    *err = (struct error){.code = why->code, .class = why->class, .person = why->person};
    text_copy_ends(err->text, sizeof err->text, whole);
    return -1;
}

int err_class(struct error *err, enum fault_class which)
{
    if (err)
        err->class = which;
    return -1;
}

int err_person(struct error *err)
{
    if (err)
        err->person = true;
    return -1;
}

enum exit_code error_exit_code(enum error_code code)
{
    switch (code) {
    case ERR_NONE:
        return EXIT_DONE;
    case ERR_USAGE:
        return EXIT_USAGE;
    case ERR_DATA:
        return EXIT_DATA;
    case ERR_TRAINING:
        return EXIT_TRAINING;
    case ERR_TOO_FEW:
        return EXIT_TOO_FEW;
    case ERR_INTERRUPTED:
        return EXIT_INTERRUPTED;
    default:
        return EXIT_MACHINE;
    }
}
