# What decides the bits of a GPU's results has a hash of its own. All of a backend's files that are C or kernels count, so
# none can be forgotten; beside them what it shares with the CPU's.
set(numerics_gpu_c ${CMAKE_BINARY_DIR}/generated/numerics_gpu.c)
file(GLOB numerics_gpu CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}
  ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/kernels/* ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/lane/*.[ch]
  ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/gpu/gpu_*.[ch])
list(APPEND numerics_gpu
  common/base/prng.c common/base/prng.h common/model/layout.c common/model/layout.h trainer/core/cursor.c trainer/core/cursor.h
  trainer/exact/schedule.c trainer/exact/schedule.h trainer/exact/lineage.c trainer/exact/lineage.h trainer/exact/verdict.c
  trainer/exact/verdict.h trainer/exact/wide.h trainer/backend/cpu/model/gpt_init.c trainer/backend/cuda/tokens.c
  trainer/backend/cuda/driver/cublaslt.c trainer/backend/cuda/driver/algorithms.c)
set(numerics_gpu_files ${numerics_gpu})
list(TRANSFORM numerics_gpu_files PREPEND ${CMAKE_SOURCE_DIR}/)
list(JOIN numerics_gpu "," numerics_gpu_list)
list(JOIN RM_CUDA_EXACT " " numerics_gpu_flags)
add_custom_command(
  OUTPUT ${numerics_gpu_c}
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${numerics_gpu_c} "-DSOURCES=${numerics_gpu_list}" -DNAME=numerics_gpu
          -DHEADER=trainer/backend/cuda/gpu/numerics_gpu.h
          "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${nvcc_why} ${numerics_gpu_flags}"
          -P ${CMAKE_SOURCE_DIR}/trainer/backend/cpu/model/numerics_id.cmake
  DEPENDS ${numerics_gpu_files} ${CMAKE_SOURCE_DIR}/trainer/backend/cpu/model/numerics_id.cmake
  COMMENT "Hashing the numeric sources of a GPU" VERBATIM)
target_sources(trainer_backend_cuda_gpu PRIVATE ${numerics_gpu_c})
target_compile_options(trainer_backend_cuda_gpu PRIVATE -fno-math-errno)
