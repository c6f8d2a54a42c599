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
