# libringmaster.so, for programs of users (trainer/library/ringmaster.h), and the Python package that uses it: parts of the
# bundle, of what `cmake --install` and the package of Debian's install, and a component of their own:
#   cmake --install build/release --component library --prefix DIR
# The library is loaded into processes that are not ours, whatever their image has: it needs libc alone, of 2.17 or later
# (tests/unit/trainer/library holds it to that), and shows no name but its header's.
if(NOT RM_ASAN AND NOT RM_FUZZ)
  file(GLOB library_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/trainer/library/*.c)
  add_library(libringmaster SHARED ${library_sources})
  target_link_libraries(libringmaster PRIVATE rm_flags)
  target_link_options(libringmaster PRIVATE -Wl,-z,defs -Wl,-z,relro,-z,now -Wl,--as-needed)
  set_target_properties(libringmaster PROPERTIES
    OUTPUT_NAME ringmaster SOVERSION 1 C_VISIBILITY_PRESET hidden POSITION_INDEPENDENT_CODE ON
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
  # `lib` and not the triplet's folder: the loader looks there as well, and it lies where the Python package looks first.
  install(TARGETS libringmaster LIBRARY DESTINATION lib)
  install(FILES ${CMAKE_SOURCE_DIR}/trainer/library/ringmaster.h DESTINATION include)
  install(TARGETS libringmaster LIBRARY DESTINATION lib COMPONENT library EXCLUDE_FROM_ALL)
  # The name that compilers look for is a link, and a bundle has files alone (agent/bundle/install.h).
  install(TARGETS libringmaster LIBRARY DESTINATION lib COMPONENT bundle EXCLUDE_FROM_ALL NAMELINK_SKIP)
  foreach(component library bundle)
    install(FILES ${CMAKE_SOURCE_DIR}/trainer/library/ringmaster.h DESTINATION include COMPONENT ${component} EXCLUDE_FROM_ALL)
  endforeach()
endif()

# The Python package finds the library by its own place: share/ringmaster/python/ringmaster and lib lie in one folder, in the
# build tree as where they are installed.
file(GLOB modules CONFIGURE_DEPENDS RELATIVE ${CMAKE_SOURCE_DIR}/python/ringmaster ${CMAKE_SOURCE_DIR}/python/ringmaster/*.py)
foreach(module ${modules})
  configure_file(${CMAKE_SOURCE_DIR}/python/ringmaster/${module} ${CMAKE_BINARY_DIR}/share/ringmaster/python/ringmaster/${module} COPYONLY)
endforeach()
set(python_files FILES_MATCHING PATTERN "*.py" PATTERN __pycache__ EXCLUDE)
install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/ringmaster DESTINATION share/ringmaster/python ${python_files})
foreach(component library bundle)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/python/ringmaster DESTINATION share/ringmaster/python COMPONENT ${component} EXCLUDE_FROM_ALL
    ${python_files})
endforeach()
