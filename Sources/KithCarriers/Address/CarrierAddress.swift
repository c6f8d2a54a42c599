package import Kith

/// The storage that a carrier uses: its kind, and its path or URL.
///
/// It holds no secret: see ``CarrierCredentials``.
package struct CarrierAddress: Hashable, Sendable {
  /// The kinds of storage, by their names on the command line.
  package enum Kind: String, CaseIterable, Sendable {
    case folder
    case webdav
    case s3
  }

  /// The kind of storage.
  package let kind: Kind

  /// An absolute path, or a URL in its normal form.
  ///
  /// | kind | form |
  /// | --- | --- |
  /// | folder | `/PATH` |
  /// | webdav | `https://HOST[:PORT]/PATH` |
  /// | s3 | `https://ENDPOINT/BUCKET[/PREFIX][?region=R][&style=host]` |
  package let location: String

  /// The parts of the URL; nil for a folder.
  let url: WebAddress?
  /// The parts of an S3 URL; nil for other kinds.
  let bucket: BucketAddress?

  /// Parses a location as a person or another device gave it.
  ///
  /// - Throws: If it is none, or has a user or password in it.
  package init(_ kind: Kind, _ location: String) throws(CarrierFailure) {
    guard location.utf8.count <= CarrierLimits.addressBytes else {
      throw CarrierFailure(
        .unexpected, "An address has at most \(CarrierLimits.addressBytes) bytes.")
    }
    self.kind = kind
    switch kind {
    case .folder:
      self.location = try Self.folder(location)
      url = nil
      bucket = nil
    case .webdav:
      let url = try WebAddress(location)
      guard url.query.isEmpty else {
        throw CarrierFailure(.unexpected, "A WebDAV address has no “?”.")
      }
      self.location = url.text
      self.url = url
      bucket = nil
    case .s3:
      let url = try WebAddress(location)
      self.url = url
      bucket = try BucketAddress(url)
      self.location = url.text
    }
  }

  /// Whether a password goes there only as a digest, at which those who listen on the network can
  /// guess.
  package var givesAwayDigest: Bool {
    guard kind == .webdav, let url else { return false }
    return !url.isSecure && !HostRules.isLoopback(url.host)
  }

  /// The reason why a device does not use an address that came from another device; nil if it does.
  ///
  /// Such an address could make this device send requests to services of its own network.
  package var refusalFromAccount: CarrierFailure? {
    guard let url else {
      return CarrierFailure(.untrusted, "A folder is not shared with other devices.")
    }
    guard url.isSecure else {
      return CarrierFailure(.untrusted, "An address from another device begins with https.")
    }
    guard !HostRules.isLocal(url.host) else {
      return CarrierFailure(
        .untrusted,
        "The host “\(url.host)” of an address from another device is on this computer or link.")
    }
    return nil
  }

  private static func folder(_ path: String) throws(CarrierFailure) -> String {
    guard path.hasPrefix("/") else {
      throw CarrierFailure(.unexpected, "A folder's path begins with “/”.")
    }
    guard !path.utf8.contains(where: { $0 < 0x20 || $0 == 0x7F }) else {
      throw CarrierFailure(.unexpected, "A folder's path has no control characters.")
    }
    let names = path.split(separator: "/")
    guard !names.contains(".."), !names.contains(".") else {
      throw CarrierFailure(.unexpected, "A folder's path has no “.” or “..”.")
    }
    guard !names.isEmpty else {
      throw CarrierFailure(.unexpected, "The root directory cannot be a carrier.")
    }
    return "/" + names.joined(separator: "/")
  }
}

/// The parts of an S3 URL.
struct BucketAddress: Hashable, Sendable {
  var endpoint: WebAddress
  var bucket: String
  /// Not encoded; empty, or with a slash at its end.
  var prefix: String
  var region: String
  var style: S3Carrier.Style

  init(_ url: WebAddress) throws(CarrierFailure) {
    guard let bucket = url.segments.first, Self.isBucket(bucket) else {
      throw CarrierFailure(
        .unexpected, "An S3 address has a bucket: https://ENDPOINT/BUCKET[/PREFIX].")
    }
    self.bucket = bucket
    prefix = try Self.prefix(url.segments.dropFirst())
    endpoint = url
    endpoint.segments = []
    endpoint.query = []
    var region: String?
    var style: S3Carrier.Style?
    for parameter in url.query {
      switch (parameter.name, parameter.value) {
      case ("region", let value) where region == nil: region = value
      case ("style", "path") where style == nil: style = .path
      case ("style", "host") where style == nil: style = .host
      default:
        throw CarrierFailure(
          .unexpected, "An S3 address may have ?region=NAME and &style=host or path, once each.")
      }
    }
    self.region = region ?? Self.region(ofHost: url.host) ?? "us-east-1"
    self.style = style ?? .path
  }

  private static func prefix(
    _ segments: ArraySlice<String>
  ) throws(CarrierFailure) -> String {
    let names = segments.compactMap { PercentCoding.decode($0) }
    guard names.allSatisfy({ !$0.contains("/") }) else {
      throw CarrierFailure(.unexpected, "A part of an S3 prefix has no “/” in it.")
    }
    return names.map { $0 + "/" }.joined()
  }

  /// The naming rules of Amazon, which stay clear of encodings.
  private static func isBucket(_ name: String) -> Bool {
    (3...63).contains(name.utf8.count)
      && name.utf8.allSatisfy { $0 == UInt8(ascii: ".") || ObjectNames.isPart($0) }
  }

  /// The second label of hosts like `s3.eu-central-1.amazonaws.com`; nil for others.
  private static func region(ofHost host: String) -> String? {
    let labels = host.split(separator: ".")
    guard let domain = labels.firstIndex(of: "amazonaws"), domain >= 2, labels[0] == "s3" else {
      return nil
    }
    return String(labels[domain - 1])
  }
}
