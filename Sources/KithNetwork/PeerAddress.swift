internal import Glibc
internal import NIOCore

/// A host and a port, as in `192.0.2.1:4114`, `[2001:db8::1]:4114`, `[fe80::1%eth0]:4114` or
/// `name.local:4114`.
package struct PeerAddress: Hashable, Comparable, Sendable, CustomStringConvertible {
  /// A name, an IPv4 address, or an IPv6 address without brackets, with any zone.
  package let host: String
  /// Never 0.
  package let port: UInt16

  /// Checks the parts.
  package init(host: String, port: UInt16 = NetworkLimits.defaultPort) throws(PeerAddressError) {
    guard port != 0 else { throw PeerAddressError(text: "\(host):0", problem: .port) }
    let isValid = host.contains(":") ? Self.isIPv6(host) : Self.isName(host)
    guard isValid else { throw PeerAddressError(text: host, problem: .host) }
    self.host = host
    self.port = port
  }

  package init(
    _ text: String, defaultPort: UInt16 = NetworkLimits.defaultPort
  ) throws(PeerAddressError) {
    guard !text.isEmpty else { throw PeerAddressError(text: text, problem: .empty) }
    let host: Substring
    var rest: Substring
    if text.first == "[" {
      guard let end = text.firstIndex(of: "]") else {
        throw PeerAddressError(text: text, problem: .bracket)
      }
      host = text[text.index(after: text.startIndex)..<end]
      rest = text[text.index(after: end)...]
      guard Self.isIPv6(host) else { throw PeerAddressError(text: text, problem: .host) }
    } else {
      let colons = text.count { $0 == ":" }
      if colons > 1 {
        throw PeerAddressError(
          text: text, problem: Self.isIPv6(text) ? .bareIPv6 : .host)
      }
      let end = text.firstIndex(of: ":") ?? text.endIndex
      host = text[..<end]
      rest = text[end...]
      guard Self.isName(host) else { throw PeerAddressError(text: text, problem: .host) }
    }
    self.host = String(host)
    guard !rest.isEmpty else {
      port = defaultPort
      return
    }
    guard rest.removeFirst() == ":", let port = Self.port(rest), port != 0 else {
      throw PeerAddressError(text: text, problem: .port)
    }
    self.port = port
  }

  /// Reads one to five digits; nil for any other text, such as a sign or spaces.
  package static func port(_ text: some StringProtocol) -> UInt16? {
    guard (1...5).contains(text.utf8.count),
      text.utf8.allSatisfy({ (0x30...0x39).contains($0) })
    else { return nil }
    return UInt16(text)
  }

  /// Always with the port.
  package var description: String { IPAddressText.endpoint(host, port) }

  package static func < (left: Self, right: Self) -> Bool {
    (left.host, left.port) < (right.host, right.port)
  }

  /// At most 253 letters, digits, `-`, `_` and dots, without empty labels.
  private static func isName(_ host: some StringProtocol) -> Bool {
    guard (1...253).contains(host.utf8.count) else { return false }
    var labels = host.split(separator: ".", omittingEmptySubsequences: false)
    if labels.count > 1, labels.last?.isEmpty == true { labels.removeLast() }
    return labels.allSatisfy { label in
      (1...63).contains(label.utf8.count)
        && label.utf8.allSatisfy { byte in
          switch byte {
          case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: true
          default: false
          }
        }
    }
  }

  /// Whether a text is an IPv6 address, which may have a zone's name.
  private static func isIPv6(_ host: some StringProtocol) -> Bool {
    let parts = host.split(separator: "%", maxSplits: 1, omittingEmptySubsequences: false)
    guard let address = parts.first,
      case .v6 = try? SocketAddress(ipAddress: String(address), port: 0)
    else { return false }
    guard parts.count == 2 else { return true }
    return (1...15).contains(parts[1].utf8.count)
      && parts[1].utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F && $0 != 0x25 && $0 != 0x5D }
  }
}

package struct PeerAddressError: Error, Hashable, Sendable, CustomStringConvertible {
  package enum Problem: String, Hashable, Sendable {
    case empty
    /// Neither a name nor an address.
    case host
    /// Not a number from 1 to 65535.
    case port
    /// Not closed.
    case bracket
    /// Without brackets.
    case bareIPv6
  }

  package let text: String
  package let problem: Problem

  /// The reason, and the right form.
  package var description: String {
    let reason =
      switch problem {
      case .empty: "the address is empty"
      case .host: "the host is neither a name nor an IP address"
      case .port: "the port is not a number from 1 to 65535"
      case .bracket: "the bracket is not closed"
      case .bareIPv6: "an IPv6 address stands in brackets"
      }
    return "'\(text)': \(reason); write 192.0.2.1:4114, [2001:db8::1]:4114 or name.local:4114"
  }
}

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
  static func endpoint(_ host: String, _ port: some BinaryInteger) -> String {
    host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
  }
}
