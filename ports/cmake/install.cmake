# The rules of cmake --install. The components wisp_runtime, wisp_text and wisp_training each have all that an app needs
# which links only that library. wisp_program has the program with recipes and models, and wisp_cuda the kernels for a
# GPU.
#
#   cmake --install build/release --prefix DIR [--component wisp_runtime]
#
# Targets that are not built are not installed, and a line says so. A component that is requested by name must be built.
# No installed file names a folder of this machine, so the prefix may be moved.
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
set(wisp_root ${CMAKE_CURRENT_SOURCE_DIR})
set(wisp_generated ${CMAKE_CURRENT_BINARY_DIR}/ports/cmake)

# Releases are installed stripped, except for the archives: every install command below has --strip as its default.
install(CODE [[
  set(wisp_strip "${CMAKE_INSTALL_DO_STRIP}")
  if(CMAKE_INSTALL_CONFIG_NAME MATCHES "^(Release|MinSizeRel)$")
    set(CMAKE_INSTALL_DO_STRIP TRUE)
  endif()]] ALL_COMPONENTS)

# wisp_install_if_built(component target...): the following install rules of this folder apply if these targets are
# built.
function(wisp_install_if_built component)
  set_property(GLOBAL APPEND PROPERTY wisp_installed ${ARGN})
  set(built_in "${CMAKE_BINARY_DIR}")
  foreach(target ${ARGN})
    install(CODE "
  if((NOT CMAKE_INSTALL_COMPONENT OR CMAKE_INSTALL_COMPONENT STREQUAL ${component}) AND NOT EXISTS \"$<TARGET_FILE:${target}>\")
    set(wisp_missing \"$<TARGET_FILE_NAME:${target}> is not built: cmake --build ${built_in} --target ${target}\")
    if(CMAKE_INSTALL_COMPONENT)
      message(FATAL_ERROR \"\${wisp_missing}\")
    endif()
    message(STATUS \"Without ${component}: \${wisp_missing}\")
    return()
  endif()" ALL_COMPONENTS)
  endforeach()
endfunction()

# The path from the folder of a .pc file to the prefix.
file(RELATIVE_PATH wisp_prefix_of_pc "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
string(REGEX REPLACE "/$" "" wisp_prefix_of_pc "${wisp_prefix_of_pc}")
# Libraries that an archive needs. They are named as libraries, because pkg-config would ask for packages even when an
# app links the shared library.
set(wisp_libraries -lstdc++ -lm -lpthread)
if(WISP_CUDA)
  list(APPEND wisp_libraries -ldl)
endif()
if(WISP_XNNPACK)
  list(PREPEND wisp_libraries -lXNNPACK)
endif()

write_basic_package_version_file(${wisp_generated}/wisp-config-version.cmake COMPATIBILITY SameMinorVersion)

# wisp_install(name file description): installs a product of CMakeLists.txt, with all that an app needs to link it. Its
# rules are a separate script, so that a product that is not built can be skipped (wisp_install_if_built).
function(wisp_install name file description)
  list(JOIN wisp_libraries " " wisp_libraries)
  add_subdirectory(${wisp_root}/ports/cmake/product ${wisp_generated}/${name})
endfunction()

# With WISP_TRAINING=OFF wisp.h declares functions that the library lacks (it says which).
if(TARGET libwisp-runtime)
  wisp_install(runtime wisp-runtime "Recommends with small Transformers, on the device")
endif()
if(WISP_TEXTS)
  list(PREPEND wisp_libraries -lutf8proc)
endif()
if(TARGET libwisp-text)
  wisp_install(text wisp-text "Recommends, and embeds, classifies and generates texts, on the device")
endif()
if(WISP_TRAINING)
  list(PREPEND wisp_libraries -lsodium -lsqlite3)
  wisp_install(training wisp "Recommends with small Transformers, and fine-tunes them privately on the device")
endif()
if(TARGET wisp_tool)
  add_subdirectory(${wisp_root}/ports/cmake/program ${wisp_generated}/program)
endif()
# The module is installed beside libwisp.so; the program gets the path to it. The module is built only on request, and
# without it the rest is still installed.
if(WISP_CUDA)
  file(RELATIVE_PATH wisp_modules_of_programs "/${CMAKE_INSTALL_BINDIR}" "/${CMAKE_INSTALL_LIBDIR}")
  set_property(SOURCE kernels/module/module.cc APPEND PROPERTY COMPILE_DEFINITIONS
    WISP_PROGRAMS="${CMAKE_INSTALL_BINDIR}" WISP_MODULES_OF_PROGRAMS="${wisp_modules_of_programs}")
  if(TARGET wisp_cuda)
    install(FILES $<TARGET_FILE:wisp_cuda> DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT wisp_cuda OPTIONAL)
  endif()
endif()
install(CODE [[set(CMAKE_INSTALL_DO_STRIP "${wisp_strip}")]] ALL_COMPONENTS)

# The targets that are installed, without tests.
get_property(wisp_installed GLOBAL PROPERTY wisp_installed)
add_custom_target(installed)
if(wisp_installed)
  add_dependencies(installed ${wisp_installed})
endif()
