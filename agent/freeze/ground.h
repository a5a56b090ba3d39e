/* What is here that a snapshot depends on (struct frozen_ground), and what a tree of processes has in memory.
 */
#ifndef RM_FREEZE_GROUND_H
#define RM_FREEZE_GROUND_H

#include "common/job/spec.h"
#include "common/storage/checkpoint/frozen_manifest.h"

/* All but CRIU's version, which ringmaster-snapshot tells. */
int ground_read(struct frozen_ground *ret, struct error *err);

/* Refuses files and folders that are to travel and can't: agent/snapshot/core/travel.h, and what lies on a
 * file system that nobody may write to. */
int ground_refuse_paths(const struct job_list *paths, struct error *err);

/* Bytes that this process and all below it have in memory; -1: not known. */
int64_t ground_memory(long pid);

#endif
