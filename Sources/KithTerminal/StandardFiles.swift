import Glibc

package enum StandardFiles {
  /// Opens closed standard files. Otherwise a database, lock or socket could get standard output's
  /// number, and printed text would go into it. Reading and writing still fail.
  package static func occupy() {
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(file, F_GETFD) == -1 && errno == EBADF {
      // The lowest free number is this one: the numbers below are in use.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
