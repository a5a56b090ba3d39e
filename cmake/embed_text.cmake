# Writes a C file with a text file's bytes in it: -DIN=FILE -DOUT=FILE.c -DNAME=symbol -DHEADER=include
file(READ ${IN} hex HEX)
string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
string(REGEX REPLACE "((0x..,){20})" "\\1\n    " bytes "${bytes}")
file(WRITE ${OUT} "#include \"${HEADER}\"\n\nconst char ${NAME}[] = {\n    ${bytes}0};\n")
