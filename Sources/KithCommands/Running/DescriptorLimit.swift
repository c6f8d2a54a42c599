import Glibc

/// The number of files and connections that this process may have open.
enum DescriptorLimit {
  /// Raises the soft limit to the hard one. The soft one is low because of programs that
  /// use select(2).
  static func raise() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0,
      limit.rlim_cur < limit.rlim_max
    else { return }
    limit.rlim_cur = limit.rlim_max
    _ = setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }
}
