# wisp for CMake. An app links one of three libraries, all with the header <wisp/wisp.h>:
#
#   find_package(wisp 0.1 CONFIG REQUIRED COMPONENTS runtime)     # it only recommends
#   target_link_libraries(app PRIVATE wisp::runtime)
#   find_package(wisp 0.1 CONFIG REQUIRED COMPONENTS text)        # it embeds, classifies and generates texts too
#   target_link_libraries(app PRIVATE wisp::text)
#   find_package(wisp 0.1 CONFIG REQUIRED COMPONENTS training)    # it is trained privately too
#   target_link_libraries(app PRIVATE wisp::training)
#
# set(wisp_USE_STATIC_LIBS ON) before find_package: the archives instead of the shared libraries. Only then are the
# libraries looked for that texts and training need, by pkg-config. Without COMPONENTS there is whatever was installed.
set(wisp_FOUND TRUE)

# Not a macro of CMake's: a reason has to be a sentence.
function(wisp_refuse)
  string(CONCAT reason ${ARGN})
  set(wisp_FOUND FALSE PARENT_SCOPE)
  set(wisp_NOT_FOUND_MESSAGE "${reason}" PARENT_SCOPE)
endfunction()

set(wisp_wanted ${wisp_FIND_COMPONENTS})
foreach(component runtime text training)
  if(NOT wisp_FIND_COMPONENTS AND EXISTS "${CMAKE_CURRENT_LIST_DIR}/wisp-${component}.cmake")
    list(APPEND wisp_wanted ${component})
  endif()
endforeach()

foreach(component ${wisp_wanted})
  set(wisp_${component}_FOUND FALSE)
  if(NOT component MATCHES "^(runtime|text|training)$")
    if(wisp_FIND_REQUIRED_${component})
      wisp_refuse("wisp has no component '${component}'; there are runtime, text and training")
    endif()
  elseif(NOT EXISTS "${CMAKE_CURRENT_LIST_DIR}/wisp-${component}.cmake")
    if(wisp_FIND_REQUIRED_${component})
      wisp_refuse("wisp is installed here without its component '${component}': it was built with WISP_TRAINING=OFF, "
                  "or cmake --install was given another component than wisp_${component}")
    endif()
  else()
    set(wisp_${component}_FOUND TRUE)
  endif()
endforeach()

if(wisp_FOUND AND wisp_USE_STATIC_LIBS)
  include(CMakeFindDependencyMacro)
  find_dependency(Threads)
  find_dependency(PkgConfig)
  set(wisp_needed_UTF8PROC libutf8proc)
  set(wisp_needed_SODIUM libsodium)
  set(wisp_needed_SQLITE "sqlite3>=3.37")
  set(wisp_needed)
  if(wisp_text_FOUND OR wisp_training_FOUND)
    list(APPEND wisp_needed UTF8PROC)
  endif()
  if(wisp_training_FOUND)
    list(APPEND wisp_needed SODIUM SQLITE)
  endif()
  foreach(library ${wisp_needed})
    pkg_check_modules(wisp_${library} QUIET IMPORTED_TARGET ${wisp_needed_${library}})
    if(NOT wisp_${library}_FOUND)
      wisp_refuse("the static libraries of wisp need ${wisp_needed_${library}}, which pkg-config does not find; "
                  "without wisp_USE_STATIC_LIBS it is not looked for")
    endif()
  endforeach()
endif()

if(wisp_FOUND)
  set(wisp_kind shared)
  if(wisp_USE_STATIC_LIBS)
    set(wisp_kind static)
  endif()
  foreach(component runtime text training)
    if(wisp_${component}_FOUND AND NOT TARGET wisp::${component})
      include("${CMAKE_CURRENT_LIST_DIR}/wisp-${component}.cmake")
      # The linker of C programs does not add the C++ library.
      set_property(TARGET wisp::${component}_static APPEND PROPERTY INTERFACE_LINK_LIBRARIES stdc++ m)
      add_library(wisp::${component} ALIAS wisp::${component}_${wisp_kind})
    endif()
  endforeach()
endif()
