# The element loops are written to be vectorised, where there is AVX-512 with all of it; no flag here may change a bit (kernels.h).
set_source_files_properties(${CMAKE_SOURCE_DIR}/trainer/exact/kernels.c PROPERTIES
  COMPILE_OPTIONS "-O3;-mprefer-vector-width=512;-fno-math-errno;-fno-trapping-math;-Wno-psabi")
