# 64-bit Windows under Debian's cross compiler; the programs run under wine. tools/cross/windows makes the libraries.
#
#   -DCMAKE_TOOLCHAIN_FILE=tools/cross/windows.cmake   libraries from build/windows-libraries, or WISP_WINDOWS_LIBRARIES
#   WINEPREFIX=... ctest ...                           the folder in which wine keeps its drive C
set(CMAKE_SYSTEM_NAME Windows)
set(CMAKE_SYSTEM_PROCESSOR AMD64)
# Threads of POSIX: the C++ library of the other kind has none.
set(CMAKE_C_COMPILER x86_64-w64-mingw32-gcc-posix)
set(CMAKE_CXX_COMPILER x86_64-w64-mingw32-g++-posix)
set(CMAKE_RC_COMPILER x86_64-w64-mingw32-windres)

get_filename_component(libraries "${CMAKE_CURRENT_LIST_DIR}/../../build/windows-libraries" ABSOLUTE)
set(WISP_WINDOWS_LIBRARIES "${libraries}" CACHE PATH "libraries that tools/cross/windows has made")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WISP_WINDOWS_LIBRARIES)
set(CMAKE_FIND_ROOT_PATH "${WISP_WINDOWS_LIBRARIES}" /usr/x86_64-w64-mingw32)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_PREFIX_PATH "${WISP_WINDOWS_LIBRARIES}")
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} "${WISP_WINDOWS_LIBRARIES}/lib/pkgconfig")

# The program and the DLL need no DLL of the compiler.
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
set(CMAKE_SHARED_LINKER_FLAGS_INIT -static)
set(CMAKE_CROSSCOMPILING_EMULATOR wine)
