/* A hash of everything in the source that decides bits: numeric sources, compiler and flags. The text is made
 * at build time (module.cmake). */
#ifndef RM_TRAINER_NUMERICS_ID_H
#define RM_TRAINER_NUMERICS_ID_H

extern const char numerics_id[]; /* 16 hex digits */

#endif
