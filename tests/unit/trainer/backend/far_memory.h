/* A memory that is far, for tests: at its addresses lies nothing (whoever follows one ends by SIGSEGV), its
 * bytes lie elsewhere, and whoever asks for a part that is not its own is refused by an assertion. What
 * stands for the device may look inside. */
#ifndef RM_TEST_FAR_MEMORY_H
#define RM_TEST_FAR_MEMORY_H

#include "trainer/backend/memory.h"

struct far_memory;

struct far_memory *far_memory_open(size_t bytes); /* filled with 0xA5; ends the test where there is none */
void far_memory_free(struct far_memory *f);
struct memory *far_memory_of(struct far_memory *f);
/* Its first address. */
struct far far_memory_base(const struct far_memory *f);
/* Where the byte of an address really lies: for the device alone. */
void *far_memory_inside(const struct far_memory *f, struct far at);

/* How many calls read and wrote so far. */
int far_memory_reads(const struct far_memory *f);
int far_memory_writes(const struct far_memory *f);
/* All but the next n calls fail: the device is lost. */
void far_memory_lose_after(struct far_memory *f, int n);

#endif
