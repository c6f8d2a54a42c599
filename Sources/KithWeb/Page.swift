import Foundation
import Hummingbird
import Kith
import KithCommands
import KithCore
import NIOCore
import ServiceLifecycle

/// The requests of the page, which are those of the commands: each asks the node that has the
/// directory open.
struct Page: Sendable {
  /// A value of 1 MiB, in base64 or with escapes; a settings file.
  static let bodyBytes = 8 << 20
  /// A body without values.
  static let smallBodyBytes = 64 << 10
  private static let longestSync = 60.0
  private static let mostPastValues = 1_000

  let accounts: Accounts
  let usualStore: StoreIdentifier
  let pairing: Pairing

  init(accounts: Accounts, usualStore: StoreIdentifier) {
    self.accounts = accounts
    self.usualStore = usualStore
    pairing = Pairing(accounts)
  }

  /// The document of `kith status --json`, and what the page shows beside it.
  func document(_ status: NodeStatus) -> Document {
    guard case .members(let members) = Document.of(status) else { return .members([]) }
    return .versioned(
      .members(
        members + [
          ("hostName", .string(DeviceName.ofHost)), ("isOwnNode", .bool(accounts.node != nil)),
          ("now", .value(.integer(Int64(PageDocuments.now)))),
          ("software", .string(Software.version)), ("store", .string(usualStore.rawValue)),
        ]))
  }

  func answer(_ request: Request) async throws -> Response {
    let query = Query(request)
    switch (request.method, request.uri.path) {
    case (.get, "/api/status"): return Response(document(try await accounts.report()))
    case (.get, "/api/events"): return events(try query.store(), request.body)
    case (.get, "/api/value"): return try await value(query)
    case (.get, "/api/unshown"): return try await unshown(query)
    case (.get, "/api/history"): return try await history(query)
    case (.get, "/api/export"): return try await export(query.text("store"))
    case (.get, "/api/devices/dependents"):
      let dependents = try await accounts.dependents(of: query.device())
      return Response(.object(["devices": .strings(dependents.map(\.hex))]))
    case (.post, "/api/write"): return try await write(request.decoded(upTo: Self.bodyBytes))
    case (.post, "/api/unshown/again"): return try await writeAgain(request.decoded())
    case (.post, "/api/unshown/clear"): return try await clear(request.decoded())
    case (.post, "/api/undo"): return try await undo(request.decoded())
    case (.post, "/api/import"): return try await importFile(request, query)
    case (.post, "/api/sync"): return try await sync(request.decoded())
    case (.post, "/api/devices/rename"): return try await rename(request.decoded())
    case (.post, "/api/devices/revoke"): return try await revoke(request.decoded())
    case (.post, "/api/devices/meet"): return try await meet(request.decoded())
    case (.post, "/api/invite"): return try invite()
    case (.post, "/api/join"): return try await join(request.decoded())
    case (.post, "/api/pairing/answer"): return try await answerPairing(request.decoded())
    case (.post, "/api/pairing/cancel"):
      pairing.cancel()
      return Response(.members([]))
    case (.post, "/api/account/create"): return try await createAccount(request.decoded())
    default: throw PageFailure(.notFound, "there is no such request")
    }
  }

  private func events(_ store: String, _ body: RequestBody) -> Response {
    Response(
      status: .ok, headers: [.contentType: "text/event-stream; charset=utf-8"],
      body: ResponseBody { writer in
        // Only reading notices that the browser closes the connection.
        try await body.consumeWithCancellationOnInboundClose { _ in
          try await PageEvents(page: self, store: store).write(to: &writer)
        }
        try await writer.finish(nil)
      })
  }
}

// MARK: Values

extension Page {
  private struct Write: Decodable {
    struct Item: Decodable {
      var key: String
      /// Nil: the key is removed, or expected to be missing.
      var json: String?

      func write() throws -> (key: String, value: PropertyListValue?) {
        do {
          return (key, try json.map { try ValueJSON.value($0) })
        } catch {
          throw PageFailure(.refused, "\"\(key)\": \(error)")
        }
      }
    }
    var store: String
    var create: Bool?
    var writes: [Item]
    var expecting: [Item]?
  }

  private func write(_ body: Write) async throws -> Response {
    let node = try accounts.nodeAccess
    try await check(body.store, at: node, creates: body.create ?? false)
    let writes = try body.writes.map { try $0.write() }
    let expected = try (body.expecting ?? []).map { try $0.write() }
    try await node.write(writes, in: body.store, expecting: expected)
    return Response(PageDocuments.written(writes))
  }

