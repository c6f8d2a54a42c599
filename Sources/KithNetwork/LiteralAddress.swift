internal import Glibc
internal import NIOCore

extension SocketAddress {
  /// Returns the IP address in a host's text, with its zone; nil for a name.
  ///
  /// No resolver is used: without an IPv6 network it returns no IPv6 address, not even `::`.
  static func literal(_ host: String, port: Int) -> SocketAddress? {
    let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    guard let text = parts.first,
      let address = try? SocketAddress(ipAddress: String(text), port: port)
    else { return nil }
    guard parts.count == 2 else { return address }
    let index = UInt32(parts[1]) ?? if_nametoindex(String(parts[1]))
    return index == 0 ? nil : address.onLink(index)
  }

  /// In network byte order; empty without an IP address.
  var ipBytes: [UInt8] {
    switch self {
    case .v4(let v4): withUnsafeBytes(of: v4.address.sin_addr) { Array($0) }
    case .v6(let v6): withUnsafeBytes(of: v6.address.sin6_addr) { Array($0) }
    case .unixDomainSocket: []
    }
  }

  func onLink(_ index: UInt32) -> SocketAddress {
    guard case .v6(let v6) = self else { return self }
    var address = v6.address
    address.sin6_scope_id = index
    return SocketAddress(address, host: "")
  }
}
