/* Hash of what in the source decides the bits that a GPU computes (module.cmake), made as that of the CPU's
 * (trainer/backend/cpu/model/numerics_id.h). */
#ifndef RM_TRAINER_NUMERICS_GPU_H
#define RM_TRAINER_NUMERICS_GPU_H

extern const char numerics_gpu_id[];         /* 16 hex digits: sources, both compilers and their flags */
extern const char numerics_gpu_sources_id[]; /* the same of the sources alone */

#endif