  /// A mistyped store would stay on all devices for ever.
  private func check(_ store: String, at node: any NodeAccess, creates: Bool) async throws {
    guard !creates, store != usualStore.rawValue else { return }
    guard try await node.report().stores.contains(where: { $0.identifier.rawValue == store }) else {
      throw PageFailure(.notFound, "there is no store \"\(store)\" here")
    }
  }

  private func value(_ query: Query) async throws -> Response {
    let (store, key) = (try query.text("store"), try query.text("key"))
    guard let value = try await accounts.nodeAccess.value(forKey: key, in: store) else {
      throw PageFailure(.notFound, "\"\(key)\" is missing in the store \"\(store)\"")
    }
    return Response(PageDocuments.entry(key, value, isWhole: true))
  }

  private func history(_ query: Query) async throws -> Response {
    let (store, key) = (try query.text("store"), try? query.text("key"))
    let limit = min(max(0, query.number("limit") ?? 20), Self.mostPastValues)
    let values = try await accounts.nodeAccess.history(of: key, in: store, limit: limit)
    return Response(
      .object([
        "store": .string(store),
        "values": .list(values.map { PageDocuments.past($0, isWhole: query.isWhole) }),
      ]))
  }

  private struct Undo: Decodable {
    var store: String
    var key: String
    var to: UInt64?
  }

  private func undo(_ body: Undo) async throws -> Response {
    let node = try accounts.nodeAccess
    guard let past = try await node.undo(body.key, to: body.to, in: body.store) else {
      throw PageFailure(.notFound, "nothing to undo: no such value of \"\(body.key)\" is kept")
    }
    return Response(PageDocuments.past(past, isWhole: false))
  }

  private func export(_ store: String) async throws -> Response {
    let entries = try await accounts.nodeAccess.values(in: store).sorted { $0.key < $1.key }
    let document = ExportDocument(store: store, entries: entries.map { ($0.key.text, $0.value) })
    return Response(
      status: .ok, headers: [.contentType: "application/json; charset=utf-8"],
      body: ResponseBody(byteBuffer: ByteBuffer(string: document.versioned.text() + "\n")))
  }

  private func importFile(_ request: Request, _ query: Query) async throws -> Response {
    let (store, prefix) = (try query.text("store"), (try? query.text("prefix")) ?? "")
    let bytes = try await request.body.collect(upTo: Self.bodyBytes)
    let file: StoreImport
    do {
      file = try StoreImport(Data(bytes.readableBytesView), prefix: prefix)
    } catch {
      throw PageFailure(.refused, "\(error)")
    }
    let node = try accounts.nodeAccess
    try await check(store, at: node, creates: false)
    let isDryRun = try query.text("dryRun") == "true"
    let summary =
      isDryRun
      ? try await file.rehearse(store, at: node) : try await file.write(to: store, at: node)
    return Response(summary.document)
  }

  // MARK: Values that are not shown

  private func unshown(_ query: Query) async throws -> Response {
    let (node, store) = (try accounts.nodeAccess, try query.text("store"))
    return Response(
      PageDocuments.unshown(
        try await node.hiddenEntries(in: store),
        try await node.refusals(in: store, takingThrough: nil), of: store,
        isWhole: query.isWhole))
  }

  private struct Refused: Decodable {
    var store: String
    var number: UInt64
  }

  /// A refusal stays listed if others come before it: they are cleared in order.
  private func writeAgain(_ body: Refused) async throws -> Response {
    let node = try accounts.nodeAccess
    let refusals = try await node.refusals(in: body.store, takingThrough: nil)
    guard let refusal = refusals.first(where: { $0.number == body.number }) else {
      throw PageFailure(.notFound, "this refusal was cleared meanwhile")
    }
    let writes = refusal.writes.map { (key: $0.key, value: $0.value) }
    try await node.write(writes, in: body.store)
    if refusals.first?.number == body.number {
      _ = try await node.refusals(in: body.store, takingThrough: body.number)
    }
    return Response(PageDocuments.written(writes))
  }

  private struct Cleared: Decodable {
    var store: String
    var through: UInt64
  }

  private func clear(_ body: Cleared) async throws -> Response {
    let node = try accounts.nodeAccess
    let refusals = try await node.refusals(in: body.store, takingThrough: body.through)
    return Response(
      .object(["cleared": .int(refusals.count { $0.number <= body.through })]))
  }

