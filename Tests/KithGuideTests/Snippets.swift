import Foundation
import Kith
import KithTesting
import Logging
import Observation
import ServiceLifecycle
import Testing

// The code of the guides to Kith, so that it compiles; other files here have that of other guides.
// `GuideTests` looks for it in all, paragraph by paragraph; names that a guide leaves to its reader
// are parameters.

// MARK: Declarations

enum Theme: String, StoreValue { case system, light, dark }
struct Window: StoreValue { var width = 800, height = 600 }

extension StoreKey where Value == Theme {
  static var theme: Self { .init("theme", default: .system) }
}
extension StoreKey where Value == Window {
  static var window: Self { .init("window", default: Window()) }
}
extension StoreKey where Value == String? {
  static var draft: Self { .init("draft") }
}

enum Keys {
  static let fontSize = StoreKey("fontSize", default: 13.0)
  static let recent = StoreKey<[URL]>("recent", default: [])
}

struct Settings {
  @Stored var theme: Theme
  init(_ store: KeyValueStore) { _theme = Stored(.theme, in: store) }
}

extension StoreKey where Value == Double {
  static var fontSize: Self { Keys.fontSize }
}
extension StoreKey where Value == Data {
  static var portrait: Self { .init("portrait", default: Data()) }
}

// MARK: Opening

func open(directory: String, apply: (Theme) -> Void) async throws {
  let accounts = try Accounts(.init(directory: directory))
  let store = try accounts.store("com.example.Editor")  // the same object after each sign-in

  let theme = store[.theme]  // from memory; the default is never written
  try store.set(.dark, for: .theme)  // shows at once, durable soon
  try await store.commit { $0[.theme] = .dark }  // a transaction, durable on return

  _ = theme
  for await theme in store.values(for: .theme) { apply(theme) }  // from any device

  try await accounts.run()  // in another: exchanges with the other devices until it is cancelled
}

func serve(directory: String, editor: any Service, logger: Logger) async throws {
  let accounts = try Accounts(.init(directory: directory))
  let store = try accounts.store("com.example.Editor")

  _ = store
  let group = ServiceGroup(
    services: [accounts, editor], gracefulShutdownSignals: [.sigterm], logger: logger)
  try await group.run()
  try accounts.close()
}

func signIn(
  directory: String, code: String, account: AccountID,
  show: @escaping @Sendable (String?) async -> Void, present: @escaping @Sendable (String) -> Void,
  ask: @escaping @Sendable (String) async -> Bool
) async throws {
  let accounts = try Accounts(.init(directory: directory))
  let store = try accounts.store("com.example.Editor")  // the same object after each sign-in

  _ = store
  try await accounts.run()  // or hand it to a ServiceGroup

  try await accounts.createAccount(name: "laptop") { _, recoveryKey in
    present(recoveryKey)  // once, before the account exists; if this throws, none is created
  }
  try await accounts.signIn(code: code, name: "desktop") { inviter, fingerprint in
    await ask("Does \(inviter.name) show \(inviter.fingerprint) and \(fingerprint)?")
  }
  try await accounts.signOut()
  try await accounts.signIn(to: account)  // one of `known`

  try await accounts.invite { invitation in
    await show(invitation.code)
    for await candidate in invitation.candidates {
      let (name, fingerprint) = (candidate.device.name, candidate.device.fingerprint)
      if await ask("Does \(name) show \(fingerprint)?") { candidate.accept() }
    }
  }
}

// MARK: Reading and writing

func readAndWrite(_ store: KeyValueStore) async throws {
  let theme = store[.theme]
  try store.set(.dark, for: .theme)
  try await store.commit {
    $0[.theme] = .dark
    $0[.window].width += 100
    $0.reset(.draft)
  }

  let size = store[Keys.fontSize]

  try store.reset(.theme, .window)
  let isUntouched = store.isDefault(.theme)

  _ = (theme, size, isUntouched)
}

func property(_ store: KeyValueStore) {
  @Stored(.theme, in: store) var theme
  theme = .dark
}

func caught(_ store: KeyValueStore) {
  do throws(KithError) {
    try store.set(.dark, for: .theme)
  } catch {
    print(error.code, error.localizedDescription)
  }
}

func refused(_ store: KeyValueStore, picture: Data) {
  do throws(KithError) {
    try store.set(picture, for: .portrait)
  } catch  where error.code == .quotaExceeded || error.code == .valueTooLarge {
    print(error.message)  // what was asked, what is allowed, what to do
  } catch {}
}

// MARK: Observing

func follow(
  _ store: KeyValueStore, apply: (Theme) -> Void, layOut: (Theme, Double) -> Void,
  show: (Any) -> Void
) async {
  for await theme in store.values(for: .theme) { apply(theme) }
  for await (theme, size) in store.values(for: .theme, .fontSize) { layOut(theme, size) }

  for await tabs in store.values(prefix: "tab.", as: URL.self) { show(tabs) }
  for await title in store.values(of: { "\($0[.theme]), \($0[.fontSize]) pt" }) { show(title) }
}

func hear(
  _ store: KeyValueStore, reload: ([KeyValueStore.Key]) -> Void,
  warn: ([KeyValueStore.Key]) -> Void,
  fade: (_ from: Theme, _ to: Theme) -> Void
) async {
  for await change in store.changes {
    switch change.reason {
    case .externalChange, .initialSyncChange, .accountChange: reload(change.keys)
    case .quotaViolationChange: warn(change.superseded)
    case .ownWrite: break  // only in sequences that ask for it
    }
  }

  for await change in store.changes {
    if let theme = change[.theme] { fade(theme.old, theme.new) }
  }
}

final class Title: Sendable {
  func show(_ theme: Theme) {}
}
final class Redraw: Sendable {
  func setNeeded() {}
}

func draw(_ store: KeyValueStore, title: Title, redraw: Redraw) {
  withObservationTracking {
    title.show(store[.theme])
  } onChange: {
    redraw.setNeeded()  // called once; track again when you draw again
  }
}

// MARK: Testing

@Suite struct GuideExamples {
  @Test func `the example of README`() throws {
    let account = try TestAccount(devices: 2)
    try account[0].store("com.example.Editor").set("dark", forKey: "theme")
    let store = try account[1].store("com.example.Editor")
    #expect(store.value(forKey: "theme") == "dark")  // at once
  }

  @Test func `the examples of the guide to tests`() async throws {
    let account = try TestAccount(devices: 2)
    let laptop = try account[0].store("com.example.Editor")
    let desktop = try account[1].store("com.example.Editor")

    try laptop.set(.dark, for: .theme)
    #expect(desktop[.theme] == .dark)  // as soon as the call returns

    account.cut(0, 1)  // apart, both write
    try laptop.set(.light, for: .theme)
    account.advance(by: .seconds(1))
    try desktop.set(.dark, for: .theme)
    account.mend(0, 1)  // together, the later one wins

    #expect(laptop[.theme] == .dark)
    try account[1].signOut()  // `desktop` shows what is local
    try desktop.set(.light, for: .theme)
    try account[1].signIn()  // what the account has of a key wins

    #expect(desktop[.theme] == .dark)
    let settings = Settings(try TestAccount(devices: 1)[0].store("com.example.Editor"))

    #expect(settings.theme == .system)
    try laptop.reset(.theme)
    var values = desktop.values(for: .theme).makeAsyncIterator()
    #expect(await values.next() == .system)
    try laptop.set(.dark, for: .theme)
    #expect(await values.next() == .dark)
  }
}
