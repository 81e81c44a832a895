// SPDX-License-Identifier: Apache-2.0

#define _POSIX_C_SOURCE 200809L

#include "cli/output_file.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/allocator.h"

static sg_status_t io_error(const char* path, const char* what) {
  return sg_status_make(SG_STATUS_IO, "%.200s: cannot %s: %s", path, what,
                        strerror(errno));
}

// The directory that |path| is in.
static sg_status_t directory_of(const char* path, char** out_directory) {
  const char* slash = strrchr(path, '/');
  if (slash == NULL) {
    return sg_allocate_string(sg_allocator_system(), ".", out_directory);
  }
  SG_RETURN_IF_ERROR(
      sg_allocate_string(sg_allocator_system(), path, out_directory));
  // The root keeps its slash.
  size_t length = (size_t)(slash - path);
  (*out_directory)[length == 0 ? 1 : length] = '\0';
  return sg_status_ok();
}

sg_status_t sg_output_file_check(const char* path) {
  struct stat present;
  if (stat(path, &present) == 0 && S_ISDIR(present.st_mode)) {
    errno = EISDIR;
    return io_error(path, "write");
  }
  char* directory;
  SG_RETURN_IF_ERROR(directory_of(path, &directory));
  sg_status_t status = sg_status_ok();
  if (access(directory, W_OK | X_OK) != 0) status = io_error(path, "write");
  sg_release(sg_allocator_system(), directory);
  return status;
}

sg_status_t sg_output_file_open(const char* path, sg_output_file_t* out_file) {
  *out_file = (sg_output_file_t){.path = path};
  struct stat present;
  if (stat(path, &present) == 0 && !S_ISREG(present.st_mode)) {
    out_file->file = fopen(path, "w");
    if (out_file->file == NULL) return io_error(path, "write");
    return sg_status_ok();
  }
  // The process number keeps two runs apart that write the same file.
  const char format[] = "%s.%ld.tmp";
  size_t bytes = strlen(path) + sizeof(format) + 24;
  void* temporary_path;
  SG_RETURN_IF_ERROR(sg_allocate(sg_allocator_system(), "file name", bytes, 1,
                                 &temporary_path));
  snprintf(temporary_path, bytes, format, path, (long)getpid());
  out_file->temporary_path = temporary_path;
  out_file->file = fopen(temporary_path, "w");
  if (out_file->file != NULL) return sg_status_ok();
  sg_status_t status = io_error(path, "write");
  sg_release(sg_allocator_system(), temporary_path);
  out_file->temporary_path = NULL;
  return status;
}

sg_status_t sg_output_file_finish(sg_output_file_t* file, sg_status_t status) {
  if (file->file != NULL) {
    bool failed = ferror(file->file) != 0;
    if ((fclose(file->file) != 0 || failed) && sg_status_is_ok(status)) {
      status = io_error(file->path, "write");
    }
  }
  if (file->temporary_path != NULL) {
    if (sg_status_is_ok(status) &&
        rename(file->temporary_path, file->path) != 0) {
      status = io_error(file->path, "write");
    }
    if (!sg_status_is_ok(status)) (void)remove(file->temporary_path);
    sg_release(sg_allocator_system(), file->temporary_path);
  }
  *file = (sg_output_file_t){0};
  return status;
}
