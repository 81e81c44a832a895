# SPDX-License-Identifier: Apache-2.0
# sg_add_test(NAME name SOURCES file... [LABELS label...] [LIBRARIES lib...])
# A cmocka program that ctest runs. Exit code 77 means skipped (no GPU).

find_path(SG_CMOCKA_INCLUDE_DIR cmocka.h REQUIRED)
find_library(SG_CMOCKA cmocka REQUIRED)

function(sg_add_test)
  cmake_parse_arguments(test "" "NAME" "SOURCES;LABELS;LIBRARIES" ${ARGN})
  add_executable(${test_NAME} ${test_SOURCES})
  target_include_directories(${test_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${test_NAME} SYSTEM PRIVATE
    ${SG_CMOCKA_INCLUDE_DIR})
  target_link_libraries(${test_NAME} PRIVATE
    stepgraph sg_warnings ${test_LIBRARIES} ${SG_CMOCKA})
  add_test(NAME ${test_NAME} COMMAND ${test_NAME}
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${test_NAME} PROPERTIES
    SKIP_RETURN_CODE 77 TIMEOUT 900 LABELS "${test_LABELS}")
endfunction()
