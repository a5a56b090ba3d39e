/* One wish to give up, seen by who computes (an atomic word) and by who waits (a descriptor to poll).
 *
 * The control thread sets it, at any time and as often as it likes; the compute thread finds the word
 * non-zero between layers, or is woken out of poll by the descriptor. It stays set until abort_flag_reset,
 * which is called only while nobody computes or waits under it. */
#ifndef RM_COLLECTIVE_ABORT_FLAG_H
#define RM_COLLECTIVE_ABORT_FLAG_H

#include <stdatomic.h>
#include <stdbool.h>

#include "common/base/error.h"

struct abort_flag {
    atomic_int word; /* non-zero: give up */
    int event_fd;    /* readable while the word is set */
};

int abort_flag_init(struct abort_flag *flag, struct error *err);
void abort_flag_clear(struct abort_flag *flag); /* closes the descriptor */
void abort_flag_set(struct abort_flag *flag);   /* from any thread */
void abort_flag_reset(struct abort_flag *flag);
bool abort_flag_is_set(const struct abort_flag *flag);

#endif
