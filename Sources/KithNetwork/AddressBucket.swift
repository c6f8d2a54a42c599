internal import NIOCore

/// The unit of limits by address: an IPv4 address (also mapped), or an IPv6 /64, which one host
/// owns.
struct AddressBucket: Hashable, Sendable {
  private let isIPv4: Bool
  private let bits: UInt64

  /// All addresses without IP share one bucket.
  init(_ address: SocketAddress?) {
    let own = address?.ipBytes ?? []
    let bytes = IPAddressText.mappedIPv4(own) ?? own
    isIPv4 = bytes.count == 4
    bits = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
