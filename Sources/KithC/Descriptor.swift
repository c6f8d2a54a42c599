internal import CLinux
internal import Glibc
internal import Kith

/// A file descriptor that is readable while something waits for the program: an eventfd.
final class Descriptor: Sendable {
  let number: CInt

  init() throws(KithError) {
    number = eventfd(0, CInt(EFD_CLOEXEC | EFD_NONBLOCK))
    guard number >= 0 else {
      throw KithError(
        .inputOutput, "The process has no file descriptor left. Raise its limit, or free tasks.")
    }
  }

  deinit { close(number) }

  /// Makes it readable, after something has come; otherwise not, before what is there is taken.
  func set(_ isReadable: Bool) {
    var count: UInt64 = 1
    // Neither fails for long: a counter at its limit is readable, and one at zero is not.
    _ = isReadable ? write(number, &count, 8) : read(number, &count, 8)
  }

  /// Takes something, and blocks until there is something or the time is over; negative: no limit.
  func take<Something>(
    within milliseconds: CInt, _ take: () -> Something?, unless hasEnded: () -> Bool
  ) -> Something? {
    let deadline = ContinuousClock.now + .milliseconds(Int(milliseconds))
    while true {
      // Before taking: the last thing may come in between.
      let isLast = hasEnded()
      if let something = take() { return something }
      if isLast || milliseconds == 0 { return nil }
      var left: CInt = -1
      if milliseconds > 0 {
        let rest = (deadline - .now).components
        left = CInt(clamping: rest.seconds * 1_000 + rest.attoseconds / 1_000_000_000_000_000 + 1)
        if left <= 0 { return nil }
      }
      var descriptor = pollfd(fd: number, events: Int16(POLLIN), revents: 0)
      // An interrupted wait goes on.
      poll(&descriptor, 1, left)
    }
  }
}
