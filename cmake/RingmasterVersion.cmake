# What the programs' `--version` tells beside the version: the commit that is checked out, and what they are built with.
# RINGMASTER_COMMIT gives the commit where there is no repository, as in the images.
set(RINGMASTER_COMMIT "" CACHE STRING "the commit of these sources; empty: git is asked")
set(commit "${RINGMASTER_COMMIT}")
if(NOT commit)
  execute_process(COMMAND git rev-parse --short=12 HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  # Each commit and checkout adds a line there: the next build asks anew.
  execute_process(COMMAND git rev-parse --git-path logs/HEAD WORKING_DIRECTORY ${CMAKE_SOURCE_DIR}
    OUTPUT_VARIABLE log OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  get_filename_component(log "${log}" ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
  if(EXISTS "${log}" AND NOT IS_DIRECTORY "${log}")
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${log}")
  endif()
endif()
if(NOT commit)
  set(commit "unknown")
endif()
string(REGEX REPLACE "-+$" "" lws "${LWS_VERSION}")
set(RM_ORIGIN "RM_VERSION=\"${PROJECT_VERSION}\"" "RM_COMMIT=\"${commit}\""
  "RM_BUILT_WITH=\"libuv ${UV_VERSION}, jansson ${JANSSON_VERSION}, libwebsockets ${lws}, curl ${CURL_VERSION}, \
OpenSSL ${OPENSSL_VERSION}, expat ${EXPAT_VERSION}, libyaml ${YAML_VERSION}, xxHash ${XXHASH_VERSION}\"")
