# 64-bit Arm under Debian's cross compiler; the programs run under qemu-user. `tools/dev arm64` makes the folder of libraries.
#
#   -DCMAKE_TOOLCHAIN_FILE=tools/cross/arm64.cmake   libraries from build/arm64-libraries, or WISP_ARM64_LIBRARIES
#   QEMU_CPU=max ctest ...                           the processor that tests see: what qemu-aarch64 -cpu help lists
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)

get_filename_component(libraries "${CMAKE_CURRENT_LIST_DIR}/../../build/arm64-libraries" ABSOLUTE)
set(WISP_ARM64_LIBRARIES "${libraries}" CACHE PATH "Debian's arm64 packages, unpacked")
list(APPEND CMAKE_TRY_COMPILE_PLATFORM_VARIABLES WISP_ARM64_LIBRARIES)

# Libraries and headers come only from there, programs (flatc) from this machine. The C library is the cross compiler's
# own.
set(CMAKE_FIND_ROOT_PATH "${WISP_ARM64_LIBRARIES}" /usr/aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(ENV{PKG_CONFIG_DIR} "")
set(ENV{PKG_CONFIG_LIBDIR} "${WISP_ARM64_LIBRARIES}/usr/lib/aarch64-linux-gnu/pkgconfig:${WISP_ARM64_LIBRARIES}/usr/share/pkgconfig")
set(ENV{PKG_CONFIG_SYSROOT_DIR} "${WISP_ARM64_LIBRARIES}")

# -U removes this machine's search path for libraries.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L /usr/aarch64-linux-gnu -U LD_LIBRARY_PATH)
