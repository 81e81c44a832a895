# SPDX-License-Identifier: Apache-2.0
# sg_host_kernels(source... AMX source...): compiles the sources once for each
# instruction set of kernels/common/host_isa.h and adds the objects to the
# library. AMX takes those that have a form for it, where the compiler knows it.

include(CheckCSourceCompiles)

# Whether compiler, assembler and system know AMX.
function(sg_check_amx out_variable flags)
  list(JOIN flags " " CMAKE_REQUIRED_FLAGS)
  check_c_source_compiles("
    #include <immintrin.h>
    #include <sys/syscall.h>
    int main(void) { _tile_zero(0); return SYS_arch_prctl == 0; }"
    ${out_variable})
endfunction()

function(sg_host_kernels)
  cmake_parse_arguments(arg "" "" "AMX" ${ARGN})
  set(isas portable)
  set(flags_portable "")
  set(flags_avx2 -mavx2 -mfma)
  set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl
    -mprefer-vector-width=512)
  set(flags_amx ${flags_avx512} -mavx512bf16 -mamx-tile -mamx-bf16)
  if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
    list(APPEND isas avx2 avx512)
    sg_check_amx(SG_HAS_AMX "${flags_amx}")
    if(SG_HAS_AMX)
      list(APPEND isas amx)
      target_compile_definitions(stepgraph PRIVATE SG_HOST_HAS_AMX=1)
    endif()
  endif()
  foreach(isa IN LISTS isas)
    set(objects sg_host_kernels_${isa})
    if(isa STREQUAL "amx")
      add_library(${objects} OBJECT ${arg_AMX})
      target_compile_definitions(${objects} PRIVATE SG_HOST_FOR_AMX=1)
    else()
      add_library(${objects} OBJECT ${arg_UNPARSED_ARGUMENTS} ${arg_AMX})
    endif()
    target_include_directories(${objects} PRIVATE ${PROJECT_SOURCE_DIR})
    target_compile_definitions(${objects} PRIVATE SG_HOST_ISA=${isa})
    # Optimised in every build: these are inner loops, and unoptimised they
    # would make tests unbearably slow. Contraction, which -std=c11 turns off,
    # makes multiply-adds; the other two let selects become vector code and
    # change no value.
    target_compile_options(${objects} PRIVATE -O3 -ffp-contract=fast
      -fno-math-errno -fno-trapping-math ${flags_${isa}})
    target_link_libraries(${objects} PRIVATE sg_warnings)
    target_sources(stepgraph PRIVATE $<TARGET_OBJECTS:${objects}>)
  endforeach()
endfunction()
