/* One error value for the whole project.
 *
 * A function that can fail returns 0 or -1 and takes `struct error *err` last. On success *err is not
 * touched. `code` is for branching (and becomes the exit code of a program, see error_exit_code); `text`
 * is one sentence for a person: what, where, what to do. Callers add context on the way up:
 *     if (kube_list(...) < 0) return err_wrap(err, "list pods");    -> "list pods: 403 forbidden"
 * Library code returns errors and never logs; the program logs each error once. err may be NULL where the
 * caller does not want the text.
 *
 * `class` says who or what is to blame (fault_class.h) and `person` that somebody has to set something right
 * before it can work (a key, a bucket, the rights of a folder, data). err_set and err_errno clear both; who
 * knows says so right after, or on the way up:
 *     err_set(err, ERR_MACHINE, "%s is busy", host);
 *     return err_class(err, CLASS_PASSING); */
#ifndef RM_BASE_ERROR_H
#define RM_BASE_ERROR_H

#include <stdbool.h>

#include "common/base/exit_code.h"
#include "common/base/fault_class.h"

enum error_code {
    ERR_NONE = 0,
    ERR_USAGE,       /* command line or job file */
    ERR_DATA,        /* training data or a checkpoint */
    ERR_MACHINE,     /* port, disk, memory, a system call */
    ERR_TRAINING,    /* NaN, failures over budget */
    ERR_TOO_FEW,     /* too few workers, checkpoint saved */
    ERR_INTERRUPTED, /* a person stopped it, checkpoint saved */
    ERR_ABORTED,     /* given up because someone set the abort word; never shown to a person */
    ERR_PEER,        /* the other side closed or broke the connection */
    ERR_PROTOCOL,    /* the other side said what it may not say */
    ERR_NOT_FOUND,   /* a file, field or object that is absent */
    ERR_EXISTS,      /* already there */
};

struct error {
    enum error_code code;
    enum fault_class class;
    bool person;
    char text[480];
};

/* Sets *err and returns -1, so that `return err_set(err, ERR_DATA, "%s: ...", path);` reads well. */
int err_set(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Does as err_set, with ": " and strerror(errno) added. */
int err_errno(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the text and returns -1; keeps code, class and person. */
int err_wrap(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A new sentence for what `why` says: its code, class and person under another text. `why` may be err. */
int err_from(struct error *err, const struct error *why, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* These add to an error that is set, and return -1. */
int err_class(struct error *err, enum fault_class which);
int err_person(struct error *err);

/* The documented exit code of a program that ends with this error. */
enum exit_code error_exit_code(enum error_code code);

#endif
