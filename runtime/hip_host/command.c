// SPDX-License-Identifier: Apache-2.0

#include "runtime/hip_host/command.h"

#include <stddef.h>
#include <stdlib.h>

#include "runtime/hip_host/calls.h"

enum { BLOCK_COMMAND_COUNT = 8192 };

typedef struct command_block_t command_block_t;
struct command_block_t {
  command_block_t* next;
  // Commands of |commands| that were never handed out are above this one.
  size_t used_count;
  sg_host_command_t commands[BLOCK_COMMAND_COUNT];
};

// The newest block, whose |next| are all used up.
static command_block_t* blocks;
static sg_host_command_t* free_commands;

static bool grow(void) {
  command_block_t* block =
      aligned_alloc(alignof(command_block_t), sizeof(*block));
  if (block == NULL) return false;
  // The first block is part of setting up, not a growth.
  if (blocks != NULL) sg_host_count_pool_growth();
  block->next = blocks;
  block->used_count = 0;
  blocks = block;
  return true;
}

sg_host_command_t* sg_host_command_acquire(void) {
  sg_host_command_t* command = free_commands;
  if (command != NULL) {
    free_commands = command->next;
    return command;
  }
  bool is_full = blocks == NULL || blocks->used_count == BLOCK_COMMAND_COUNT;
  if (is_full && !grow()) return NULL;
  return &blocks->commands[blocks->used_count++];
}

void sg_host_command_release(sg_host_command_t* command) {
  command->next = free_commands;
  free_commands = command;
}
