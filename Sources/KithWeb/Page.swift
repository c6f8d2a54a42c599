#if Web
  import FoundationEssentials
  import HTTPTypes
  import Hummingbird
  import Kith
  import KithCommands
  import KithCore
  import KithValues
  import NIOCore

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
    private let streams = OpenStreams()

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
            ("now", .value(.integer(Int64(Moment.now)))),
            ("software", .string(Software.version)), ("store", .string(usualStore.rawValue)),
            ("storesInPart", .strings(status.storesInPart.map(\.rawValue))),
          ]))
    }

    func answer(_ request: Request) async throws -> Response {
      let path = request.uri.path
      if let answer = answering(request.method, path) { return try await answer(request) }
      let methods = [HTTPRequest.Method.get, .post].filter { answering($0, path) != nil }
      guard methods.isEmpty else { throw PageFailure.wrongMethod(allowed: methods.map(\.rawValue)) }
      throw PageFailure(.notFound, "there is no such request")
    }

    /// Answers requests of a method and path; nil if there are none.
    private func answering(
      _ method: HTTPRequest.Method, _ path: String
    ) -> ((Request) async throws -> Response)? {
      switch (method, path) {
      case (.get, "/api/status"):
        return { _ in Response(document(try await accounts.status())) }
      case (.get, "/api/events"): return { try events($0.store(), $0.body) }
      case (.get, "/api/value"): return { try await value($0) }
      case (.get, "/api/unshown"): return { try await unshown($0) }
      case (.get, "/api/history"): return { try await history($0) }
      case (.get, "/api/export"): return { try await export($0.store()) }
      case (.get, "/api/devices/dependents"): return { try await dependents($0.text("device")) }
      case (.post, "/api/write"):
        return { try await done(write($0.decoded(upTo: Self.bodyBytes))) }
      case (.post, "/api/unshown/again"): return { try await done(writeAgain($0.decoded())) }
      case (.post, "/api/unshown/clear"): return { try await done(clear($0.decoded())) }
      case (.post, "/api/undo"): return { try await undo($0.decoded()) }
      case (.post, "/api/import"): return { try await importFile($0) }
      case (.post, "/api/sync"): return { try await sync($0.decoded()) }
      case (.post, "/api/devices/rename"): return { try await done(rename($0.decoded())) }
      case (.post, "/api/devices/revoke"): return { try await done(revoke($0.decoded())) }
      case (.post, "/api/devices/meet"): return { try await meet($0.decoded()) }
      case (.post, "/api/devices/forget"): return { try await done(forget($0.decoded())) }
      case (.post, "/api/invite"): return { _ in try done(invite()) }
      case (.post, "/api/join"): return { try await done(join($0.decoded())) }
      case (.post, "/api/pairing/answer"): return { try await done(answerPairing($0.decoded())) }
      case (.post, "/api/pairing/cancel"): return { _ in done(pairing.cancel()) }
      case (.get, "/api/accounts"): return { _ in try await knownAccounts() }
      case (.post, "/api/account/create"): return { try await done(createAccount($0.decoded())) }
      case (.post, "/api/account/sign-in"): return { try await done(signIn($0.decoded())) }
      default: return nil
      }
    }

    /// An answer without members.
    private func done(_: Void) -> Response { Response(.members([])) }

    private func events(_ store: String, _ body: RequestBody) throws -> Response {
      guard let stream = streams.open() else {
        throw PageFailure(
          .refused, code: "windows",
          "\(OpenStreams.limit) others are visible, and a browser has connections for no more: "
            + "close or hide one", http: 429)
      }
      return Response(
        status: .ok, headers: [.contentType: "text/event-stream; charset=utf-8"],
        body: ResponseBody { writer in
          defer { withExtendedLifetime(stream) {} }
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
      var store: PageStore
      var create: Bool?
      var writes: [Item]
      var expecting: [Item]?
    }

    private func write(_ body: Write) async throws {
      let node = try await accounts.nodeAccess
      try await check(body.store.name, at: node, creates: body.create ?? false)
      let expected = try (body.expecting ?? []).map { try $0.write() }
      try await node.write(
        body.writes.map { try $0.write() }, in: body.store.name, expecting: expected)
    }

    /// A mistyped store would stay on all devices for ever.
    private func check(_ store: String, at node: any NodeAccess, creates: Bool) async throws {
      guard !creates, store != usualStore.rawValue else { return }
      guard try await node.status().stores.contains(where: { $0.identifier.rawValue == store })
      else {
        throw PageFailure(.notFound, "there is no store \"\(store)\" here")
      }
    }

    private func value(_ request: Request) async throws -> Response {
      let (store, key) = (try request.store(), try request.text("key"))
      guard let value = try await accounts.nodeAccess.value(forKey: key, in: store) else {
        throw PageFailure(.notFound, "\"\(key)\" is missing in the store \"\(store)\"")
      }
      return Response(PageDocuments.entry(key, value, isWhole: true))
    }

    private func history(_ request: Request) async throws -> Response {
      let (store, key) = (try request.store(), try? request.text("key"))
      let limit = min(max(0, request.number("limit") ?? 20), Self.mostPastValues)
      let values = try await accounts.nodeAccess.history(of: key, in: store, limit: limit)
      return Response(
        .object([
          "store": .string(store),
          "values": .list(values.map { PageDocuments.past($0, isWhole: request.isWhole) }),
        ]))
    }

    private struct Undo: Decodable {
      var store: PageStore
      var key: String
      var to: UInt64?
    }

    private func undo(_ body: Undo) async throws -> Response {
      let node = try await accounts.nodeAccess
      guard
        let past = try await node.undo(.key(body.key, to: body.to), in: body.store.name).first
      else {
        throw PageFailure(.notFound, "nothing to undo: no such value of \"\(body.key)\" is kept")
      }
      return Response(PageDocuments.past(past, isWhole: false))
    }

    private func export(_ store: String) async throws -> Response {
      let shown = try await accounts.nodeAccess.shown(in: store)
      // As `kith export` ends with an error, after it has printed what there is.
      guard !shown.isLacking else {
        throw PageFailure(
          .failure,
          "a part of the store was damaged on this disk, and no other device has given it back yet; "
            + "kith export prints the rest")
      }
      let document = ExportDocument(store: store, entries: shown.values.entries)
      return Response(
        status: .ok, headers: [.contentType: "application/json; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: document.versioned.text() + "\n")))
    }

    private func importFile(_ request: Request) async throws -> Response {
      let (store, prefix) = (try request.store(), (try? request.text("prefix")) ?? "")
      let bytes = try await request.body.collect(upTo: Self.bodyBytes)
      let file: ImportedFile
      do {
        file = try ImportedFile(Data(bytes.readableBytesView), prefix: prefix)
      } catch {
        throw PageFailure(.refused, "\(error)")
      }
      let node = try await accounts.nodeAccess
      try await check(store, at: node, creates: false)
      let isDryRun = try request.text("dryRun") == "true"
      let summary =
        isDryRun
        ? try await file.rehearse(store, at: node) : try await file.write(to: store, at: node)
      return Response(summary.document)
    }

    // MARK: Values that are not shown

    private func unshown(_ request: Request) async throws -> Response {
      let (node, store) = (try await accounts.nodeAccess, try request.store())
      return Response(
        PageDocuments.unshown(
          try await node.hiddenEntries(in: store),
          try await node.refusals(in: store, takingThrough: nil), of: store,
          isWhole: request.isWhole))
    }

    private struct Refused: Decodable {
      var store: PageStore
      var number: UInt64
    }

    /// A refusal stays listed if others come before it: they are cleared in order.
    private func writeAgain(_ body: Refused) async throws {
      let node = try await accounts.nodeAccess
      let refusals = try await node.refusals(in: body.store.name, takingThrough: nil)
      guard let refusal = refusals.first(where: { $0.number == body.number }) else {
        throw PageFailure(.notFound, "this refusal was cleared meanwhile")
      }
      try await node.write(refusal.writes.map { ($0.key.text, $0.value) }, in: body.store.name)
      if refusals.first?.number == body.number {
        _ = try await node.refusals(in: body.store.name, takingThrough: body.number)
      }
    }

    private struct Cleared: Decodable {
      var store: PageStore
      var through: UInt64
    }

    private func clear(_ body: Cleared) async throws {
      _ = try await accounts.nodeAccess.refusals(in: body.store.name, takingThrough: body.through)
    }

    private struct Sync: Decodable {
      var store: PageStore
      var seconds: Double?
    }

    private func sync(_ body: Sync) async throws -> Response {
      let node = try await accounts.nodeAccess
      let seconds = min(max(0, body.seconds ?? 5), Self.longestSync)
      let report = try await node.waitUntilSynced(body.store.name, timeout: .seconds(seconds))
      return Response(report.document(store: body.store.name, status: try await node.status()))
    }
  }

  /// The requests about devices and the account.
  extension Page {
    func dependents(_ device: String) async throws -> Response {
      let dependents = try await accounts.dependents(of: DeviceID(ofPage: device))
      return Response(.object(["devices": .strings(dependents.map(\.hex))]))
    }

    func knownAccounts() async throws -> Response {
      let known = try await Accounts.known(accounts.configuration)
      return Response(AccountsReport(accounts: known).document)
    }

    struct Rename: Decodable {
      var device: String
      var name: String
    }

    func rename(_ body: Rename) async throws {
      try DeviceName.check(body.name)
      try await accounts.rename(DeviceID(ofPage: body.device), to: body.name)
    }

    struct Revoke: Decodable {
      var device: String
      var keep: [String]
    }

    func revoke(_ body: Revoke) async throws {
      let staying = try body.keep.map(DeviceID.init(ofPage:))
      try await accounts.revoke(DeviceID(ofPage: body.device), keeping: Set(staying))
    }

    struct Meet: Decodable { var address: String }

    /// Answers with the address, and what came of the first call.
    func meet(_ body: Meet) async throws -> Response {
      Response(.of(try await accounts.nodeAccess.meet(body.address)))
    }

    func forget(_ body: Meet) async throws {
      try await accounts.nodeAccess.forget(address: body.address)
    }

    func invite() throws {
      try requireAccount(true)
      try pairing.begin(.invite)
    }

    struct Join: Decodable {
      var code: String
      var name: String
      var address: String?
    }

    func join(_ body: Join) throws {
      try requireAccount(false)
      try DeviceName.check(body.name)
      try pairing.begin(.join(code: body.code, name: body.name, address: body.address))
    }

    struct Answer: Decodable {
      var accept: Bool
      var device: String
    }

    func answerPairing(_ body: Answer) throws {
      pairing.answer(body.accept, about: try DeviceID(ofPage: body.device))
    }

    struct Create: Decodable { var name: String }

    func createAccount(_ body: Create) throws {
      try requireAccount(false)
      try DeviceName.check(body.name)
      try pairing.begin(.create(name: body.name))
    }

    struct SignIn: Decodable { var account: String }

    func signIn(_ body: SignIn) async throws {
      try requireAccount(false)
      let known = try await Accounts.known(accounts.configuration)
      guard let chosen = known.first(where: { $0.account.hex == body.account }) else {
        throw PageFailure(.notFound, "no device of this account is on this host")
      }
      try await accounts.signIn(to: chosen.account)
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

  extension DeviceID {
    init(ofPage hex: String) throws(PageFailure) {
      guard let device = DeviceID(hex: hex) else {
        throw PageFailure(.usage, "this is no device's id")
      }
      self = device
    }
  }
#endif
