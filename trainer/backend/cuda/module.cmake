# Kernels become code for three kinds of GPU at build time, embedded as bytes: no code of nvcc for the host is
# linked, and no CUDA runtime. Where there is no nvcc the table of images is empty.
set(cuda_folder ${CMAKE_BINARY_DIR}/cuda)
file(MAKE_DIRECTORY ${cuda_folder})
set(cuda_kinds -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90a,code=sm_90a -gencode arch=compute_100,code=sm_100)

# rm_cuda_image(name flags...): kernels/<name>.cu as cuda/<name>.fatbin, with what ptxas says of it in <name>.log and, for
# tests that read it, the code before ptxas in <name>.ptx. Not in the order of DEPENDS but by -MD: nvcc knows what it read.
function(rm_cuda_image name)
  set(source ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/kernels/${name}.cu)
  set(out ${cuda_folder}/${name})
  set(nvcc ${RM_NVCC_FOUND} -ccbin ${CMAKE_C_COMPILER} -I${CMAKE_SOURCE_DIR} ${ARGN})
  add_custom_command(
    OUTPUT ${out}.fatbin ${out}.log
    COMMAND ${CMAKE_COMMAND} "-DLOG=${out}.log" -P ${CMAKE_SOURCE_DIR}/cmake/run_logged.cmake --
            ${nvcc} -fatbin --no-compress -Xptxas -v ${cuda_kinds} -MD -MF ${out}.d -MT ${out}.fatbin ${source} -o ${out}.fatbin
    DEPENDS ${source} ${RM_NVCC_FOUND} DEPFILE ${out}.d COMMENT "GPU kernels: ${name}" VERBATIM)
  set(outputs ${out}.fatbin)
  if(BUILD_TESTING)
    add_custom_command(
      OUTPUT ${out}.ptx
      COMMAND ${nvcc} -ptx -arch=compute_80 ${source} -o ${out}.ptx
      DEPENDS ${out}.fatbin COMMENT "GPU kernels: ${name}, to read" VERBATIM)
    list(APPEND outputs ${out}.ptx)
  endif()
  add_custom_target(cuda_${name} DEPENDS ${outputs})
  add_dependencies(trainer_backend_cuda cuda_${name})
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/images.c APPEND PROPERTY OBJECT_DEPENDS ${out}.fatbin)
endfunction()

if(RM_NVCC_FOUND)
  rm_cuda_image(exact ${RM_CUDA_EXACT})
  rm_cuda_image(model ${RM_CUDA_EXACT})
  set_property(SOURCE ${CMAKE_SOURCE_DIR}/trainer/backend/cuda/images.c APPEND PROPERTY COMPILE_DEFINITIONS "RM_CUDA_IMAGES=\"${cuda_folder}\"")
endif()
