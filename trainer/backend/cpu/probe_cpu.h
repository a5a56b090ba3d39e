/* The measured half of the fingerprint of CPUs: what a machine computes, where the named half
 * (gpt_fingerprint) says what it is. Two of the same name and with other probes are not both sound. */
#ifndef RM_BACKEND_PROBE_CPU_H
#define RM_BACKEND_PROBE_CPU_H

#include "trainer/backend/cpu/model/gpt.h"

/* SHA-256 of loss and gradient of one lane of a small model, two blocks, with fixed weights and tokens,
 * computed as for a job of that instruction set and precision; some ten milliseconds. */
int probe_cpu(const char *isa, enum gpt_precision precision, struct pool *pool, uint8_t out[RM_HASH_BYTES],
              struct error *err);

#endif
