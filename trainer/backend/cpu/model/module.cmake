# What decides the bits of a result has a hash, the numerics id: numerics_id.cmake says how it is made.
include(${CMAKE_CURRENT_LIST_DIR}/numerics_cpu.cmake)
set(numerics_c ${CMAKE_BINARY_DIR}/generated/numerics_id.c)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
# Of the flags that somebody gives, those that may touch a number: by default there is none of them.
string(REGEX MATCHALL "-(ffast-math|Ofast|funsafe[^ ]*|fassociative[^ ]*|freciprocal[^ ]*|ffinite[^ ]*|fexcess[^ ]*|ffp-[^ ]*|m[a-z][^ ]*)"
  numeric_flags "${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}")
# Elsewhere than on x86-64 other files take the place of some, and the id says the processor's kind.
set(numerics_kind "")
if(NOT RM_X86)
  list(TRANSFORM numerics_cpu REPLACE "_x86\\.c$" "_portable.c")
  set(numerics_kind ${CMAKE_SYSTEM_PROCESSOR})
  target_compile_definitions(trainer_backend_cpu_model PRIVATE VEC_CLONED=) # one instruction set, nothing to choose
endif()
# What chooses among clones runs before ThreadSanitizer is there.
if(RM_TSAN AND RM_X86)
  target_compile_definitions(trainer_backend_cpu_model PRIVATE VEC_CLONED=)
endif()
set(numerics_files ${numerics_cpu})
list(TRANSFORM numerics_files PREPEND ${CMAKE_SOURCE_DIR}/)
list(JOIN numerics_cpu "," numerics_list)
add_custom_command(
  OUTPUT ${numerics_c}
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${numerics_c} "-DSOURCES=${numerics_list}"
          "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${numeric_flags}${numerics_kind}"
          -P ${CMAKE_CURRENT_LIST_DIR}/numerics_id.cmake
  DEPENDS ${numerics_files} ${CMAKE_CURRENT_LIST_DIR}/numerics_id.cmake
  COMMENT "Hashing the numeric sources" VERBATIM)
target_sources(trainer_backend_cpu_model PRIVATE ${numerics_c})
# Vectors are passed between inlined functions only; there is no ABI to change.
target_compile_options(trainer_backend_cpu_model PRIVATE -Wno-psabi -fno-math-errno)
target_link_libraries(trainer_backend_cpu_model PUBLIC m)
