/* The text of standby.py, made by the build (agent/launch/module.cmake). */
#ifndef RM_LAUNCH_STANDBY_SOURCE_H
#define RM_LAUNCH_STANDBY_SOURCE_H

extern const char standby_source[]; /* ends with a zero byte */

#endif
