/* A backend for tests of the engine: computes as the one on CPUs does, and writes down what it is asked for.
 *
 * As a device it has a memory of its own that is far (far_memory.h): state and words lie there, and only its
 * own passes see them as they are. So the bits that come out must be the CPU's. */
#ifndef RM_TEST_STAND_IN_H
#define RM_TEST_STAND_IN_H

#include "trainer/backend/backend.h"

/* engine_open_backend's. */
int stand_in_open(struct backend **ret, const struct backend_options *options, struct error *err);
int device_open(struct backend **ret, const struct backend_options *options, struct error *err);
/* A device that knows lanes only, as a user's program. */
int program_open(struct backend **ret, const struct backend_options *options, struct error *err);

/* The newest one that was opened. */
struct stand_in *stand_in_newest(void);
/* What was asked for since the last look, a word each: "begin lane lane end". Valid until the next look. */
const char *stand_in_asked(struct stand_in *s);
/* From here on the next call of that name fails: the device is lost. NULL: none does. */
void stand_in_fail(struct stand_in *s, const char *name);
/* From here on its states have other bits than its updates should have written. */
void stand_in_spoil(struct stand_in *s);
/* Its memory; NULL where the state lies in the memfd. */
struct far_memory *stand_in_memory(struct stand_in *s);

#endif
