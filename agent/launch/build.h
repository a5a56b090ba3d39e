/* Which build this program is of, where that may differ from pod to pod: in a bundle, which an init container
 * put into an image of somebody else's. */
#ifndef RM_LAUNCH_BUILD_H
#define RM_LAUNCH_BUILD_H

#include "agent/launch/core/launch.h"
#include "common/base/error.h"

/* 16 hex digits of the hash of this program's own file; "" outside of a bundle. */
int launch_build(char out[LAUNCH_BUILD_MAX], struct error *err);

#endif
