/* A place for one descriptor, with a note of what it is, where it outlives the process that laid it there.
 *
 * A shelf is a pair of connected sockets: what was sent into one end and is never taken out of the other lies
 * there as long as anybody holds the ends. So whoever keeps a shelf for others does nothing with it, and need
 * not know what its descriptor stands for. Any thread may call; two processes must not at the same time. */
#ifndef RM_OS_SHELF_H
#define RM_OS_SHELF_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/error.h"

struct shelf {
    int in, out;
};

int shelf_open(struct shelf *ret, struct error *err);
void shelf_clear(struct shelf *s); /* with what lies there; also of one that was never opened: -1, -1 */

/* Instead of what lies there, if anything. fd stays the caller's. */
int shelf_lay(const struct shelf *s, int fd, const void *note, size_t bytes, struct error *err);
/* True: *ret_fd is one more descriptor of what lies there, the caller's, and the note has that many bytes. It
 * stays there. False: nothing lies there, or something with another note. */
bool shelf_look(const struct shelf *s, int *ret_fd, void *note, size_t bytes);
/* From here on nothing lies there. */
void shelf_empty(const struct shelf *s);

#endif
