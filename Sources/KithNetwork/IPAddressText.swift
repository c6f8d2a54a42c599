internal import NIOCore

/// Addresses of connections as text.
enum IPAddressText {
  /// Returns the IPv4 address within `::ffff:a.b.c.d`, or nil.
  static func mappedIPv4(_ bytes: [UInt8]) -> [UInt8]? {
    let prefix: [UInt8] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF]
    return bytes.count == 16 && bytes.starts(with: prefix) ? Array(bytes[12...]) : nil
  }

  /// In the form of ``PeerAddress``; a mapped IPv4 address as IPv4.
  static func host(of address: SocketAddress?) -> String? {
    guard let address, let text = address.ipAddress else { return nil }
    guard case .v6(let v6) = address else { return text }
    if let mapped = mappedIPv4(address.ipBytes) {
      return mapped.map(String.init).joined(separator: ".")
    }
    let scope = v6.address.sin6_scope_id
    return scope == 0 ? text : "\(text)%\(scope)"
  }

  /// An IPv6 address in brackets.
  static func place(_ host: String, _ port: some BinaryInteger) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
