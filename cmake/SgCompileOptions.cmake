# SPDX-License-Identifier: Apache-2.0
# sg_warnings: the warnings that all C code of ours is built with.
# Sanitizers apply to the whole build, libraries and programs alike.

add_library(sg_warnings INTERFACE)
target_compile_options(sg_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wvla -Wformat=2 -Wstrict-prototypes
  -Wmissing-prototypes -Wundef -Wpointer-arith -Wcast-qual)
if(SG_WERROR)
  target_compile_options(sg_warnings INTERFACE -Werror)
endif()

if(SG_SANITIZE)
  add_compile_options(-fsanitize=${SG_SANITIZE} -fno-omit-frame-pointer -g)
  add_link_options(-fsanitize=${SG_SANITIZE})
  if(SG_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
endif()
