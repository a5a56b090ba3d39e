/* Where a program of torch's leaves its traceback (TORCHELASTIC_ERROR_FILE): one JSON file a process, in a
 * folder that nobody else reads. */
#ifndef RM_LAUNCH_ERROR_FILE_H
#define RM_LAUNCH_ERROR_FILE_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/str.h"

enum { ERROR_FOLDER_MAX = 1024, ERROR_PATH_MAX = ERROR_FOLDER_MAX + 32 };

/* Makes it, 0700, in TMPDIR, or where that is too long or can't be written to in /tmp, and holds it by a lock
 * until error_file_remove, *ret_lock. What a launcher that was killed has left beside it goes before: a
 * folder of ours whose lock nobody holds. */
int error_file_folder(char *ret, size_t size, int *ret_lock, struct error *err);
/* The path for that process, at which nothing lies. */
void error_file_fresh(const char *folder, int local, char *ret, size_t size);
/* The message, and the traceback where there is one, else the message once more; false where there is no such
 * file, or none of torch's. *ret_refused: it is of our own Python package, which refused what the program
 * does (python/ringmaster/library.py): started anew it would do the same. Such a one counts only from `pid`,
 * the process that has ended, 0 where it did not end by itself: a child of its own may have written it, or it
 * outlived its refusal. */
bool error_file_read(const char *folder, int local, int pid, struct str *message, struct str *traceback,
                     bool *ret_refused);
void error_file_remove(const char *folder, int lock); /* "": there is none */

#endif
