# The numerics id covers this folder and trainer/exact: whatever changes a bit of a result is in one of them.
set(numerics_c ${CMAKE_BINARY_DIR}/generated/numerics_id.c)
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
file(GLOB numerics_sources CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/trainer/model/*.c ${CMAKE_SOURCE_DIR}/trainer/model/*.h
     ${CMAKE_SOURCE_DIR}/trainer/exact/*.c ${CMAKE_SOURCE_DIR}/trainer/exact/*.h)
add_custom_command(
  OUTPUT ${numerics_c}
  COMMAND ${CMAKE_COMMAND} -DROOT=${CMAKE_SOURCE_DIR} -DOUT=${numerics_c} -DFOLDERS=trainer/model,trainer/exact
          "-DCOMPILER=${CMAKE_C_COMPILER_ID} ${CMAKE_C_COMPILER_VERSION} ${CMAKE_C_FLAGS} ${CMAKE_C_FLAGS_${build_type}}"
          -P ${CMAKE_CURRENT_LIST_DIR}/numerics_id.cmake
  DEPENDS ${numerics_sources} ${CMAKE_CURRENT_LIST_DIR}/numerics_id.cmake
  COMMENT "Hashing the numeric sources" VERBATIM)
target_sources(trainer_model PRIVATE ${numerics_c})
# Vectors are passed between inlined functions only; there is no ABI to change.
target_compile_options(trainer_model PRIVATE -Wno-psabi -fno-math-errno)
target_link_libraries(trainer_model PUBLIC m)
