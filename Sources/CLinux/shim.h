#ifndef KITH_CLINUX_H
#define KITH_CLINUX_H

// Declarations of Linux that Swift's Glibc module leaves out.

#include <linux/rtnetlink.h>
#include <malloc.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <unistd.h>

/// Whether the kernel calls its clock synchronised: adjtimex(2).
static inline int kith_clock_is_synchronised(void) {
  struct timex status = {0};
  int state = adjtimex(&status);
  return state >= 0 && state != TIME_ERROR && (status.status & STA_UNSYNC) == 0;
}

/// A socket that can be read when a link or an address of this host changed: rtnetlink(7). -1: none can
/// be opened.
static inline int kith_open_link_changes(void) {
  struct sockaddr_nl groups = {
      .nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK | RTMGRP_IPV4_IFADDR | RTMGRP_IPV6_IFADDR};
  int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
  if (descriptor >= 0 && bind(descriptor, (struct sockaddr *)&groups, sizeof groups) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
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
