internal import CLinux
internal import Glibc
internal import KithCore
internal import KithCrypto
internal import KithStorage

enum SystemClock {
  /// This run of the host; nil: unknown.
  static let boot: BootID? = {
    guard let id = try? SmallFile.read("/proc/sys/kernel/random/boot_id", atMost: 64), id.count > 32
    else { return nil }
    return BootID(Blake2b.digest128(Array("kith boot v1\u{0}".utf8) + id))
  }()

  /// The monotonic time includes sleep.
  static func now() -> Instant {
    Instant(
      wallMilliseconds: milliseconds(CLOCK_REALTIME),
      monotonicMilliseconds: milliseconds(CLOCK_BOOTTIME))
  }

  /// Whether the kernel's clock is synchronised (adjtimex(2)).
  static var isSynchronised: Bool {
    kith_clock_is_synchronised() != 0
  }

  /// Whether the host has a clock that runs while it is off; true if unknown.
  static let hasHardware: Bool = {
    guard access("/sys/class/rtc", F_OK) == 0 else { return true }
    return access("/sys/class/rtc/rtc0", F_OK) == 0 || access("/sys/class/rtc/rtc1", F_OK) == 0
  }()

  private static func milliseconds(_ clock: clockid_t) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(max(0, time.tv_sec)) * 1000 + UInt64(time.tv_nsec) / 1_000_000
  }
}
