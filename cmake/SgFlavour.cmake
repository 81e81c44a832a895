# SPDX-License-Identifier: Apache-2.0
# sg_hip: the HIP header, runtime library and macros of the chosen flavour.
# hip_object(OUT file.hip): compiles device code to one object file.

set(ROCM_PATH "/opt/rocm" CACHE PATH "Root of a ROCm installation")
set(SG_AMD_TARGETS "gfx90a,gfx942,gfx950" CACHE STRING
    "AMD targets, comma separated")
# Version 5 loads on ROCm 5.7 to 7; version 6 only from 6.2.
set(SG_AMD_CODE_OBJECT_VERSION 5 CACHE STRING "AMD code object version")

find_path(SG_HIP_INCLUDE_DIR hip/hip_runtime_api.h HINTS ${ROCM_PATH}/include)

if(SG_FLAVOUR STREQUAL "auto")
  if(EXISTS ${ROCM_PATH}/lib/libamdhip64.so)
    set(SG_FLAVOUR_CHOSEN amd)
  elseif(EXISTS /dev/nvidiactl AND EXISTS /usr/local/cuda/bin/nvcc)
    set(SG_FLAVOUR_CHOSEN nvidia)
  else()
    set(SG_FLAVOUR_CHOSEN host)
  endif()
else()
  set(SG_FLAVOUR_CHOSEN ${SG_FLAVOUR})
endif()
message(STATUS "stepgraph flavour: ${SG_FLAVOUR_CHOSEN}")

add_library(sg_hip INTERFACE)
if(SG_FLAVOUR_CHOSEN MATCHES "^(host|amd)$")
  if(NOT SG_HIP_INCLUDE_DIR)
    message(FATAL_ERROR "hip/hip_runtime_api.h not found: install "
      "libamdhip64-dev, or set ROCM_PATH to a ROCm installation")
  endif()
  target_compile_definitions(sg_hip INTERFACE __HIP_PLATFORM_AMD__=1)
  if(NOT SG_HIP_INCLUDE_DIR STREQUAL "/usr/include")
    target_include_directories(sg_hip SYSTEM INTERFACE ${SG_HIP_INCLUDE_DIR})
  endif()
endif()

if(SG_FLAVOUR_CHOSEN STREQUAL "host")
  set(THREADS_PREFER_PTHREAD_FLAG ON)
  find_package(Threads REQUIRED)
  target_link_libraries(sg_hip INTERFACE Threads::Threads m)
elseif(SG_FLAVOUR_CHOSEN STREQUAL "amd")
  find_program(SG_HIP_CLANG NAMES amdclang++ clang++-22 clang++
    HINTS ${ROCM_PATH}/bin ${ROCM_PATH}/llvm/bin REQUIRED)
  find_library(SG_AMDHIP64 amdhip64 HINTS ${ROCM_PATH}/lib REQUIRED)
  target_compile_definitions(sg_hip INTERFACE SG_FLAVOUR_IS_AMD=1)
  target_link_libraries(sg_hip INTERFACE ${SG_AMDHIP64} m)
  find_path(SG_ROCTX_INCLUDE_DIR roctracer/roctx.h HINTS ${ROCM_PATH}/include)
  find_library(SG_ROCTX roctx64 HINTS ${ROCM_PATH}/lib)
  if(SG_ROCTX AND SG_ROCTX_INCLUDE_DIR)
    target_compile_definitions(sg_hip INTERFACE SG_RANGES_ROCTX=1)
    target_include_directories(sg_hip SYSTEM INTERFACE ${SG_ROCTX_INCLUDE_DIR})
    target_link_libraries(sg_hip INTERFACE ${SG_ROCTX})
  endif()
  set(SG_HIP_COMPILE ${SG_HIP_CLANG} -x hip -std=c++17 -O3 -fPIC -nogpuinc
    -nogpulib -mcode-object-version=${SG_AMD_CODE_OBJECT_VERSION}
    --offload-arch=${SG_AMD_TARGETS} -D__HIP_PLATFORM_AMD__=1
    -I${PROJECT_SOURCE_DIR} -Wall -Wextra)
  if(NOT SG_HIP_INCLUDE_DIR STREQUAL "/usr/include")
    list(APPEND SG_HIP_COMPILE -isystem ${SG_HIP_INCLUDE_DIR})
  endif()
elseif(SG_FLAVOUR_CHOSEN STREQUAL "nvidia")
  find_package(CUDAToolkit 12 REQUIRED)
  target_compile_definitions(sg_hip INTERFACE SG_FLAVOUR_IS_NVIDIA=1
    __HIP_PLATFORM_NVIDIA__=1)
  target_include_directories(sg_hip INTERFACE
    ${PROJECT_SOURCE_DIR}/runtime/hip/nvidia)
  target_include_directories(sg_hip SYSTEM INTERFACE
    ${CUDAToolkit_INCLUDE_DIRS})
  target_link_libraries(sg_hip INTERFACE CUDA::cudart_static m)
  # NVTX is header-only and part of the toolkit.
  target_compile_definitions(sg_hip INTERFACE SG_RANGES_NVTX=1)
  set(SG_HIP_COMPILE ${CUDAToolkit_NVCC_EXECUTABLE} -x cu -std=c++17 -O3
    -gencode=arch=compute_90a,code=sm_90a
    -Xcompiler=-fPIC,-fno-exceptions,-fno-rtti,-fno-threadsafe-statics
    -D__HIP_PLATFORM_NVIDIA__=1 -I${PROJECT_SOURCE_DIR}/runtime/hip/nvidia
    -I${PROJECT_SOURCE_DIR})
else()
  message(FATAL_ERROR
    "SG_FLAVOUR is '${SG_FLAVOUR}': expected auto, host, amd or nvidia")
endif()

function(hip_object out_object source)
  string(REPLACE "/" "_" name ${source})
  set(object ${CMAKE_BINARY_DIR}/hip_objects/${name}.o)
  add_custom_command(OUTPUT ${object}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/hip_objects
    COMMAND ${SG_HIP_COMPILE} -MD -MF ${object}.d -MT ${object}
      -c ${PROJECT_SOURCE_DIR}/${source} -o ${object}
    DEPENDS ${PROJECT_SOURCE_DIR}/${source} DEPFILE ${object}.d
    COMMENT "Compiling device code ${source} (${SG_FLAVOUR_CHOSEN})" VERBATIM)
  set_source_files_properties(${object} PROPERTIES
    EXTERNAL_OBJECT TRUE GENERATED TRUE)
  set(${out_object} ${object} PARENT_SCOPE)
endfunction()
