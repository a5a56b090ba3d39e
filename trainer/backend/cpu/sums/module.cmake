# The element loops are written to be vectorised, where there is AVX-512 with all of it; no flag here may change a bit (kernels.h).
set(kernel_flags -O3 -fno-math-errno -fno-trapping-math -Wno-psabi)
set(x86_flags ${kernel_flags} -mprefer-vector-width=512)
if(RM_ASAN) # gcc's own header adds the lanes of a vector as signed numbers; ours are sums modulo 2^64
  list(APPEND x86_flags -fno-sanitize=signed-integer-overflow)
endif()
set_source_files_properties(${CMAKE_SOURCE_DIR}/trainer/backend/cpu/sums/kernels_x86.c PROPERTIES COMPILE_OPTIONS "${x86_flags}")
set_source_files_properties(${CMAKE_SOURCE_DIR}/trainer/backend/cpu/sums/kernels_portable.c PROPERTIES COMPILE_OPTIONS "${kernel_flags}")
