#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the host flavour with warnings as errors and runs every test.
# Arguments go to ctest, e.g. -LE slow.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh
cmake --preset host -DSG_WERROR=ON -DSG_TESTS=ON -DSG_BENCH=ON
cmake --build --preset host
exec ctest --test-dir build/host --output-on-failure "$@"
