internal import NIOCore

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#else
  internal import Darwin
#endif

/// The unit of limits by address: an IPv4 address (also mapped), or an IPv6 /64, which one host
/// owns.
struct AddressBucket: Hashable, Sendable {
  private let isIPv4: Bool
  private let bits: UInt64

  /// All addresses without IP share one bucket.
  init(_ address: SocketAddress?) {
    var bytes: [UInt8] = []
    switch address {
    case .v4(let v4):
      bytes = withUnsafeBytes(of: v4.address.sin_addr) { Array($0) }
    case .v6(let v6):
      bytes = withUnsafeBytes(of: v6.address.sin6_addr) { Array($0) }
    case .unixDomainSocket, nil:
      break
    }
    if bytes.count == 16, let mapped = IPAddressText.mappedIPv4(bytes) { bytes = mapped }
    isIPv4 = bytes.count == 4
    bits = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}

enum IPAddressText {
  /// False for an address with a zone.
  static func isIPv6(_ text: String) -> Bool {
    var address = in6_addr()
    return inet_pton(AF_INET6, text, &address) == 1
  }

  /// Returns the IPv4 address within `::ffff:a.b.c.d`, or nil.
  static func mappedIPv4(_ bytes: [UInt8]) -> [UInt8]? {
    let prefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    return bytes.count == 16 && bytes.starts(with: prefix) ? Array(bytes[12...]) : nil
  }

  /// In the form of ``PeerAddress``; a mapped IPv4 address as IPv4.
  static func host(of address: SocketAddress?) -> String? {
    guard let address, let text = address.ipAddress else { return nil }
    if case .v6(let v6) = address {
      let bytes = withUnsafeBytes(of: v6.address.sin6_addr) { Array($0) }
      if let mapped = mappedIPv4(bytes) { return mapped.map(String.init).joined(separator: ".") }
      let scope = v6.address.sin6_scope_id
      if scope != 0 { return "\(text)%\(scope)" }
    }
    return text
  }
}
