# SPDX-License-Identifier: Apache-2.0
# cmake --install: the library, the headers that stepgraph.h reaches under
# include/stepgraph, and the tool.

include(GNUInstallDirs)
install(TARGETS stepgraph ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS stepgraph_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

set(headers
  stepgraph.h
  graphs/dump.h
  graphs/kda_step.h
  kernels/chunk_metadata/chunk_metadata.h
  kernels/chunk_metadata/params.h
  kernels/common/batch_tables.h
  kernels/common/kda_args.h
  kernels/gated_norm/gated_norm.h
  kernels/kda_chunk/kda_chunk.h
  kernels/kda_recurrent/kda_recurrent.h
  kernels/short_conv/short_conv.h
  runtime/base/allocator.h
  runtime/base/batch_layout.h
  runtime/base/dtype.h
  runtime/base/kda_geometry.h
  runtime/base/status.h
  runtime/base/verify_layout.h
  runtime/batch.h
  runtime/context.h
  runtime/executor.h
  runtime/hip/hip.h
  runtime/hip/launch.h
  runtime/hip/target.h
  runtime/node_table.h
  runtime/program.h
  runtime/prometheus.h
  runtime/shape_choice.h
  runtime/statistics.h
  schemas/batches.h
  schemas/bundled.h
  schemas/json_writer.h
  schemas/model.h
  schemas/requests.h
  schemas/safetensors.h
  schemas/shapes.h)
if(SG_FLAVOUR_CHOSEN STREQUAL "nvidia")
  # HIP's names for CUDA.
  install(DIRECTORY runtime/hip/nvidia/hip
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepgraph)
endif()
foreach(header ${headers})
  get_filename_component(folder ${header} DIRECTORY)
  install(FILES ${header}
    DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stepgraph/${folder})
endforeach()
