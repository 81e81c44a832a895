#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
#
# Installs what building and testing the host flavour needs on Debian and
# Ubuntu, as far as it is missing. Says what it does; does nothing when all is
# there. Further packages may be named as arguments.
set -eu

packages="gcc cmake ninja-build libamdhip64-dev libjansson-dev libcmocka-dev
  graphviz python3 python3-jsonschema tcc $*"

if ! command -v dpkg-query >/dev/null 2>&1; then
  echo "setup: not a Debian or Ubuntu system; these packages or their" \
    "counterparts are needed:" $packages
  exit 0
fi

missing=""
for package in $packages; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || :)
  [ "$status" = installed ] || missing="$missing $package"
done
if [ -z "$missing" ]; then
  echo "setup: every package is installed"
  exit 0
fi

if [ "$(id -u)" = 0 ]; then
  as_root=""
elif command -v sudo >/dev/null 2>&1; then
  as_root="sudo"
else
  echo "setup: missing$missing; install them as root, or install sudo" >&2
  exit 1
fi
echo "setup: installing$missing"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  $as_root env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >>"$log" 2>&1
}
# The index of packages is often stale or absent in a fresh container.
if install update && install install -y --no-install-recommends $missing; then
  echo "setup: done"
else
  cat "$log" >&2
  echo "setup: installing$missing failed" >&2
  exit 1
fi
