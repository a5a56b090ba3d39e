/* Hashes of what in the source decides bits (numerics_cpu.cmake), made at build time by numerics_id.cmake: no
 * comment, white space, assertion or path is in them. */
#ifndef RM_TRAINER_NUMERICS_ID_H
#define RM_TRAINER_NUMERICS_ID_H

extern const char numerics_id[]; /* 16 hex digits: sources, compiler and the flags that touch numbers */
extern const char numerics_sources_id[]; /* the same of the sources alone */

#endif
