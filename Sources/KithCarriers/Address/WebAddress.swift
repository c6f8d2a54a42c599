import Glibc
import Kith

/// The parts of an http or https URL.
///
/// Only one way to write each address passes, so that no two parsers can read it differently.
struct WebAddress: Hashable, Sendable {
  var isSecure: Bool
  /// In small letters; an IPv6 address without its brackets.
  var host: String
  /// Nil if it is the scheme's own.
  var port: Int?
  /// Percent-encoded, without empty segments, `.` or `..`.
  var segments: [String]
  /// In the order of the URL, not decoded: no value that is allowed needs it.
  var query: [Parameter] = []

  struct Parameter: Hashable, Sendable {
    var name: String
    var value: String
  }

  init(_ text: String) throws(CarrierFailure) {
    var rest: Substring
    if let secure = text.dropping(scheme: "https://") {
      (isSecure, rest) = (true, secure)
    } else if let plain = text.dropping(scheme: "http://") {
      (isSecure, rest) = (false, plain)
    } else {
      throw CarrierFailure(.unexpected, "An address begins with https:// or http://.")
    }
    let authority = rest.prefix { !"/?#".contains($0) }
    guard !authority.contains("@") else {
      throw CarrierFailure(
        .unexpected,
        "An address has no user or password; they are asked for, or read from a file.")
    }
    (host, port) = try Self.split(authority)
    if port == (isSecure ? 443 : 80) { port = nil }
    rest = rest.dropFirst(authority.count)
    guard !rest.contains("#") else {
      throw CarrierFailure(.unexpected, "An address has no “#”.")
    }
    let path = rest.prefix { $0 != "?" }
    segments = path.split(separator: "/").map(String.init)
    guard segments.allSatisfy(Self.isSegment) else {
      throw CarrierFailure(
        .unexpected, "In the path “\(path)”, percent-encode all but letters, digits and “-._~”.")
    }
    for part in rest.dropFirst(path.count).dropFirst().split(separator: "&") {
      let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
      guard pair.count == 2, pair.allSatisfy(ObjectNames.isObject) else {
        throw CarrierFailure(.unexpected, "The parameter “\(part)” is not understood.")
      }
      query.append(Parameter(name: String(pair[0]), value: String(pair[1])))
    }
  }

  /// Scheme, host and port, as in a URL.
  var origin: String {
    (isSecure ? "https://" : "http://") + authority
  }

  /// As in the header `Host`.
  var authority: String {
    let host = host.contains(":") ? "[\(host)]" : host
    return port.map { "\(host):\($0)" } ?? host
  }

  /// The path; empty, or beginning with a slash and without one at its end.
  var path: String { segments.map { "/" + $0 }.joined() }

  var text: String {
    let query = query.map { "\($0.name)=\($0.value)" }.joined(separator: "&")
    return origin + (segments.isEmpty ? "/" : path) + (query.isEmpty ? "" : "?" + query)
  }

  private static func split(
    _ authority: Substring
  ) throws(CarrierFailure) -> (String, Int?) {
    let host: Substring
    var rest: Substring
    if authority.hasPrefix("[") {
      host = authority.dropFirst().prefix { $0 != "]" }
      rest = authority.dropFirst(host.count + 1)
      guard rest.hasPrefix("]") else {
        throw CarrierFailure(.unexpected, "The host has no “]”.")
      }
      rest = rest.dropFirst()
    } else {
      host = authority.prefix { $0 != ":" }
      rest = authority.dropFirst(host.count)
    }
    let name = host.lowercased()
    guard HostRules.isHost(name), name.contains(":") == authority.hasPrefix("[") else {
      throw CarrierFailure(.unexpected, "“\(host)” is no host.")
    }
    if rest.isEmpty { return (name, nil) }
    guard rest.hasPrefix(":"), rest.count <= 6, rest.dropFirst().allSatisfy(\.isNumber),
      let port = Int(rest.dropFirst()), (1...65_535).contains(port)
    else { throw CarrierFailure(.unexpected, "“\(rest)” is no port.") }
    return (name, port)
  }

  private static func isSegment(_ segment: String) -> Bool {
    segment != "." && segment != ".." && PercentCoding.isEncoded(segment)
      && PercentCoding.decode(segment).map { $0 != "." && $0 != ".." } ?? false
  }
}

extension String {
  fileprivate func dropping(scheme: String) -> Substring? {
    prefix(scheme.count).lowercased() == scheme ? dropFirst(scheme.count) : nil
  }
}

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

/// Percent-encoding of URLs (RFC 3986, section 2.1).
enum PercentCoding {
  private static let digits = Array("0123456789ABCDEF".utf8)

  /// Encodes all but letters, digits and `-._~`, as signatures of AWS demand.
  /// A slash stays one if `keepsSlash`, as in paths.
  static func encode(_ text: some StringProtocol, keepsSlash: Bool = false) -> String {
    var bytes: [UInt8] = []
    for byte in text.utf8 {
      if isUnreserved(byte) || keepsSlash && byte == UInt8(ascii: "/") {
        bytes.append(byte)
      } else {
        bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
      }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Nil if an escape is broken, or the bytes are not UTF-8 or hold a zero.
  static func decode(_ text: some StringProtocol) -> String? {
    var bytes: [UInt8] = []
    var rest = text.utf8[...]
    while let byte = rest.popFirst() {
      guard byte == UInt8(ascii: "%") else {
        bytes.append(byte)
        continue
      }
      let digits = rest.prefix(2).compactMap { Character(UnicodeScalar($0)).hexDigitValue }
      guard digits.count == 2 else { return nil }
      bytes.append(UInt8(digits[0] << 4 | digits[1]))
      rest = rest.dropFirst(2)
    }
    return bytes.contains(0) ? nil : String(validating: bytes, as: UTF8.self)
  }

  /// Whether each byte may stand in a segment of a path as it is.
  static func isEncoded(_ text: String) -> Bool {
    decode(text) != nil
      && text.utf8.allSatisfy {
        isUnreserved($0) || "%!$&'()*+,;=:@".utf8.contains($0)
      }
  }

  private static func isUnreserved(_ byte: UInt8) -> Bool {
    ObjectNames.isPart(byte) || ".~".utf8.contains(byte)
  }
}
