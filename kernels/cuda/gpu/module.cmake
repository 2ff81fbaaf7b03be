# The target wisp_cuda: libwisp_cuda.so, the kernels of kernels/cuda compiled by nvcc, with CUDA's runtime inside. It is
# built only on request. The emulator compiles the same sources as ordinary C++, so nvcc is called for each file and
# CMake's CUDA language is not used. When cross-compiling, nvcc calls the target's compiler (ports/jetson).
find_program(NVCC nvcc HINTS /usr/local/cuda/bin PATHS ${CMAKE_CURRENT_SOURCE_DIR}/build/nvcc/cuda/bin)
if(NOT NVCC)
  message(STATUS "without libwisp_cuda.so: nvcc is missing (CUDA toolkit 12.1 or later, or tools/dev nvcc)")
  return()
endif()
# When cross-compiling: the target's runtime, from a toolkit or a copy of the board's (ports/jetson).
set(beside_nvcc)
if(NOT CMAKE_CROSSCOMPILING)
  get_filename_component(beside_nvcc ${NVCC} DIRECTORY)
  set(beside_nvcc ${beside_nvcc}/../lib)
endif()
find_library(CUDART_STATIC cudart_static HINTS /usr/local/cuda/lib64 /usr/local/cuda/targets/aarch64-linux/lib
             /usr/local/cuda/targets/sbsa-linux/lib PATHS ${beside_nvcc})
execute_process(COMMAND ${NVCC} --version OUTPUT_VARIABLE nvcc_version)
string(REGEX REPLACE ".*release ([0-9.]+),.*" "\\1" nvcc_version "${nvcc_version}")
# Orin and Hopper; and Thor, whose name CUDA 13 changed.
set(cuda_architectures 87 90)
if(nvcc_version VERSION_GREATER_EQUAL 13)
  list(APPEND cuda_architectures 110)
endif()
set(WISP_CUDA_ARCHITECTURES "${cuda_architectures}" CACHE STRING "GPUs that the module has code for; others from 80 on compile it when it is loaded")
# Like -ffp-contract=off on the host: if only some kernels fused operations, a record could have two different results.
set(cuda_flags -x cu -std=c++20 --extended-lambda --expt-relaxed-constexpr -fmad=false -ccbin ${CMAKE_CXX_COMPILER} -O3 -DNDEBUG
    -DWISP_OPS_VERSION="${ops_version}" -I ${CMAKE_CURRENT_SOURCE_DIR}
    -Xcompiler=-fPIC,-fvisibility=hidden,-fvisibility-inlines-hidden,-ffunction-sections,-O2)
if(WISP_HARDENING AND NOT WISP_SANITIZE)
  wisp_hardening_flags(hardening wisp_cuda)
  list(JOIN hardening "," hardening)
  list(APPEND cuda_flags -Xcompiler=${hardening})
endif()
if(CMAKE_CROSSCOMPILING)
  # nvcc expects a folder of the target, which only some toolkits have. The headers are the same for all targets.
  find_path(CUDA_HEADERS cuda_runtime.h HINTS /usr/local/cuda/include /usr/local/cuda/targets/x86_64-linux/include NO_CMAKE_FIND_ROOT_PATH)
  list(APPEND cuda_flags -isystem ${CUDA_HEADERS})
  if(CMAKE_SYSROOT)
    list(APPEND cuda_flags -Xcompiler=--sysroot=${CMAKE_SYSROOT})
  endif()
endif()
foreach(architecture ${WISP_CUDA_ARCHITECTURES})
  list(APPEND cuda_flags -gencode arch=compute_${architecture},code=sm_${architecture})
endforeach()
# PTX, which the driver compiles for GPUs that are not listed.
list(APPEND cuda_flags -gencode arch=compute_80,code=compute_80)
# Drivers before that of CUDA 12.4 cannot read the smaller form. Code of CUDA 13 needs a later driver anyway.
if(nvcc_version VERSION_GREATER_EQUAL 13)
  list(APPEND cuda_flags --compress-mode=size)
else()
  list(APPEND cuda_flags -Xfatbin=-compress-all)
endif()
file(GLOB cuda_sources CONFIGURE_DEPENDS kernels/cuda/*.cc kernels/cuda/gpu/*.cc)
set(cuda_objects)
foreach(source ${cuda_sources})
  get_filename_component(name ${source} NAME_WE)
  set(object ${CMAKE_CURRENT_BINARY_DIR}/wisp_cuda/${name}.o)
  add_custom_command(OUTPUT ${object} DEPENDS ${source} DEPFILE ${object}.d VERBATIM
                     COMMAND ${CCACHE} ${NVCC} ${cuda_flags} -MD -MF ${object}.d -c ${source} -o ${object}
                     COMMENT "Compiling ${name} for GPUs")
  list(APPEND cuda_objects ${object})
endforeach()
file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/wisp_cuda)
# Everything but linking: without CUDA's runtime for the target, the kernels and their host code are still compiled.
add_custom_target(wisp_cuda_objects DEPENDS ${cuda_objects})
if(NOT CUDART_STATIC)
  message(STATUS "without libwisp_cuda.so: libcudart_static.a is missing (CUDA toolkit 12.1 or later); its objects: wisp_cuda_objects")
  return()
endif()
add_library(wisp_cuda MODULE EXCLUDE_FROM_ALL ${cuda_objects})
set_target_properties(wisp_cuda PROPERTIES LINKER_LANGUAGE CXX)
target_link_libraries(wisp_cuda PRIVATE ${CUDART_STATIC} Threads::Threads ${CMAKE_DL_LIBS} rt)
target_link_options(wisp_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:-s)
wisp_harden(wisp_cuda)
