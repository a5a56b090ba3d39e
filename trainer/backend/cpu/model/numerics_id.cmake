# cmake -DROOT=... -DOUT=... -DCOMPILER=... -DSOURCES=a.c,b.h -P numerics_id.cmake: writes OUT, a C file that
# defines what numerics_id.h declares. It is written anew only where its text changes. -DNAME=x -DHEADER=x.h: another's,
# as x_id and x_sources_id.
#
# Only what may decide a bit is hashed: no comment, no white space, no name of a file, no #include, no assertion. So a
# sentence more, a file that moves and a check that is added leave the id, and with it every checkpoint, as it was.
# An assertion is a call of assert, RM_ASSERT or _Static_assert without a ';' in it.

# The text as the compiler's arithmetic sees it.
function(numeric_text path out)
  file(READ "${path}" text)
  string(REGEX REPLACE "/\\*([^*]|\\*+[^*/])*\\*+/" " " text "${text}")
  string(REGEX REPLACE "//[^\n]*" " " text "${text}")
  string(REGEX REPLACE "#include[^\n]*" " " text "${text}")
  string(REGEX REPLACE "(^|[^A-Za-z0-9_])(assert|RM_ASSERT|_Static_assert)[ \t\n]*\\([^;]*\\);" "\\1" text "${text}")
  string(REGEX REPLACE "[ \t\r\n\\]+" "" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

string(REPLACE "," ";" sources "${SOURCES}")
set(hashes "")
foreach(name IN LISTS sources)
  numeric_text("${ROOT}/${name}" text)
  string(SHA256 hash "${text}")
  string(APPEND hashes "${hash}\n")
endforeach()
string(SHA256 of_sources "${hashes}")
string(SHA256 id "${COMPILER}\n${of_sources}")
string(SUBSTRING ${of_sources} 0 16 of_sources)
string(SUBSTRING ${id} 0 16 id)
if(NOT DEFINED NAME)
  set(NAME numerics)
  set(HEADER trainer/backend/cpu/model/numerics_id.h)
endif()
string(CONCAT text "#include \"${HEADER}\"\n\n"
  "const char ${NAME}_id[] = \"${id}\";\n" "const char ${NAME}_sources_id[] = \"${of_sources}\";\n")
set(old "")
if(EXISTS ${OUT})
  file(READ ${OUT} old)
endif()
if(NOT "${old}" STREQUAL "${text}")
  file(WRITE ${OUT} "${text}")
endif()
