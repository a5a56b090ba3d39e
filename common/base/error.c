#include "common/base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int err_set(struct error *err, enum error_code code, const char *format, ...)
{
    if (!err)
        return -1;
    va_list args;
    va_start(args, format);
    err->code = code;
    vsnprintf(err->text, sizeof err->text, format, args);
    va_end(args);
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
    err->code = code;
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
    struct error whole = {.code = err->code};
    size_t used = (size_t)n < sizeof context ? (size_t)n : sizeof context - 1;
    memcpy(whole.text, context, used);
    snprintf(whole.text + used, sizeof whole.text - used, ": %s", err->text);
    *err = whole;
    return -1;
}

int error_exit_code(enum error_code code)
{
    switch (code) {
    case ERR_NONE:
        return 0;
    case ERR_USAGE:
        return 2;
    case ERR_DATA:
        return 3;
    case ERR_TRAINING:
        return 5;
    case ERR_TOO_FEW:
        return 6;
    case ERR_INTERRUPTED:
        return 130;
    default:
        return 4;
    }
}
