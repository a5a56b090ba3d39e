#include "common/base/err_system.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

static enum fault_class class_of(int number)
{
    switch (number) {
    case EIO:
    case ESTALE:
    case EREMOTEIO:
    case ETIMEDOUT:
    case EAGAIN:
    case EBUSY:
    case EINTR:
    case ENXIO:
    case ENODEV:
    case ENOTCONN:
    case ECONNRESET:
    case ECONNREFUSED:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETDOWN:
    case ENETUNREACH:
    case EACCES:
    case EPERM:
    case EROFS:
        return CLASS_PASSING;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
        return CLASS_MACHINE;
    default:
        return CLASS_UNKNOWN;
    }
}

int err_class_of(struct error *err, int number)
{
    if (number == EACCES || number == EPERM || number == EROFS)
        err_person(err);
    return err_class(err, class_of(number));
}

int err_system(struct error *err, enum error_code code, const char *format, ...)
{
    int number = errno;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    errno = number;
    err_errno(err, code, "%s", text);
    return err_class_of(err, number);
}

int err_system_data(struct error *err, const char *format, ...)
{
    int number = errno;
    char text[sizeof err->text];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bool rights = number == EACCES || number == EPERM;
    bool data = rights || class_of(number) == CLASS_UNKNOWN;
    errno = number;
    err_system(err, data ? ERR_DATA : ERR_MACHINE, "%s", text);
    return data ? err_person(err) : -1;
}
