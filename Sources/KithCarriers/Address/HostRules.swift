import Glibc

/// Which hosts are names, and which lead to this computer or its link.
enum HostRules {
  /// A name of RFC 1123 (underscores are allowed too), or an address as inet_pton(3) reads it. Other
  /// spellings of IPv4 addresses, such as `127.1` and `0x7f000001`, are none.
  static func isHost(_ host: String) -> Bool {
    if addressBytes(host) != nil { return true }
    let labels = host.split(separator: ".", omittingEmptySubsequences: false)
    guard host.utf8.count <= 253, let last = labels.last, last.contains(where: \.isLetter),
      !last.hasPrefix("0x")
    else { return false }
    return labels.allSatisfy { label in
      (1...63).contains(label.utf8.count) && label.first != "-" && label.last != "-"
        && ObjectNames.isObject(label)
    }
  }

  /// Names of this computer, names that any computer of the link may answer for, and addresses as in
  /// ``isLocal(address:)``.
  static func isLocal(_ host: String) -> Bool {
    if let bytes = addressBytes(host) { return isLocal(address: bytes) }
    let labels = host.split(separator: ".")
    return ["localhost", "local", "localdomain"].contains(labels.last ?? "")
      || labels.count == 1
  }

  /// Whether credentials may go there without TLS.
  static func isLoopback(_ host: String) -> Bool {
    guard let bytes = addressBytes(host) else { return host == "localhost" }
    return bytes.count == 4 ? bytes[0] == 127 : bytes == [UInt8](repeating: 0, count: 15) + [1]
  }

  /// Loopback, link-local, unspecified, multicast and broadcast addresses, also inside IPv6: 4 or 16
  /// bytes in network order.
  static func isLocal(address bytes: [UInt8]) -> Bool {
    if bytes.count == 4 {
      switch bytes[0] {
      case 0, 127, 224...: return true
      case 169: return bytes[1] == 254
      default: return false
      }
    }
    // IPv4 inside IPv6: mapped, compatible (with :: and ::1), and translated (64:ff9b::/96).
    let isTranslated =
      Array(bytes[..<12]) == [0, 0x64, 0xFF, 0x9B] + [UInt8](repeating: 0, count: 8)
    let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == bytes[11]
    if isTranslated || isMapped && [0, 0xFF].contains(bytes[10]) {
      return isLocal(address: Array(bytes[12...]))
    }
    // fe80::/10 and ff00::/8.
    return bytes[0] == 0xFF || bytes[0] == 0xFE && bytes[1] & 0xC0 == 0x80
  }

  /// 4 or 16 bytes in network order; nil if the host is a name.
  static func addressBytes(_ host: String) -> [UInt8]? {
    for (family, count) in [(AF_INET, 4), (AF_INET6, 16)] {
      var bytes = [UInt8](repeating: 0, count: count)
      if inet_pton(family, host, &bytes) == 1 { return bytes }
    }
    return nil
  }
}
