import Kith

/// The answer to PROPFIND (RFC 4918, section 14.16).
struct Multistatus: Equatable {
  struct Member: Equatable {
    /// The last part of its URL, decoded.
    var name: String
    var isDirectory: Bool
    /// Nil if the server does not say it.
    var bytes: Int?
  }

  var members: [Member] = []

  /// Parses a document.
  ///
  /// Only properties with status 200 count. URLs may be absolute, or begin with another path if the
  /// server is behind a proxy: so only their last part counts.
  ///
  /// - Throws: If the document is no whole multistatus, or says that it leaves members out. At its
  ///   first member beyond the limit, whatever is one.
  init(_ document: [UInt8], limit: Int) throws(XMLScanner.Malformed) {
    var response = Response()
    var properties = Properties()
    var members: [Member] = []
    var isMultistatus = false
    try XMLScanner.forEachElement(
      of: document, limit: (limit + 1) * CarrierLimits.memberElements
    ) { path, text throws(XMLScanner.Malformed) in
      let text = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
      switch path.dropFirst() {
      case []: isMultistatus = path == ["multistatus"]
      case ["response", "href"]: response.href = text
      case ["response", "status"]: response.status = text
      case ["response", "propstat", "prop", "resourcetype", "collection"]:
        properties.isDirectory = true
      case ["response", "propstat", "prop", "getcontentlength"]:
        properties.bytes = Int(text).flatMap { $0 >= 0 ? $0 : nil }
      case ["response", "propstat", "status"]: properties.isFound = Self.isFound(text)
      case ["response", "propstat"]:
        if properties.isFound {
          response.isDirectory = response.isDirectory || properties.isDirectory
          response.bytes = properties.bytes ?? response.bytes
        }
        properties = Properties()
      case ["response"]:
        guard let member = response.member else { throw XMLScanner.Malformed(offset: 0) }
        guard members.count < limit else {
          throw XMLScanner.Malformed(offset: 0, isTooMuch: true)
        }
        members.append(member)
        response = Response()
      default: break
      }
    }
    guard isMultistatus else { throw XMLScanner.Malformed(offset: 0) }
    self.members = members
  }

  private struct Properties {
    var isFound = false
    var isDirectory = false
    var bytes: Int?
  }

  private struct Response {
    var href: String?
    /// For a member without properties. A server that leaves members out has one with status 507.
    var status: String?
    var isDirectory = false
    var bytes: Int?

    /// Nil if it has no URL, or a status that is no success.
    var member: Member? {
      // The root has no last part.
      guard status.map(isFound) ?? true, let href, !href.isEmpty,
        let name = PercentCoding.decode(href.split(separator: "/").last ?? "")
      else { return nil }
      return Member(name: name, isDirectory: isDirectory, bytes: bytes)
    }
  }

  /// Of `HTTP/1.1 200 OK` the second word.
  private static func isFound(_ status: String) -> Bool {
    status.split(separator: " ").dropFirst().first?.first == "2"
  }
}
