import Glibc

/// The three files that a process begins with.
package enum StandardFiles {
  /// Takes the place of those that are closed, so that no database, lock or socket gets the number
  /// of standard output and what is printed is not written into it. Reading and writing fail as
  /// they do with closed files.
  package static func occupy() {
    for file in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(file, F_GETFD) == -1 && errno == EBADF {
      // The lowest free number is this one, as those below it are taken by now.
      _ = open("/dev/null", file == STDIN_FILENO ? O_WRONLY : O_RDONLY)
    }
  }
}
