# A Jetson's 64-bit Arm under a cross compiler of another machine (Debian: g++-aarch64-linux-gnu).
#
#   -DWISP_JETSON_SYSROOT=DIR   a copy of the board's /usr, /lib and /etc/alternatives: what is built runs on that board.
#   (without)                   Debian's arm64 packages, which tools/cross/arm64-libraries unpacks: what is built runs
#                               where the C library is no older than this machine's. Enough to see that all compiles.
#
# No newer compiler than the board's, or the board's libstdc++ may lack what is called.
set(WISP_JETSON_SYSROOT "" CACHE PATH "A copy of a Jetson's root folder; empty: Debian's arm64 packages")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WISP_JETSON_SYSROOT)
if(NOT WISP_JETSON_SYSROOT)
  include("${CMAKE_CURRENT_LIST_DIR}/../../tools/cross/arm64.cmake")
  return()
endif()
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_SYSROOT "${WISP_JETSON_SYSROOT}")
# Libraries and headers from there alone, programs (flatc) from this machine.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} "${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${CMAKE_SYSROOT}")
