import Glibc

/// A service manager such as systemd: sd_notify(3). Each message is one datagram to the Unix-domain
/// socket in `NOTIFY_SOCKET`; the service ignores its loss.
struct ServiceManager: Sendable {
  static let variable = "NOTIFY_SOCKET"

  private let path: [UInt8]

  /// Nil if no manager wants messages.
  init?(environment: [String: String]) {
    guard let name = environment[Self.variable], name.hasPrefix("/") || name.hasPrefix("@") else {
      return nil
    }
    var bytes = Array(name.utf8)
    // An abstract address: unix(7).
    if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
    path = bytes
  }

  func tellReady(_ status: String) { tell("READY=1\nSTATUS=\(status)\n") }

  func tellStopping() { tell("STOPPING=1\nSTATUS=stopping\n") }

  private func tell(_ text: String) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    guard path.count < MemoryLayout.size(ofValue: address.sun_path) else { return }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path) }
    let size = socklen_t(
      (MemoryLayout.offset(of: \sockaddr_un.sun_path) ?? 2) + path.count + (path[0] == 0 ? 0 : 1))
    let descriptor = socket(
      AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    _ = withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, size)
      }
    }
  }
}
