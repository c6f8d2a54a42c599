internal import Glibc

/// An interface that is up.
package struct LinkInterface: Hashable, Sendable {
  /// In network byte order.
  package struct Subnet: Hashable, Sendable {
    var address: [UInt8]
    var mask: [UInt8]

    func contains(_ other: [UInt8]) -> Bool {
      other.count == address.count
        && zip(zip(address, other), mask).allSatisfy { ($0.0 & $1) == ($0.1 & $1) }
    }
  }

  var index: UInt32
  package var name: String
  package var isLoopback: Bool
  /// An interface keeps its address when its cable is unplugged.
  package var hasCarrier = true
  /// False for tunnels. Linux's loopback supports multicast without reporting it.
  var takesMulticast: Bool
  package var subnets: [Subnet] = []

  /// None if the system does not report them.
  package static func current() -> [LinkInterface] {
    var first: UnsafeMutablePointer<ifaddrs>?
    guard getifaddrs(&first) == 0 else { return [] }
    defer { freeifaddrs(first) }
    var interfaces: [UInt32: LinkInterface] = [:]
    var next = first
    while let entry = next?.pointee {
      next = entry.ifa_next
      guard let name = entry.ifa_name, entry.ifa_flags & UInt32(IFF_UP) != 0,
        let address = bytes(of: entry.ifa_addr), let mask = bytes(of: entry.ifa_netmask),
        address.count == mask.count
      else { continue }
      let index = if_nametoindex(name)
      guard index != 0 else { continue }
      interfaces[
        index,
        default: LinkInterface(
          index: index, name: String(cString: name),
          isLoopback: entry.ifa_flags & UInt32(IFF_LOOPBACK) != 0,
          hasCarrier: entry.ifa_flags & UInt32(IFF_RUNNING) != 0,
          takesMulticast: entry.ifa_flags & UInt32(IFF_MULTICAST) != 0
            && entry.ifa_flags & UInt32(IFF_POINTOPOINT) == 0)
      ].subnets.append(Subnet(address: address, mask: mask))
    }
    return interfaces.values.sorted { $0.index < $1.index }
  }

  /// Datagrams reach all hosts of the link in these families. Linux sends none over IPv6 on its
  /// loopback.
  var families: [LinkFamily] {
    LinkFamily.allCases.filter { family in
      switch family {
      case .ipv4: (takesMulticast || isLoopback) && subnets.contains { $0.address.count == 4 }
      case .ipv6:
        takesMulticast
          && subnets.contains { Self.isLinkLocal($0.address) && $0.address.count == 16 }
      }
    }
  }

  /// Includes link-local hosts.
  func isOnLink(_ source: [UInt8]) -> Bool {
    Self.isLinkLocal(source) || subnets.contains { $0.contains(source) }
  }

  /// `169.254.0.0/16` or `fe80::/10`.
  private static func isLinkLocal(_ address: [UInt8]) -> Bool {
    switch address.count {
    case 4: address.starts(with: [169, 254])
    case 16: address[0] == 0xFE && address[1] & 0xC0 == 0x80
    default: false
    }
  }

  private static func bytes(of address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
    guard let address else { return nil }
    let raw = UnsafeRawPointer(address)
    switch Int32(address.pointee.sa_family) {
    case AF_INET:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in.self).sin_addr) { Array($0) }
    case AF_INET6:
      return withUnsafeBytes(of: raw.loadUnaligned(as: sockaddr_in6.self).sin6_addr) { Array($0) }
    default: return nil
    }
  }
}

enum LinkFamily: String, CaseIterable, Comparable, Sendable {
  case ipv4 = "IPv4"
  case ipv6 = "IPv6"

  /// IPv4 first.
  static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }
}
