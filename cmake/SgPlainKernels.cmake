# SPDX-License-Identifier: Apache-2.0
# The portable variant of the host kernels in plain C11, for tests. Programs
# that link with sg_kernels_plain, or sg_kernels_tcc, have its objects before
# the library's archive and so in place of those there. host_isa.c is among
# them and sees no other instruction set: all kernels of such a program are this
# variant.

get_target_property(sources sg_host_kernels_portable SOURCES)
list(APPEND sources common/host_isa.c)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/kernels/)

# By the compiler of everything else, which hides its extensions.
add_library(sg_kernels_plain OBJECT ${sources})
target_include_directories(sg_kernels_plain PRIVATE ${PROJECT_SOURCE_DIR})
target_compile_definitions(sg_kernels_plain PRIVATE
  SG_HOST_ISA=portable SG_HOST_PLAIN_C)
target_compile_options(sg_kernels_plain PRIVATE -O2 -pedantic-errors)
target_link_libraries(sg_kernels_plain PRIVATE sg_warnings)

# By a compiler that has none, where it is installed.
find_program(SG_TCC tcc)
if(SG_TCC)
  foreach(source IN LISTS sources)
    get_filename_component(name ${source} NAME_WE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/tcc_${name}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${SG_TCC} -std=c11 -Wall -DSG_HOST_ISA=portable
        -I${PROJECT_SOURCE_DIR} -MD -MF ${object}.d -c ${source} -o ${object}
      DEPENDS ${source} DEPFILE ${object}.d
      COMMENT "Compiling ${name}.c with tcc" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES
    EXTERNAL_OBJECT TRUE GENERATED TRUE)
  add_custom_target(sg_kernels_tcc_objects DEPENDS ${objects})
  add_library(sg_kernels_tcc INTERFACE)
  add_dependencies(sg_kernels_tcc sg_kernels_tcc_objects)
  target_sources(sg_kernels_tcc INTERFACE ${objects})
  # Its objects do not say that they need no executable stack.
  target_link_options(sg_kernels_tcc INTERFACE -Wl,-z,noexecstack)
endif()
