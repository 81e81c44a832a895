# SPDX-License-Identifier: Apache-2.0
# sg_embed(out_source symbol file...): generates a C file with the contents of
# |file...| (paths from the calling folder) as an array |symbol| of
# sg_bundled_file_t, named by their stems, and its length |symbol|_count.

function(sg_embed out_source symbol)
  set(files "")
  foreach(file IN LISTS ARGN)
    list(APPEND files ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  endforeach()
  set(source ${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c)
  add_custom_command(OUTPUT ${source}
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${source} -DSYMBOL=${symbol}
      "-DFILES=${files}" -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding ${symbol}" VERBATIM)
  # A target of another folder does not see the command by itself.
  add_custom_target(${symbol}_source DEPENDS ${source})
  add_dependencies(stepgraph ${symbol}_source)
  set(${out_source} ${source} PARENT_SCOPE)
endfunction()
