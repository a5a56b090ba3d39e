# The bundle: what runs a worker in an image that has nothing of ours. docs/programs.md, "In an image of yours".
#   cmake --install build/release --component bundle --prefix DIR
# DIR becomes what has to lie at RINGMASTER_BUNDLE_PREFIX where it runs: loader and libraries are found there by nothing
# but that path, which is in the programs.
set(RINGMASTER_BUNDLE_PREFIX /opt/ringmaster CACHE STRING "where the bundle lies where it runs: an absolute path, short (cmake/bundle)")

# rm_bundled(program): the same program once more, bound to the bundle's loader and libraries.
# DT_RPATH of a program holds for all that its libraries load, too, where DT_RUNPATH would not, and goes before LD_LIBRARY_PATH.
function(rm_bundled program)
  get_target_property(sources ${program} SOURCES)
  get_target_property(libraries ${program} LINK_LIBRARIES)
  add_executable(bundled-${program} ${sources})
  target_link_libraries(bundled-${program} PRIVATE ${libraries})
  target_link_options(bundled-${program} PRIVATE
    -Wl,--dynamic-linker,${RINGMASTER_BUNDLE_PREFIX}/lib/${RM_LOADER} -Wl,--disable-new-dtags -Wl,-rpath,${RINGMASTER_BUNDLE_PREFIX}/lib)
  set_target_properties(bundled-${program} PROPERTIES
    OUTPUT_NAME ${program} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle/libexec SKIP_BUILD_RPATH ON)
endfunction()

# The first program is freestanding: none of the flags of the others, no C library, no start of one.
function(rm_first_program)
  add_executable(bundled-first ${CMAKE_SOURCE_DIR}/agent/bundle/main.c ${CMAKE_SOURCE_DIR}/agent/launch/core/aside.c)
  target_include_directories(bundled-first PRIVATE ${CMAKE_SOURCE_DIR})
  target_compile_definitions(bundled-first PRIVATE RM_BUNDLE_PREFIX="${RINGMASTER_BUNDLE_PREFIX}")
  target_compile_features(bundled-first PRIVATE c_std_17)
  target_compile_options(bundled-first PRIVATE -Wall -Wextra -Werror -O2 -ffreestanding -fno-pie -fno-stack-protector
    -fno-tree-loop-distribute-patterns -fno-asynchronous-unwind-tables)
  target_link_options(bundled-first PRIVATE -nostdlib -static -no-pie -Wl,--build-id=none -Wl,-z,noexecstack)
  set_target_properties(bundled-first PROPERTIES
    OUTPUT_NAME ringmaster-agent RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bundle/bin)
endfunction()

# No bundle of instrumented programs, nor of another processor's: its libraries are those of the machine that builds it.
if(NOT RM_ASAN AND NOT RM_TSAN AND NOT RM_FUZZ AND NOT CMAKE_CROSSCOMPILING)
  if(RM_X86)
    set(RM_LOADER ld-linux-x86-64.so.2)
  else()
    set(RM_LOADER ld-linux-aarch64.so.1)
  endif()
  rm_bundled(ringmaster-agent)
  rm_bundled(ringmaster-trainer)
  if(CRIU_FOUND)
    rm_bundled(ringmaster-snapshot) # cmake/bundle adds criu itself
  endif()
  rm_first_program()
  install(CODE "execute_process(COMMAND sh ${CMAKE_SOURCE_DIR}/cmake/bundle ${CMAKE_BINARY_DIR}/bundle
    \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}\" ${RINGMASTER_BUNDLE_PREFIX} ${RM_LOADER} RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(FATAL_ERROR \"the bundle was not made\")
  endif()" COMPONENT bundle EXCLUDE_FROM_ALL)
endif()
