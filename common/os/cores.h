/* How many CPUs' worth of time this process may take: a machine's cores are not all a container's to use. */
#ifndef RM_OS_CORES_H
#define RM_OS_CORES_H

/* The CPUs of the affinity mask, or the cgroups' CPU quota rounded up where that is less; at least 1. */
int cores_usable(void);

/* Threads of each of `sharing` processes that compute at once: its part of cores_usable(), 1 at least. */
int cores_share(int sharing);

/* The smallest CPU quota, rounded up, of the cgroups that `membership` (as /proc/self/cgroup) names below
 * `root` (as /sys/fs/cgroup), and of those around them, versions 1 and 2. A container sees its own cgroup as
 * the root: a path that is not there stands for the nearest one above it that is. 0: there is none. */
int cores_quota(const char *root, const char *membership);

#endif
