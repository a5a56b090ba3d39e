#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

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
    va_list args;
    va_start(args, format);
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    set_code(err, code);
    return -1;
}

int err_errno(struct error *err, enum error_code code, const char *format, ...)
{
    int saved = errno;
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    int n = vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
    set_code(err, code);
    if (n >= 0 && (size_t)n < sizeof err->text) {
        char reason[128];
        const char *said = strerror_r(saved, reason, sizeof reason);
        snprintf(err->text + n, sizeof err->text - (size_t)n, ": %s", said);
    }
    return -1;
}

int err_wrap(struct error *err, const char *format, ...)
{
    if (!err)
        return -1;
    char context[sizeof err->text];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(context, sizeof context, format, args);
    va_end(args);
    if (n < 0)
        return -1;
    struct error whole = {.code = err->code, .class = err->class, .person = err->person};
    size_t used = (size_t)n < sizeof context ? (size_t)n : sizeof context - 1;
    memcpy(whole.text, context, used);
    snprintf(whole.text + used, sizeof whole.text - used, ": %s", err->text);
    *err = whole;
    return -1;
}

int err_from(struct error *err, const struct error *why, const char *format, ...)
{
    if (!err)
        return -1;
    struct error whole = {.code = why->code, .class = why->class, .person = why->person};
    va_list args;
    va_start(args, format);
    vsnprintf(whole.text, sizeof whole.text, format, args);
    va_end(args);
    *err = whole;
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
