# `cmake --install build/release`: the programs, their manual page and what completes their words in a shell, where a
# system keeps them, with the library and the Python package of users' programs (RingmasterLibrary.cmake); `cpack --config build/release/CPackConfig.cmake -G DEB`: the same as a package. The bundle is another
# component (RingmasterBundle.cmake), which neither takes along.
include(GNUInstallDirs)
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON) # what is installed has been built; the tests need not be
install(TARGETS ringmaster ringmaster-agent ringmaster-trainer ringmaster-operator RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Page and completions are what the program prints: made when it is installed, so that they are of that very program.
if(NOT CMAKE_CROSSCOMPILING)
  set(made ${CMAKE_BINARY_DIR}/share)
  install(CODE "
    foreach(words manual \"completion;bash\" \"completion;zsh\" \"completion;fish\")
      string(REPLACE \";\" \"-\" name \"\${words}\")
      execute_process(COMMAND ${CMAKE_BINARY_DIR}/bin/ringmaster \${words} OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
      file(WRITE ${made}/\${name} \"\${text}\")
    endforeach()")
  install(FILES ${made}/manual DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 RENAME ringmaster.1)
  install(FILES ${made}/completion-bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME ringmaster)
  install(FILES ${made}/completion-zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions RENAME _ringmaster)
  install(FILES ${made}/completion-fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d RENAME ringmaster.fish)
endif()

set(CPACK_PACKAGE_NAME ringmaster)
set(CPACK_PACKAGE_CONTACT "the owner of the repository")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Elastic distributed training on machines that come and go")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_STRIP_FILES ON)
# The loader's cache learns of the library by dpkg's trigger: no script of ours runs when it is installed.
file(WRITE ${CMAKE_BINARY_DIR}/triggers "activate-noawait ldconfig\n")
# CPack would write scripts for that, unless it is told of others; those named here do not exist, so there are none.
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_BINARY_DIR}/triggers ${CMAKE_BINARY_DIR}/none/postinst ${CMAKE_BINARY_DIR}/none/postrm)
include(CPack)
