# SPDX-License-Identifier: Apache-2.0
# Runs BENCH once with --scaling and checks what it adds to the JSON in OUT.
cmake_minimum_required(VERSION 3.22)

execute_process(
  COMMAND ${BENCH} --threads 2 --repeats 1 --cases decode-1 --scaling 1
    --out ${OUT}
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${BENCH} returned ${result}")
endif()

file(READ ${OUT} text)
string(JSON count LENGTH ${text} scaling)
if(NOT count EQUAL 5)
  message(FATAL_ERROR "${count} cases of scaling, expected 5")
endif()
foreach(index RANGE 4)
  string(JSON name GET ${text} scaling ${index} name)
  foreach(key token_us ratio p10 p90)
    string(JSON value GET ${text} scaling ${index} ${key})
    if(NOT value GREATER 0)
      message(FATAL_ERROR "scaling of ${name}: ${key} is ${value}")
    endif()
  endforeach()
endforeach()
