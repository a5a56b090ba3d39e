/* Files and folders as the store needs them: whole reads and writes, folders that are held while somebody
 * works in them, small files that appear whole or not at all. Only common/store uses this. */
#ifndef RM_STORE_FOLDER_H
#define RM_STORE_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/error.h"
#include "common/base/limits.h"
#include "common/base/str.h"

/* Makes a folder and those above it; there already is fine. */
int folder_make(const char *path, struct error *err);

enum folder_hold { FOLDER_UNHELD, FOLDER_SHARED, FOLDER_ALONE };

/* Opens a folder and holds it (flock) until *ret_fd is closed: many at once, or one alone; or only opens it,
 * for a glance that must not stand in the way of anybody. Whoever deletes a folder holds it alone first, so a
 * folder that is held stays. make: create it where it is absent (with those above); otherwise ERR_NOT_FOUND.
 * FOLDER_ALONE never waits: ERR_EXISTS where someone else holds it. */
int folder_hold(const char *path, enum folder_hold how, bool make, int *ret_fd, struct error *err);

/* Exactly count bytes at offset, however often the system call has to be repeated. A file that is too short
 * is ERR_DATA; the rest is ERR_MACHINE. */
int folder_read(int fd, void *out, int64_t count, int64_t offset, struct error *err);
int folder_write(int fd, const void *bytes, int64_t count, int64_t offset, struct error *err);

/* A whole text file of at most `most` bytes into out. ERR_NOT_FOUND, ERR_DATA (too long), ERR_MACHINE. */
int folder_read_text(int folder_fd, const char *name, int64_t most, struct str *out, struct error *err);

/* Writes name.<random>.tmp, syncs it, and gives it its name: over what is there (replace), or only where
 * nothing is (ERR_EXISTS otherwise). The temporary file is gone on return. */
int folder_write_text(int folder_fd, const char *name, const struct str *text, bool replace,
                      struct error *err);

bool folder_has(int folder_fd, const char *name);
int folder_sync(int folder_fd, struct error *err);

/* Calls visit for each name in the folder but "." and ".."; stops at the first -1 and returns it. */
int folder_each(int folder_fd, int (*visit)(void *ctx, const char *name, struct error *err), void *ctx,
                struct error *err);

#endif
