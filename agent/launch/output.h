/* What a program's processes write: passed on line by line, and the last of it kept.
 *
 * A thread of its own does it, so that neither a flood of output nor somebody who does not read it holds up
 * the launcher. Where several processes share a stream each line gets its rank in front: "[3] ...". */
#ifndef RM_LAUNCH_OUTPUT_H
#define RM_LAUNCH_OUTPUT_H

#include <stdbool.h>

#include "common/base/error.h"
#include "common/base/str.h"
#include "common/base/time.h"

struct output;

enum { OUTPUT_STREAMS = 2 }; /* of a process: stdout and stderr */

int output_open(struct output **ret, struct error *err);
/* From here on `fd`, the reading end of a pipe, is passed on to `to` (not closed; another one's). index: of
 * the process, below 64; rank: in front of its lines, -1 none. Takes over fd. */
int output_add(struct output *o, int index, int fd, int to, int rank, struct error *err);
/* Waits until everything that process wrote has been passed on, at most `within` ns: for its last lines. */
void output_drain(struct output *o, int index, rm_time within);
/* The last lines of that process, at most as many bytes as the string's ceiling, cut at a line's beginning.
 */
void output_tail(struct output *o, int index, struct str *out);
void output_forget(struct output *o, int index); /* its last lines; the next generation has the index anew */
void output_free(struct output *o);              /* what is not passed on by then is lost */

#endif
