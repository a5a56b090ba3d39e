/* What stands in the way of a snapshot of somebody's processes, in words. Pure: what was read from /proc and
 * from CRIU's files comes in as text and numbers.
 *
 * A snapshot is CRIU's image of a tree of processes (criu.org, 4.1): all memory, registers and descriptors.
 * What cannot be in one is refused before a process is touched; what CRIU itself finds is told by the
 * first line of its log that is an error: those behind it (up to "Dumping FAILED.") only follow from it. */
#ifndef RM_SNAPSHOT_WORDS_H
#define RM_SNAPSHOT_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/error.h"

enum {
    SNAPSHOT_CRIU_LEAST = 40100, /* 4.1, as criu_get_version counts: 10000 * major + 100 * minor + sublevel */
    SNAPSHOT_CAUSE_MAX = 320,
};

/* Refuses a descriptor by where its link in /proc/PID/fd leads: a GPU, io_uring. 0 for all others. */
int snapshot_refuse_descriptor(long pid, const char *target, struct error *err);

/* Refuses a CRIU that is too old: Debian 12 has 3.17, which fails on kernels of today. */
int snapshot_refuse_version(int version, struct error *err);

/* Refuses to work without rights: `effective` is the set of /proc/self/status, CapEff. Names all that are
 * missing. With CRIU's unprivileged mode these are all that a dump and a restore need: CHECKPOINT_RESTORE and
 * SYS_PTRACE to see and to make processes, SETPCAP to give a restored process the bounding set that it had,
 * SETUID and SETGID to give it its user. */
int snapshot_refuse_rights(uint64_t effective, struct error *err);

/* The set of a line "CapEff:" of /proc/PID/status; false where there is no such line. */
bool snapshot_effective_rights(const char *status, uint64_t *ret);

/* The cause in CRIU's log: its first line that says Error, but for those that it goes on from, without the
 * time and the file and line of CRIU's source in front; false where there is none. out: SNAPSHOT_CAUSE_MAX
 * bytes. */
bool snapshot_cause(const char *log, char out[static SNAPSHOT_CAUSE_MAX]);

/* What CRIU says of a dump in its file stats-dump. */
struct snapshot_stats {
    uint64_t freezing_us; /* until the last process stood still */
    uint64_t frozen_us;   /* they stood still for so long */
    uint64_t written_us;  /* of which memory was written for so long */
    uint64_t pages_written;
};

/* Reads it: two magic numbers, a length and a message of protobuf (criu/protobuf: images/stats.proto). False
 * for anything that is not one, whole. Fields that are not known are passed over. */
bool snapshot_stats_read(const void *bytes, size_t length, struct snapshot_stats *ret);

#endif
