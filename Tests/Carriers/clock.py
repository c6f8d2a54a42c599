"""Hours that pass at once: a library before the C library adds a number, which the tests raise, to what
the clocks of the devices' processes say. With it, the kernel calls their clock synchronised if asked."""

import shutil
import struct
import subprocess
import unittest

import rig

SOURCE = r"""
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static volatile long *ahead;

__attribute__((constructor)) static void begin(void) {
  const char *path = getenv("CARRIERS_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof(long), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) ahead = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int status = syscall(SYS_clock_gettime, clock, now);
  int passes = clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME
    || clock == CLOCK_MONOTONIC_RAW;
  if (status == 0 && ahead && passes) now->tv_sec += *ahead;
  return status;
}

// The kernel knows nothing of it.
int timerfd_settime(int file, int flags, const struct itimerspec *at, struct itimerspec *before) {
  struct itimerspec real = *at;
  if (ahead && flags & TFD_TIMER_ABSTIME && real.it_value.tv_sec > *ahead)
    real.it_value.tv_sec -= *ahead;
  return syscall(SYS_timerfd_settime, file, flags, &real, before);
}

int adjtimex(struct timex *status) {
  if (!getenv("CARRIERS_SYNCHRONISED")) return syscall(SYS_adjtimex, status);
  memset(status, 0, sizeof *status);
  return TIME_OK;
}
"""


class Clock:
    """The clock of all devices of a test."""

    def __init__(self, test, is_synchronised=False):
        compiler = shutil.which("clang") or shutil.which("cc")
        if not compiler:
            raise unittest.SkipTest("there is no C compiler")
        source, library = test.folder / "clock.c", test.folder / "clock.so"
        source.write_text(SOURCE)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
        self.file = test.folder / "clock"
        self.ahead = 0
        self.file.write_bytes(struct.pack("=q", 0))
        variables = {"LD_PRELOAD": str(library), "CARRIERS_CLOCK": str(self.file)}
        if is_synchronised:
            variables["CARRIERS_SYNCHRONISED"] = "1"
        rig.ENVIRONMENT.update(variables)
        test.addCleanup(lambda: [rig.ENVIRONMENT.pop(name) for name in variables])

    def pass_time(self, seconds):
        self.ahead += seconds
        with open(self.file, "r+b") as file:
            file.write(struct.pack("=q", self.ahead))
