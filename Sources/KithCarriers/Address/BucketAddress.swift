import Kith

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

  /// Of `s3.eu-central-1.amazonaws.com` the second label; nil for other hosts.
  private static func region(ofHost host: String) -> String? {
    let labels = host.split(separator: ".")
    guard let domain = labels.firstIndex(of: "amazonaws"), domain >= 2, labels[0] == "s3" else {
      return nil
    }
    return String(labels[domain - 1])
  }
}
