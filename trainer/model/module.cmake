# The numerics id covers whatever decides a bit of a result: kernels and sums, learning rate, order of the samples,
# random numbers and the order of the parameters.
set(numerics_c ${CMAKE_BINARY_DIR}/generated/numerics_id.c)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
set(numerics_names trainer/model/* trainer/exact/* trainer/core/schedule trainer/core/cursor common/base/prng
    common/model/layout)
set(numerics_sources)
foreach(name ${numerics_names})
  file(GLOB found CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${name}.c ${CMAKE_SOURCE_DIR}/${name}.h)
  list(APPEND numerics_sources ${found})
endforeach()
list(JOIN numerics_names "," numerics_list)
add_custom_command(
  OUTPUT ${numerics_c}
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${numerics_c} "-DSOURCES=${numerics_list}"
          "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}"
          -P ${CMAKE_CURRENT_LIST_DIR}/numerics_id.cmake
  DEPENDS ${numerics_sources} ${CMAKE_CURRENT_LIST_DIR}/numerics_id.cmake
  COMMENT "Hashing the numeric sources" VERBATIM)
target_sources(trainer_model PRIVATE ${numerics_c})
# Vectors are passed between inlined functions only; there is no ABI to change.
target_compile_options(trainer_model PRIVATE -Wno-psabi -fno-math-errno)
target_link_libraries(trainer_model PUBLIC m)
