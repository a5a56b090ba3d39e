# standby.py travels in the program: a stranger's image need not have it, and it can't be another one than this.
set(standby_c ${CMAKE_BINARY_DIR}/generated/standby_source.c)
add_custom_command(
  OUTPUT ${standby_c}
  COMMAND ${CMAKE_COMMAND} -DIN=${CMAKE_CURRENT_LIST_DIR}/standby.py -DOUT=${standby_c} -DNAME=standby_source
          -DHEADER=agent/launch/standby_source.h -P ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
  DEPENDS ${CMAKE_CURRENT_LIST_DIR}/standby.py ${CMAKE_SOURCE_DIR}/cmake/embed_text.cmake
  COMMENT "Taking standby.py in" VERBATIM)
target_sources(agent_launch PRIVATE ${standby_c})
