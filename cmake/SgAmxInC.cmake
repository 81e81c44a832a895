# SPDX-License-Identifier: Apache-2.0
# The kernels for AMX with its instructions in C, for tests on processors that
# do not have them. Programs that link with sg_kernels_amx_in_c have its objects
# before the library's archive and so in place of those there.

get_target_property(sources sg_host_kernels_amx SOURCES)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/kernels/)
get_target_property(definitions sg_host_kernels_amx COMPILE_DEFINITIONS)
# Not AMX's own, so that none of its instructions comes in.
get_target_property(options sg_host_kernels_avx512 COMPILE_OPTIONS)

add_library(sg_kernels_amx_in_c OBJECT ${sources})
target_include_directories(sg_kernels_amx_in_c PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(sg_kernels_amx_in_c PRIVATE ${definitions})
target_compile_options(sg_kernels_amx_in_c PRIVATE ${options}
  -include ${PROJECT_SOURCE_DIR}/tests/kernels/amx_in_c.h)
target_link_libraries(sg_kernels_amx_in_c PRIVATE sg_warnings)
target_sources(sg_kernels_amx_in_c INTERFACE
  ${PROJECT_SOURCE_DIR}/tests/kernels/host_amx_in_c.c)
target_compile_definitions(sg_kernels_amx_in_c INTERFACE SG_TEST_AMX_IN_C)
