# Dependencies, compiler flags, and the three functions that declare everything built here.
find_package(PkgConfig REQUIRED)
find_package(OpenSSL 3 REQUIRED)
find_package(Threads REQUIRED)
pkg_check_modules(UV REQUIRED IMPORTED_TARGET libuv)
pkg_check_modules(JANSSON REQUIRED IMPORTED_TARGET jansson)
pkg_check_modules(LWS REQUIRED IMPORTED_TARGET libwebsockets)
pkg_check_modules(CURL REQUIRED IMPORTED_TARGET libcurl)
pkg_check_modules(EXPAT REQUIRED IMPORTED_TARGET expat)
pkg_check_modules(YAML REQUIRED IMPORTED_TARGET yaml-0.1)
pkg_check_modules(XXHASH REQUIRED libxxhash>=0.8) # its header alone, no library
pkg_check_modules(CRIU IMPORTED_TARGET criu>=4.1) # ringmaster-snapshot alone; Debian 12 has none
find_library(DNNL_LIBRARY dnnl REQUIRED)
add_library(dnnl INTERFACE)

option(RM_ASAN "AddressSanitizer and UndefinedBehaviorSanitizer" OFF)
option(RM_TSAN "ThreadSanitizer: the trainer's threads" OFF)
option(RM_FAULTS "compile the named fault points in (test builds only)" OFF)
option(RM_FUZZ "the fuzz targets alone, under the sanitizers (needs clang)" OFF)

# oneDNN is built for gcc's OpenMP. No fuzz target computes, and clang often comes without an OpenMP.
if(NOT RM_FUZZ)
  find_package(OpenMP REQUIRED COMPONENTS C)
  target_link_libraries(dnnl INTERFACE ${DNNL_LIBRARY} OpenMP::OpenMP_C)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(rm_flags INTERFACE)
target_compile_features(rm_flags INTERFACE c_std_17)
target_compile_definitions(rm_flags INTERFACE _GNU_SOURCE $<$<BOOL:${RM_FAULTS}>:RM_FAULTS>)
target_compile_options(rm_flags INTERFACE
  -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla
  -Wformat=2 -Wno-format-nonliteral -Wno-format-truncation -Wundef -fno-omit-frame-pointer -ffp-contract=off -fno-fast-math)
target_include_directories(rm_flags INTERFACE ${CMAKE_SOURCE_DIR})
if(RM_ASAN)
  target_compile_options(rm_flags INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=all)
  target_link_options(rm_flags INTERFACE -fsanitize=address,undefined)
endif()
if(RM_TSAN)
  # It does not know fences; what ours order (shm_ring.c) are atomics, in which it sees no race without them either.
  target_compile_options(rm_flags INTERFACE -fsanitize=thread -Wno-tsan)
  target_link_options(rm_flags INTERFACE -fsanitize=thread)
endif()
if(RM_FUZZ)
  target_compile_options(rm_flags INTERFACE
    -Wno-unknown-warning-option -Wno-ignored-attributes -fsanitize=fuzzer-no-link,address,undefined,float-cast-overflow
    -fno-sanitize-recover=all)
  target_link_options(rm_flags INTERFACE -fsanitize=address,undefined)
endif()

# What is written for one kind of processor has two files: NAME_x86.c is built for x86-64, NAME_portable.c for all others.
# Nothing else chooses; within NAME_x86.c the instruction set is chosen when the program starts.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(RM_X86 ON)
  set(RM_OTHERS_FILES "_portable\\.c$")
else()
  set(RM_X86 OFF)
  set(RM_OTHERS_FILES "_x86\\.c$")
endif()

# rm_library(path [DEPS targets...] [LIBS external...]): every .c file of one folder, but a main.c, as a
# static library named after the path with '_' for '/'. A folder without .c files gives an empty one.
function(rm_library path)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  string(REPLACE "/" "_" name ${path})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${path}/*.c)
  list(FILTER sources EXCLUDE REGEX ${RM_OTHERS_FILES})
  list(FILTER sources EXCLUDE REGEX "/main\\.c$")
  if(sources)
    add_library(${name} STATIC ${sources})
    target_link_libraries(${name} PUBLIC rm_flags ${ARG_DEPS} PRIVATE ${ARG_LIBS})
  else()
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE rm_flags ${ARG_DEPS} ${ARG_LIBS})
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/${path}/module.cmake)
    include(${CMAKE_SOURCE_DIR}/${path}/module.cmake)
  endif()
endfunction()

# rm_program(name path DEPS targets... [WITH targets...]): the .c files directly in a folder as a library, for tests to
# use, and its main.c on top as a program. WITH: what main.c alone may call besides.
function(rm_program name path)
  cmake_parse_arguments(ARG "" "" "DEPS;WITH" ${ARGN})
  string(REPLACE "/" "_" library ${path})
  rm_library(${path} DEPS ${ARG_DEPS})
  add_executable(${name} ${CMAKE_SOURCE_DIR}/${path}/main.c)
  target_link_libraries(${name} PRIVATE rm_flags ${library} ${ARG_WITH} m)
endfunction()

# rm_unit_test(name DEPS targets...): tests/unit/.../<name>.c with Criterion, registered with ctest.
function(rm_unit_test name)
  cmake_parse_arguments(ARG "" "" "DEPS" ${ARGN})
  add_executable(${name} ${CMAKE_CURRENT_SOURCE_DIR}/${name}.c)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_link_libraries(${name} PRIVATE rm_flags ${ARG_DEPS} criterion m)
  target_compile_options(${name} PRIVATE -Wno-missing-prototypes)
  add_test(NAME ${name} COMMAND ${name} --jobs 2 ${${name}_arguments})
endfunction()
