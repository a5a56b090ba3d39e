/* What a program does for being a pod's first process: it leaves a word for whoever looks at the pod when it
 * has ended, and it takes in processes that lost their parents. */
#ifndef RM_POD_H
#define RM_POD_H

#include "common/base/error.h"
#include "common/base/time.h"

struct pod {
    const char *termination_log; /* where the last word goes */
    rm_time grace;               /* from SIGTERM to SIGKILL */
};

/* This program ends so much earlier than the grace does, to have time for the last word. */
rm_time pod_leave_within(const struct pod *pod);

/* Writes the last word, one JSON object of at most 4 KiB; a longer one is cut. ERR_MACHINE. */
int pod_last_word(const struct pod *pod, const char *text, struct error *err);
/* {"left":true}: this program was told to go, and went. */
int pod_say_left(const struct pod *pod, struct error *err);
/* {"exitCode":4,"reason":"..."} */
int pod_say_why(const struct pod *pod, int exit_code, const char *reason, struct error *err);
/* {"exitCode":3,"reason":"...","elsewhere":true}: it was this machine that did not fit. */
int pod_say_elsewhere(const struct pod *pod, int exit_code, const char *reason, struct error *err);

/* Reaps children that have ended, but those with these pids, whose ends somebody else waits for: until the
 * first such one. Called again when that one has been waited for it reaches whoever ended behind it. */
void pod_reap(const int *own, int count);

#endif
