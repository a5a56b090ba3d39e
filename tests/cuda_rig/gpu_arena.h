/* Whether a GPU's memory outlives the process that made it, as long as somebody holds its descriptor. */
#ifndef RM_TESTS_GPU_ARENA_H
#define RM_TESTS_GPU_ARENA_H

#include <stddef.h>

#include "common/base/error.h"

/* Twice: whoever made the memory and wrote all of its first half is killed, while it waits ("between") and
 * while its kernels write the second half ("inside"). This process, which has had no CUDA before, then maps
 * what the descriptor stands for, and compares. Prints of each the number of words that differ, and the
 * milliseconds from the mapping to the last byte read. Called once, by a process without threads. */
int gpu_arena(size_t bytes, struct error *err);

#endif
