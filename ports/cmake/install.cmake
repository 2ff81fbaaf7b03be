# What cmake --install puts where. Its components are wisp_runtime, wisp_text and wisp_training, each whole for an app
# that links that library and no other, wisp_program: the program with recipes and models, and wisp_cuda: the kernels of
# a GPU.
#
#   cmake --install build/release --prefix DIR [--component wisp_runtime]
#
# No installed file names a folder of this machine: the prefix may be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
foreach(folder LIBDIR INCLUDEDIR)
  if(IS_ABSOLUTE "${CMAKE_INSTALL_${folder}}")
    message(FATAL_ERROR "CMAKE_INSTALL_${folder} is ${CMAKE_INSTALL_${folder}}; allowed are folders below the prefix, "
                        "such as lib or include")
  endif()
endforeach()
set(wisp_package ${CMAKE_INSTALL_LIBDIR}/cmake/wisp)
set(wisp_data ${CMAKE_INSTALL_DATADIR}/wisp)
set(wisp_generated ${CMAKE_CURRENT_BINARY_DIR}/ports/cmake)

# A release is installed stripped, its archives aside: --strip is the default of every install command below.
install(CODE [[
  set(wisp_strip "${CMAKE_INSTALL_DO_STRIP}")
  if(CMAKE_INSTALL_CONFIG_NAME MATCHES "^(Release|MinSizeRel)$")
    set(CMAKE_INSTALL_DO_STRIP TRUE)
  endif()]] ALL_COMPONENTS)

# From where a .pc file lies to the prefix.
file(RELATIVE_PATH wisp_prefix_of_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" wisp_prefix_of_pc "${wisp_prefix_of_pc}")
# What an archive needs, by names of libraries: pkg-config would ask for packages where the shared library is linked too.
set(wisp_libraries -lstdc++ -lm -lpthread)
if(WISP_CUDA)
  list(APPEND wisp_libraries -ldl)
endif()
if(WISP_XNNPACK)
  list(PREPEND wisp_libraries -lXNNPACK)
endif()

write_basic_package_version_file(${wisp_generated}/wisp-config-version.cmake COMPATIBILITY SameMinorVersion)

# wisp_install(name file description): a product of CMakeLists.txt, with all that an app needs to link it.
function(wisp_install name file description)
  set(component wisp_${name})
  install(TARGETS wisp_${name}_shared wisp_${name}_static EXPORT wisp-${name}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${component}
          INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  if(WISP_LTO)
    # -N, of a symbol that may not be there, keeps strip from taking all others.
    install(CODE "execute_process(COMMAND \"${CMAKE_STRIP}\" -R .gnu.lto_* -R .gnu.debuglto_* -N __gnu_lto_slim
      \"\$ENV{DESTDIR}\${CMAKE_INSTALL_PREFIX}/${CMAKE_INSTALL_LIBDIR}/lib${file}.a\" COMMAND_ERROR_IS_FATAL ANY)"
      COMPONENT ${component})
  endif()
  install(EXPORT wisp-${name} NAMESPACE wisp:: DESTINATION ${wisp_package} COMPONENT ${component})
  install(FILES ports/cmake/wisp-config.cmake ${wisp_generated}/wisp-config-version.cmake DESTINATION ${wisp_package}
          COMPONENT ${component})
  list(JOIN wisp_libraries " " wisp_libraries)
  configure_file(ports/cmake/wisp.pc.in ${wisp_generated}/${file}.pc @ONLY)
  install(FILES ${wisp_generated}/${file}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT ${component})
  install(FILES ports/c/wisp.h ports/c/wisp_embed.h ports/c/wisp_life.h ports/c/wisp_text.h ports/cpp/wisp.hpp
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/wisp COMPONENT ${component})
  install(FILES LICENSE NOTICE.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT ${component})
endfunction()

# With WISP_TRAINING=OFF wisp.h declares functions that the library lacks (it says which).
if(TARGET wisp_runtime_shared)
  wisp_install(runtime wisp-runtime "Recommends with small Transformers, on the device")
endif()
list(PREPEND wisp_libraries -lutf8proc)
if(TARGET wisp_text_shared)
  wisp_install(text wisp-text "Recommends, and embeds, classifies and generates texts, on the device")
endif()
if(WISP_TRAINING)
  list(PREPEND wisp_libraries -lsodium -lsqlite3)
  wisp_install(training wisp "Recommends with small Transformers, and fine-tunes them privately on the device")
  install(FILES ports/c/example.c DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT wisp_training)
endif()
if(TARGET wisp_tool)
  install(TARGETS wisp_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT wisp_program)
  install(DIRECTORY models/recipes DESTINATION ${wisp_data} COMPONENT wisp_program FILES_MATCHING PATTERN "*.json")
  install(FILES models/cafe.wisp DESTINATION ${wisp_data}/models COMPONENT wisp_program)
  if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
    install(FILES ports/linux-arm64/wisp-night.service ports/linux-arm64/wisp-night.timer
      DESTINATION ${wisp_data}/systemd COMPONENT wisp_program)
  endif()
  install(FILES LICENSE NOTICE.md DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT wisp_program)
endif()
# The module lies with the libraries, where libwisp.so is beside it; the program is told the way. It is built when it is
# asked for: without it the rest is installed.
if(WISP_CUDA)
  file(RELATIVE_PATH wisp_modules_of_programs "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_property(SOURCE kernels/module/module.cc APPEND PROPERTY COMPILE_DEFINITIONS
    WISP_PROGRAMS="${CMAKE_INSTALL_BINDIR}" WISP_MODULES_OF_PROGRAMS="${wisp_modules_of_programs}")
  if(TARGET wisp_cuda)
    install(FILES $<TARGET_FILE:wisp_cuda> DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT wisp_cuda OPTIONAL)
  endif()
endif()
install(CODE [[set(CMAKE_INSTALL_DO_STRIP "${wisp_strip}")]] ALL_COMPONENTS)
