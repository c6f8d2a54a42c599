import Kith
import KithCommands
import KithCore
import KithTerminal
import KithValues
import NIOCore

/// Values, changes and writes as the page gets them. Values are texts of canonical JSON, because
/// numbers of JavaScript would lose 64-bit integers and `1.0`.
enum PageDocuments {
  /// A larger value is sent only on demand.
  static let shownBytes = 4_096

  /// `isWhole`: send the value whatever its size.
  static func entry(_ key: String, _ value: PropertyListValue, isWhole: Bool = false) -> Document {
    .object(["key": .string(key)].merging(members(value, isWhole: isWhole)) { key, _ in key })
  }

  private static func removed(_ key: String) -> Document {
    .object(["key": .string(key), "removed": .bool(true)])
  }

  private static func members(
    _ value: PropertyListValue, isWhole: Bool = false
  ) -> [String: Document?] {
    // A value of a store was encoded before.
    let bytes = (try? EncodedValue(value).size) ?? 0
    let isIncluded = isWhole || bytes <= shownBytes
    return [
      "bytes": .int(bytes), "json": isIncluded ? .string(ValueJSON.text(value)) : nil,
      "type": .string(value.typeName),
    ]
  }

  static func values(_ values: [KeyValueStore.Key: PropertyListValue], of store: String) -> Document
  {
    .object([
      "entries": .list(values.entries.map { entry($0.key, $0.value) }), "store": .string(store),
    ])
  }

  static func change(_ change: KeyValueStore.Change, of store: String) -> Document {
    .object([
      "items": .list(change.items.map { item in write(item.key.text, item.new) }),
      "joined": change.isJoined ? .bool(true) : nil, "reason": .string(change.reason.rawValue),
      "store": .string(store),
    ])
  }

  private static func write(
    _ key: String, _ value: PropertyListValue?, isWhole: Bool = false
  ) -> Document {
    value.map { entry(key, $0, isWhole: isWhole) } ?? removed(key)
  }

  static func unshown(
    _ hidden: [KeyValueStore.HiddenEntry], _ refusals: [KeyValueStore.Refusal], of store: String,
    isWhole: Bool
  ) -> Document {
    .object([
      "hidden": .list(
        hidden.map { hidden in
          .object(
            members(hidden.value, isWhole: isWhole).merging([
              "device": .string(hidden.device.hex), "key": .string(hidden.key.text),
              "writtenMilliseconds": .int(hidden.writtenMilliseconds),
            ]) { member, _ in member })
        }),
      "refusals": .list(
        refusals.map { refusal in
          .object([
            "number": .int(refusal.number), "reason": .string("\(refusal.reason)"),
            "writes": .list(refusal.writes.map { write($0.key.text, $0.value, isWhole: isWhole) }),
            "writtenMilliseconds": .int(refusal.writtenMilliseconds),
          ])
        }),
      "store": .string(store),
    ])
  }

  static func past(_ past: KeyValueStore.PastValue, isWhole: Bool) -> Document {
    let value: [String: Document?] =
      past.value.map { members($0, isWhole: isWhole) } ?? ["missing": .bool(true)]
    return .object(
      value.merging([
        "endedBy": past.endedBy.map { .string($0.hex) },
        "endedMilliseconds": .int(past.endedMilliseconds), "key": .string(past.key.text),
        "number": .int(past.number),
      ]) { member, _ in member })
  }

  static func device(_ device: PairingDevice) -> Document {
    .object([
      "address": .string(device.address), "fingerprint": .string(device.fingerprint),
      "id": .string(device.id.hex), "name": .string(device.name),
    ])
  }
}

/// A file of the page. All are linked into the program.
struct PageFile {
  let type: String
  let bytes: [UInt8]

  /// Nil if the page has no such file.
  init?(path: String) {
    let name = path == "/" ? "/index.html" : path
    guard let bytes = Self.files[name],
      let type = name.split(separator: ".").last.flatMap({ Self.types[String($0)] })
    else { return nil }
    self.type = "\(type); charset=utf-8"
    self.bytes = bytes
  }

  private static let types = [
    "css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml",
  ]

  static let files: [String: [UInt8]] = [
    "/account.js": PackageResources.account_js,
    "/api.js": PackageResources.api_js,
    "/app.js": PackageResources.app_js,
    "/carriers.js": PackageResources.carriers_js,
    "/devices.js": PackageResources.devices_js,
    "/dom.js": PackageResources.dom_js,
    "/editor.js": PackageResources.editor_js,
    "/icon.svg": PackageResources.icon_svg,
    "/index.html": PackageResources.index_html,
    "/json.js": PackageResources.json_js,
    "/keys.js": PackageResources.keys_js,
    "/map.js": PackageResources.map_js,
    "/page.css": PackageResources.page_css,
    "/page.js": PackageResources.page_js,
    "/pairing.js": PackageResources.pairing_js,
    "/records.js": PackageResources.records_js,
    "/stores.js": PackageResources.stores_js,
    "/values.js": PackageResources.values_js,
    "/verdict.js": PackageResources.verdict_js,
    "/writes.js": PackageResources.writes_js,
  ]
}

/// A request that was not performed, as the page gets it.
struct PageFailure: Error {
  var code: String
  var message: String
  /// As the exit status of a command.
  var status: CommandStatus
  /// The status of the HTTP answer.
  var http: Int
  /// The methods that the path has, if it has another; the answer's field `Allow`.
  var allowedMethods: String?

  /// The HTTP status follows from the command's, unless another is given.
  init(
    _ status: CommandStatus, code: String? = nil, _ message: String,
    http: Int? = nil
  ) {
    self.code = code ?? "\(status)"
    // Commands put `kith:` before it.
    self.message = message.prefix(1).uppercased() + message.dropFirst()
    self.status = status
    self.http = http ?? Self.http(status)
  }

  private static func http(_ status: CommandStatus) -> Int {
    switch status {
    case .usage: 400
    case .notFound: 404
    case .refused: 422
    case .directory, .passphrase, .unexpected: 409
    case .unreachable: 503
    default: 500
    }
  }

  init(_ error: any Error) {
    switch error {
    case let failure as PageFailure: self = failure
    case let error as KithError:
      let key = error.key.map { "\"\(Columns.printable($0.text, limit: 80))\": " } ?? ""
      self.init(
        CommandStatus(error.code), code: error.code.description, key + error.description)
    case is NIOTooManyBytesError:
      self.init(.usage, "the request is too long", http: 413)
    case is CancellationError: self.init(.failure, "the program ends")
    default: self.init(.failure, "\(error)")
    }
  }

  static let noCredentials = PageFailure(
    .refused, code: "credentials",
    "the page's address works once, and only while kith web runs: run kith web again",
    http: 401)

  static let foreign = PageFailure(
    .refused, code: "foreign", "only the page itself may ask this, at the address of kith web",
    http: 403)

  static func wrongMethod(allowed methods: [String]) -> PageFailure {
    let allowed = methods.joined(separator: ", ")
    var failure = PageFailure(.usage, "this path has another method: \(allowed)", http: 405)
    failure.allowedMethods = allowed
    return failure
  }

  var document: Document {
    .object([
      "code": .string(code), "message": .string(message), "status": .int(Int(status.rawValue)),
    ])
  }
}
