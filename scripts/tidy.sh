#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Runs clang-tidy over the C files of every room, with the compile commands of
# a build folder: scripts/tidy.sh build/host
set -eu
cd "$(dirname "$0")/.."
build=${1:-build/host}

# Assertions count. One file a call: given several, version 14 mistakes their
# va_lists.
git ls-files '*.c' | while read -r file; do
  # Files of another flavour have no command in this build.
  if grep -q "/$file\"" "$build/compile_commands.json"; then
    echo "$file"
  fi
done | xargs -n 1 -P "$(nproc)" clang-tidy --quiet \
  --extra-arg=-UNDEBUG -p "$build"
