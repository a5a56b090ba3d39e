/* What a processor can do that programs choose their code by, out of /proc/cpuinfo: a program that was frozen
 * where something was there runs on with it, and dies where it is not. Pure. */
#ifndef RM_SNAPSHOT_PROCESSOR_H
#define RM_SNAPSHOT_PROCESSOR_H

#include <stdbool.h>
#include <stddef.h>

/* The names of the first processor's features with spaces between them, as the kernel calls them: of x86
 * those that programs ask for (instructions, and what the saved registers are), of others all. False where
 * none are told, or they have no room. */
bool processor_features(const char *cpuinfo, char *out, size_t size);

#endif
