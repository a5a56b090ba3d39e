/* What a worker's pod has more where it runs a program of the user's (spec.launch) in an image of theirs: the
 * bundle with Ringmaster's programs, which an init container brings (docs/programs.md), and a home to write
 * to. Changes the trees that pod.c made. Pure. */
#ifndef RM_OPERATOR_CORE_POD_PROGRAM_H
#define RM_OPERATOR_CORE_POD_PROGRAM_H

#include <stdbool.h>

struct js;

#define POD_BUNDLE       "/opt/ringmaster" /* RINGMASTER_BUNDLE_PREFIX, on both sides */
#define POD_BUNDLE_AGENT POD_BUNDLE "/bin/ringmaster-agent"
#define POD_HOME         "/home/ringmaster"

/* The init container that copies the bundle out of its own image, before all others of the template, and the
 * bundle in `container`. policy: imagePullPolicy; NULL: the API server's. leave_uid: as part_security. */
void pod_program_bundle(struct js *pod_spec, struct js *container, const char *image, const char *policy,
                        bool leave_uid);

/* A volume with a limit, and the variables by which programs find it, but for those that the container's
 * `env` names: who has a HOME of its own has the caches there, too. */
void pod_program_home(struct js *pod_spec, struct js *container);

#endif
