# SPDX-License-Identifier: Apache-2.0
# Runs BENCH once on its smallest cases and checks the JSON in OUT.
cmake_minimum_required(VERSION 3.22)

execute_process(
  COMMAND ${BENCH} --threads 2 --repeats 1 --cases decode-1,1x64 --out ${OUT}
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${BENCH} returned ${result}")
endif()

file(READ ${OUT} text)
foreach(key version benchmark cpu instruction_set threads repeats heads key_dim
    value_dim ggml_version)
  # An error where there is no such member.
  string(JSON value GET ${text} ${key})
endforeach()
string(JSON count LENGTH ${text} cases)
if(NOT count EQUAL 2)
  message(FATAL_ERROR "${count} cases, expected 2")
endif()
foreach(index 0 1)
  foreach(key name op sequences tokens)
    string(JSON value GET ${text} cases ${index} ${key})
  endforeach()
  foreach(key median_ms min_ms p10_ms p90_ms token_us)
    string(JSON value GET ${text} cases ${index} stepgraph ${key})
    if(NOT value GREATER 0)
      message(FATAL_ERROR "case ${index}: ${key} is ${value}")
    endif()
  endforeach()
endforeach()
