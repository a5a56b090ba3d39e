/* Small whole files, paths, anonymous memory files. */
#ifndef RM_OS_FILE_H
#define RM_OS_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/str.h"

/* Appends the file's content to out; a file over out's ceiling is refused. ERR_NOT_FOUND where it is absent.
 */
int file_read(const char *path, struct str *out, struct error *err);
/* Creates or replaces it with this mode (0600 for secrets), whole or not at all. */
int file_write(const char *path, const void *bytes, size_t length, int mode, struct error *err);
/* Path of a program beside the running one: "/opt/rm/bin/ringmaster-agent". */
int file_sibling(const char *name, char *out, size_t size, struct error *err);
/* Removes the files that lie in it; folders stay. */
void file_folder_empty(int folder_fd);
/* An anonymous memory file, close-on-exec, of `bytes` zeros (0: sized later by whoever uses it). */
int file_memory(int *ret_fd, const char *name, uint64_t bytes, struct error *err);

#endif
