#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Builds the host flavour and replays a small trace of requests through the
# model "tiny", each step verified. Needs no GPU.
set -eu
cd "$(dirname "$0")/.."

scripts/setup.sh
echo "demo: building"
log=$(mktemp)
build() {
  cmake --preset host -DSG_TESTS=OFF -DSG_BENCH=OFF &&
    cmake --build --preset host --target stepgraph_cli
}
if ! build >"$log" 2>&1; then
  cat "$log" >&2
  rm -f "$log"
  exit 1
fi
rm -f "$log"
echo "demo: replaying cli/demo/requests.jsonl"
exec build/host/cli/stepgraph replay --model tiny --shapes demo \
  --requests cli/demo/requests.jsonl --verify "$@"
