/* Which pipes a program had as standard output and standard error when it was dumped: by these names CRIU
 * gives it other pipes in their place when it lives again. Kept as two lines in the snapshot's folder. */
#ifndef RM_SNAPSHOT_PROGRAM_STREAMS_H
#define RM_SNAPSHOT_PROGRAM_STREAMS_H

#include "common/base/error.h"

enum { STREAM_KEY_MAX = 40 };

struct program_streams {
    char out[STREAM_KEY_MAX], err[STREAM_KEY_MAX]; /* "pipe:[4711]"; empty: no pipe */
};

/* Where descriptors 1 and 2 of a process that lives lead, as far as these are pipes. */
void program_streams_read(long pid, struct program_streams *ret);

int program_streams_save(int folder, const struct program_streams *streams, struct error *err);
/* ERR_DATA where the folder's file is not one that program_streams_save wrote. */
int program_streams_load(int folder, struct program_streams *ret, struct error *err);

#endif
