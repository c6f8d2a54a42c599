#ifndef KITH_CLINUX_H
#define KITH_CLINUX_H

// What Linux offers and Swift's Glibc module leaves out.

#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/types.h>

/// Whether the kernel calls its clock synchronised: adjtimex(2).
static inline int kith_clock_is_synchronised(void) {
  struct timex status = {0};
  int state = adjtimex(&status);
  return state >= 0 && state != TIME_ERROR && (status.status & STA_UNSYNC) == 0;
}

/// The user at the other end of a Unix-domain socket, or -1: unix(7), SO_PEERCRED.
static inline long long kith_peer_user(int descriptor) {
  struct {
    pid_t process;
    uid_t user;
    gid_t group;
  } peer = {0, 0, 0};
  socklen_t size = sizeof peer;
  if (getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return -1;
  return size == sizeof peer ? (long long)peer.user : -1;
}

#endif
