#ifndef KITH_CLINUX_H
#define KITH_CLINUX_H

// Declarations of Linux that Swift's Glibc module leaves out.

#include <malloc.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/timex.h>

/// Whether the kernel calls its clock synchronised: adjtimex(2).
static inline int kith_clock_is_synchronised(void) {
  struct timex status = {0};
  int state = adjtimex(&status);
  return state >= 0 && state != TIME_ERROR && (status.status & STA_UNSYNC) == 0;
}

/// Gives free memory back to the system: malloc_trim(3).
static inline void kith_give_memory_back(void) { malloc_trim(0); }

// Actions of a child before its program begins: posix_spawn(3). glibc declares them to GNU programs only.
int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *actions, int from);
int posix_spawn_file_actions_addchdir_np(
    posix_spawn_file_actions_t *actions, const char *directory);

// A pipe whose ends no child gets: pipe(2).
int pipe2(int ends[2], int flags);

// Takes the calling thread into another namespace: setns(2).
int setns(int descriptor, int kind);

#endif
