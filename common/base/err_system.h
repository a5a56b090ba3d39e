/* What a failed system call on files says about whose fault it is. */
#ifndef RM_BASE_ERR_SYSTEM_H
#define RM_BASE_ERR_SYSTEM_H

#include "common/base/error.h"

/* As err_errno, with the class that errno stands for: a disk or a server that did not answer (EIO, ESTALE,
 * time-outs) may do so a moment later and is CLASS_PASSING; rights (EACCES, EPERM, a file system that was
 * mounted to be read only) pass when a person sees to them; no descriptors, no memory, no room are this
 * machine's. Anything else is not said. */
int err_system(struct error *err, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Does as err_system, of training data: what is right with the data is no error of theirs. ERR_MACHINE where
 * errno is the machine's, its disk's or a server's; ERR_DATA, for a person, where it is absent or may not be
 * read.
 */
int err_system_data(struct error *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* That alone, for an error that is set. Returns -1. */
int err_class_of(struct error *err, int number);

#endif