  private struct Sync: Decodable {
    var store: String
    var seconds: Double?
  }

  private func sync(_ body: Sync) async throws -> Response {
    let node = try accounts.nodeAccess
    let seconds = min(max(0, body.seconds ?? 5), Self.longestSync)
    let report = try await node.synchronize(body.store, timeout: .seconds(seconds))
    let devices = try await node.report().devices
    let names = report.incomplete.map { id in devices.first { $0.id == id }?.name ?? id.hex }
    return Response(
      .object([
        "complete": .bool(report.isComplete), "incomplete": .strings(names),
        "store": .string(body.store), "unpublished": .bool(report.hasUnpublishedWrites),
      ]))
  }
}

// MARK: Devices

extension Page {
  private struct Rename: Decodable {
    var device: String
    var name: String
  }

  private func rename(_ body: Rename) async throws -> Response {
    try await accounts.rename(Query.device(body.device), to: body.name)
    return Response(.members([]))
  }

  private struct Revoke: Decodable {
    var device: String
    var keep: [String]
  }

  private func revoke(_ body: Revoke) async throws -> Response {
    let staying = try body.keep.map { try Query.device($0) }
    try await accounts.revoke(Query.device(body.device), keeping: Set(staying))
    return Response(.members([]))
  }

  private struct Meet: Decodable { var address: String }

  private func meet(_ body: Meet) async throws -> Response {
    try await accounts.nodeAccess.meet(body.address)
    return Response(.members([]))
  }

  private func invite() throws -> Response {
    try requireAccount(true)
    try pairing.begin(.invite)
    return Response(.members([]))
  }

  private struct Join: Decodable {
    var code: String
    var name: String
    var address: String?
  }

  private func join(_ body: Join) async throws -> Response {
    try requireAccount(false)
    try pairing.begin(.join(code: body.code, name: body.name, address: body.address))
    return Response(.members([]))
  }

  private struct Answer: Decodable {
    var accept: Bool
    var device: String
  }

  private func answerPairing(_ body: Answer) async throws -> Response {
    pairing.answer(body.accept, about: try Query.device(body.device))
    return Response(.members([]))
  }

  private struct Create: Decodable { var name: String }

  private func createAccount(_ body: Create) async throws -> Response {
    try requireAccount(false)
    let made = try await accounts.createAccount(name: body.name)
    return Response(
      .object([
        "account": .string(made.summary.account.hex),
        "device": .object([
          "fingerprint": .string(Fingerprint(of: made.summary.device).description),
          "id": .string(made.summary.device.hex), "name": .string(made.summary.name),
        ]),
        "recoveryKey": .string(made.recoveryKey),
      ]))
  }

  private func requireAccount(_ isNeeded: Bool) throws(PageFailure) {
    guard (accounts.signedIn != nil) != isNeeded else { return }
    throw PageFailure(
      .directory,
      isNeeded
        ? "nobody is signed in here; create an account, or join one"
        : "somebody is signed in here; sign out first: kith account sign-out")
  }
}

/// The query of a request.
struct Query {
  private let request: Request

  init(_ request: Request) { self.request = request }

  func text(_ name: String) throws -> String {
    guard let text = request.uri.queryParameters[name[...]] else {
      throw PageFailure(.usage, "the parameter \"\(name)\" is missing")
    }
    return String(text)
  }

  func store() throws -> String {
    guard let store = StoreIdentifier(try text("store")) else {
      throw PageFailure(.usage, "this is no store's name")
    }
    return store.rawValue
  }

  func number(_ name: String) -> Int? { (try? text(name)).flatMap { Int($0) } }

  /// Whether also large values are sent.
  var isWhole: Bool { (try? text("whole")) == "true" }

  func device() throws -> DeviceID { try Self.device(text("device")) }

  static func device(_ hex: String) throws -> DeviceID {
    guard let device = DeviceID(hex: hex) else {
      throw PageFailure(.usage, "this is no device's id")
    }
    return device
  }
}

extension Request {
  func decoded<Body: Decodable>(upTo limit: Int = Page.smallBodyBytes) async throws -> Body {
    let bytes = try await body.collect(upTo: limit)
    do {
      return try JSONDecoder().decode(Body.self, from: Data(bytes.readableBytesView))
    } catch {
      throw PageFailure(.usage, "the request cannot be read: \(error)")
    }
  }
}
