import Glibc

/// The three standard files of a process.
package enum StandardFiles {
  /// Opens those that are closed. Otherwise a database, lock or socket could get standard output's
  /// number, and printed text would go into it. Reading and writing fail as with closed files.
  package static func occupy() {
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(file, F_GETFD) == -1 && errno == EBADF {
      // The lowest free number is this one, because the numbers below are in use by now.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
