import Kith
import KithCore
import KithTerminal

/// The requests that were read at once, in their order. Writes go to the node together, up to the
/// next request that reads, and all share one flush: so a program that sends many before it reads
/// the answers writes many in a second.
struct BatchRound: Sendable {
  struct Wait: Sendable {
    var id: PropertyListValue?
    var answer: @Sendable () async throws -> Document
  }

  struct Watch: Sendable {
    var id: PropertyListValue?
    var keys: Set<KeyValueStore.Key>
    var changes: StoreChanges
  }

  /// The most watches of one process; their events are printed until it ends.
  static let mostWatches = 16

  /// Bytes of answers after which the round ends: a few requests may list the whole store.
  static let answerBytes = 1 << 20

  /// Lines.
  private(set) var answers: [String] = []
  /// The lines for the next round.
  private(set) var rest: ArraySlice<[UInt8]?>
  /// Requests that are answered later.
  private(set) var waits: [Wait] = []
  private(set) var watches: [Watch] = []

  private struct Write {
    /// The index of its answer.
    var answer: Int
    var id: PropertyListValue?
    var operations: [KithCore.Operation]
  }

  private let store: KeyValueStore
  private let accounts: Accounts
  private var watchesLeft: Int
  private var unsent: [Write] = []
  private var accepted: [Write] = []

  /// Blocks until the writes are durable. A nil line was too long.
  init(
    _ lines: ArraySlice<[UInt8]?>, store: KeyValueStore, accounts: Accounts, watchesLeft: Int
  ) {
    (self.store, self.accounts, self.watchesLeft) = (store, accounts, watchesLeft)
    rest = lines
    var bytes = 0
    while bytes < Self.answerBytes, let line = rest.popFirst() {
      if line?.isEmpty == true { continue }
      var id: PropertyListValue?
      let answer: String
      do {
        guard let line else {
          throw CommandFailure(
            .usage, "the line is too long; at most \(Format.bytes(BatchLines.limit)) are allowed")
        }
        let request = try BatchRequest(line)
        id = request.id
        let action = try request.action()
        guard let document = try perform(action, id) else { continue }
        answer = Self.line(id, document)
      } catch {
        answer = Self.line(id, failure: error)
      }
      answers.append(answer)
      bytes += answer.utf8.count
    }
    send()
    guard !accepted.isEmpty else { return }
    do throws(KithError) {
      try store.flush()
    } catch {
      for write in accepted { answers[write.answer] = Self.line(write.id, failure: error) }
    }
  }

  /// A refused transaction is refused alone.
  private mutating func send() {
    let errors = store.write(each: unsent.map(\.operations))
    for (write, error) in zip(unsent, errors) {
      if let error {
        answers[write.answer] = Self.line(write.id, failure: error)
      } else {
        accepted.append(write)
      }
    }
    unsent = []
  }

  /// To be called before the answer is appended.
  private mutating func write(
    _ writes: [(key: String, value: PropertyListValue?)], _ id: PropertyListValue?
  ) throws(KithError) {
    let operations: [KithCore.Operation] = try .encoding(writes)
    guard !operations.isEmpty else { return }
    unsent.append(Write(answer: answers.count, id: id, operations: operations))
  }

  static func line(_ id: PropertyListValue?, failure error: any Error) -> String {
    let failure = CommandFailure(error) ?? CommandFailure(.failure, "\(error)")
    let members = Document.object([
      "code": .string((error as? KithError)?.code.description ?? "\(failure.status)"),
      "message": .string(failure.description), "status": .int(Int(failure.status.rawValue)),
    ])
    return line(id, Document.versioned(["error": members]))
  }

  static func line(_ id: PropertyListValue?, _ document: Document) -> String {
    guard let id, case .members(let members) = document else {
      return document.text(indented: false)
    }
    return Document.members(members + [("id", .value(id))]).text(indented: false)
  }

  /// Nil if the answer comes later.
  private mutating func perform(
    _ action: BatchRequest.Action, _ id: PropertyListValue?
  ) throws -> Document? {
    let name = store.identifier.rawValue
    if action.isRead { send() }
    switch action {
    case .get(let key):
      guard let value = store.value(forKey: key) else {
        throw CommandFailure.missing(key, in: name, isSignedOut: accounts.signedIn == nil)
      }
      return Document.versioned([
        "key": .string(key), "type": .string(value.typeName), "value": .value(value),
      ])
    case .write(let writes):
      try write(writes, id)
      return Document.versioned([
        "removed": .strings(writes.filter { $0.value == nil }.map(\.key)),
        "set": .strings(writes.filter { $0.value != nil }.map(\.key)),
      ])
    case .remove(let keys):
      // Each key is looked at once: another program may write meanwhile.
      var (removed, missing): ([String], [String]) = ([], [])
      for key in keys {
        if store.value(forKey: key) == nil { missing.append(key) } else { removed.append(key) }
      }
      try write(removed.map { ($0, nil) }, id)
      return Document.versioned(["missing": .strings(missing), "removed": .strings(removed)])
    case .list(let prefix):
      return try EntriesReport(store: name, store.dictionary.entries, prefix: prefix).document
    case .watch(let keys):
      guard watchesLeft > 0 else {
        throw CommandFailure(
          .failure, "this process watches \(Self.mostWatches) times already; start another one")
      }
      watchesLeft -= 1
      let wanted = Set(keys.map { KeyValueStore.Key($0) })
      let (values, changes) = store.snapshotAndChanges()
      watches.append(Watch(id: id, keys: wanted, changes: changes))
      let shown = values.filter { wanted.isEmpty || wanted.contains($0.key) }
      return Document.versioned([
        "store": .string(name), "values": .members(shown.map { ($0.key.text, .value($0.value)) }),
      ])
    case .sync(let seconds, let devices):
      let (store, accounts) = (store, accounts)
      waits.append(
        Wait(id: id) {
          guard accounts.signedIn != nil else {
            throw CommandFailure.signedOut(accounts.configuration.directory)
          }
          let wait = Duration.milliseconds(Int(seconds * 1_000))
          let report = try await store.waitUntilSynced(timeout: wait, devices: devices)
          return report.document(store: name, status: try await accounts.status())
        })
      return nil
    case .status:
      let accounts = accounts
      waits.append(
        Wait(id: id) {
          StatusReport(status: try await accounts.status(), nowMilliseconds: Moment.now).document
        })
      return nil
    }
  }
}

extension BatchRequest.Action {
  /// Whether it reads the store, with the writes before it.
  fileprivate var isRead: Bool {
    switch self {
    case .get, .remove, .list, .watch: true
    case .write, .sync, .status: false
    }
  }
}
