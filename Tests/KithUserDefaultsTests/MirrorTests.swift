import Foundation
import Kith
import KithTestSupport
import KithTesting
import Synchronization
import Testing

@testable import KithUserDefaults

@Suite(.timeLimit(.minutes(2)))
struct MirrorTests {
  // MARK: The first look

  @Test func whatTheStoreHasWinsAtFirst() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    try store.set("dark", forKey: "theme")
    fixture.defaults.set("light", forKey: "theme")
    let report = fixture.mirror(store).sync()
    #expect(report.taken == ["theme"])
    #expect(report.stored.isEmpty)
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
    #expect(store.value(forKey: "theme") == "dark")
  }

  @Test func whatOnlyTheDefaultsHaveIsWrittenToTheStore() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    fixture.defaults.set(14, forKey: "fontSize")
    let report = fixture.mirror(store).sync()
    #expect(report.stored == ["fontSize"])
    #expect(try fixture.store(1).value(forKey: "fontSize") == 14)
  }

  @Test func keysThatAreNotListedAreLeftAlone() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    try store.set("s", forKey: "mine")
    fixture.defaults.set("d", forKey: "other")
    fixture.mirror(store).sync()
    #expect(store.keys == ["mine"])
    #expect(fixture.defaults.object(forKey: "mine") == nil)
  }

  @Test func registeredDefaultsAreNotWritten() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    // Registered for the whole process, so of a name of its own.
    fixture.defaults.register(defaults: ["registeredTheme": "system"])
    let mirror = fixture.mirror(store, keys: ["registeredTheme"])
    mirror.sync()
    #expect(store.keys.isEmpty)
    fixture.defaults.set("dark", forKey: "registeredTheme")
    #expect(mirror.sync().stored == ["registeredTheme"])
    #expect(store.value(forKey: "registeredTheme") == "dark")
    // Taken from the store, the registered value is a value like any other, and stays one.
    try store.set("system", forKey: "registeredTheme")
    #expect(mirror.sync().taken == ["registeredTheme"])
    #expect(fixture.mirror(store, keys: ["registeredTheme"]).sync().stored.isEmpty)
    #expect(store.value(forKey: "registeredTheme") == "system")
  }

  @Test func theDefaultsOfANewDeviceGiveWayToTheAccount() throws {
    let fixture = try MirrorFixture(devices: 1)
    try fixture.store().set("dark", forKey: "theme")
    // It joins, and is mirrored before it has met anybody again.
    fixture.account.setFaults(delay: .seconds(60))
    let device = try fixture.account.join()
    let store = try device.store("com.example.App")
    fixture.defaults.set("light", forKey: "theme")
    fixture.defaults.set(9, forKey: "fontSize")
    let mirror = fixture.mirror(store)
    let first = mirror.sync()
    #expect(first.stored == ["fontSize"])
    #expect(first.taken == ["theme"])
    fixture.account.setFaults()
    fixture.account.advance(by: .seconds(600))
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
    #expect(try fixture.store().value(forKey: "theme") == "dark")
    #expect(try fixture.store().value(forKey: "fontSize") == 9)
  }

  // MARK: Afterwards

  @Test func changesGoBothWaysAndNothingComesBack() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let mirror = fixture.mirror(store)
    mirror.sync()
    try other.set("dark", forKey: "theme")
    #expect(mirror.sync().taken == ["theme"])
    fixture.defaults.set(11, forKey: "fontSize")
    #expect(mirror.sync().stored == ["fontSize"])
    #expect(other.value(forKey: "fontSize") == 11)
    let quiet = mirror.sync()
    #expect(quiet.stored.isEmpty && quiet.taken.isEmpty && quiet.problems.isEmpty)
  }

  @Test func removalGoesBothWays() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let mirror = fixture.mirror(store)
    try mirror.set("dark", forKey: "theme")
    try mirror.set(11, forKey: "fontSize")
    fixture.defaults.removeObject(forKey: "theme")
    #expect(mirror.sync().stored == ["theme"])
    #expect(other.keys == ["fontSize"])
    try other.removeValue(forKey: "fontSize")
    #expect(mirror.sync().taken == ["fontSize"])
    #expect(fixture.defaults.object(forKey: "fontSize") == nil)
  }

  @Test func whatHappenedWhileNobodyMirroredIsKnownAtTheNextStart() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    var mirror = fixture.mirror(store)
    try mirror.set("dark", forKey: "theme")
    try mirror.set(11, forKey: "fontSize")
    try mirror.set(true, forKey: "flag")
    // Removed elsewhere, changed here, changed on both sides.
    try other.removeValue(forKey: "theme")
    fixture.defaults.set(12, forKey: "fontSize")
    try other.set(false, forKey: "flag")
    fixture.defaults.set("no", forKey: "flag")
    mirror = fixture.mirror(store)
    let report = mirror.sync()
    #expect(report.taken == ["flag", "theme"])
    #expect(report.stored == ["fontSize"])
    #expect(fixture.defaults.object(forKey: "theme") == nil)
    #expect(other.value(forKey: "fontSize") == 12)
    #expect(try fixture.shown("flag") == false)
  }

  @Test func whatWasRemovedThereAndChangedHereStays() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let mirror = fixture.mirror(store)
    try mirror.set("dark", forKey: "theme")
    try other.removeValue(forKey: "theme")
    fixture.defaults.set("light", forKey: "theme")
    #expect(mirror.sync().stored == ["theme"])
    #expect(other.value(forKey: "theme") == "light")
  }

  @Test func marksOfAnotherDeviceAreNotBelieved() throws {
    let fixture = try MirrorFixture()
    try fixture.mirror(try fixture.store()).set("dark", forKey: "theme")
    // The directory is lost; a new account begins, and its store holds nothing.
    let fresh = try TestAccount(devices: 1, seed: 99)[0].store("com.example.App")
    #expect(fixture.mirror(fresh).sync().stored == ["theme"])
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
    #expect(fresh.value(forKey: "theme") == "dark")
  }

  @Test func whatTheCommandLineOverridesIsNotRead() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let plain = fixture.mirror(store)
    try plain.set("dark", forKey: "theme")
    func overridden() throws -> UserDefaultsMirror {
      let defaults = try #require(UserDefaults(suiteName: fixture.suite))
      defaults.setVolatileDomain(["theme": "once"], forName: UserDefaults.argumentDomain)
      return UserDefaultsMirror(
        store, keys: ["theme"], defaults: Defaults(defaults, store: "\(store.identifier)"))
    }
    let mirror = try overridden()
    #expect(mirror.sync().stored.isEmpty)
    #expect(other.value(forKey: "theme") == "dark")
    try other.set("light", forKey: "theme")
    #expect(mirror.sync().taken == ["theme"])
    // The next start, without it, finds nothing changed.
    let next = fixture.mirror(store).sync()
    #expect(next.stored.isEmpty && next.taken.isEmpty)
    #expect(fixture.defaults.string(forKey: "theme") == "light")
    #expect(other.value(forKey: "theme") == "light")
    // A removal elsewhere stays one, of what was taken and of what the program wrote.
    for isWritten in [false, true] {
      let mirror = try overridden()
      if isWritten {
        try mirror.set("dark", forKey: "theme")
      } else {
        try other.set("dark", forKey: "theme")
        #expect(mirror.sync().taken == ["theme"])
      }
      try other.removeValue(forKey: "theme")
      let next = fixture.mirror(store).sync()
      #expect(next.stored.isEmpty && next.taken == ["theme"])
      #expect(fixture.defaults.object(forKey: "theme") == nil)
    }
  }

  // MARK: Values

  @Test func whatTheFileRoundsIsNoChange() {
    func baseline(_ value: PropertyListValue) -> Baseline { Baseline(store: nil, defaults: value) }
    func date(_ seconds: Double) -> PropertyListValue {
      .date(Date(timeIntervalSinceReferenceDate: seconds))
    }
    #expect(baseline([date(3.75), -0.0]) == baseline([date(3), 0.0]))
    #expect(baseline(["a": date(-0.25)]) == baseline(["a": date(-1)]))
    #expect(baseline(.double(-.nan)) == baseline(.double(.nan)))
    #expect(baseline(date(3)) != baseline(date(4)))
    #expect(baseline(1) != baseline(1.0))
    #expect(baseline(true) != baseline(1))
    // The store's side is exact.
    #expect(Baseline(store: date(3.75), defaults: nil) != Baseline(store: date(3), defaults: nil))
    #expect(Baseline(data: baseline("x").data) == baseline("x"))
    #expect(Baseline(data: Data([1])) == nil)
  }

  @Test func everyKindOfValueComesThroughBothWays() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let mirror = fixture.mirror(store, keys: ["value"])
    let values: [PropertyListValue] = [
      true, false, 0, 1, -7, .integer(.min), .integer(.max), 1.0, 0.1, .double(.infinity), "",
      "text", "e\u{301}", "a\u{0}b\r\n", .date(Date(timeIntervalSinceReferenceDate: 3.25)),
      .date(.distantPast), .data(Data([0, 255])), .data(Data()), [], [:],
      [1, true, 1.5, "x", ["y": [false, .data(Data([1]))]]], ["a": ["b": [:]], "c": 2],
    ]
    for value in values {
      try other.set(value, forKey: "value")
      #expect(mirror.sync().problems.isEmpty, "\(value)")
      #expect(try fixture.shown("value") == value)
      // Nothing of it comes back as a change of the program's, also after a restart.
      #expect(mirror.sync().stored.isEmpty, "\(value)")
      #expect(fixture.mirror(store, keys: ["value"]).sync().stored.isEmpty, "\(value)")
      #expect(store.value(forKey: "value") == value)
      try other.removeValue(forKey: "value")
      mirror.sync()
      fixture.defaults.set(DefaultsValue.object(of: value), forKey: "value")
      #expect(mirror.sync().stored == ["value"], "\(value)")
      #expect(other.value(forKey: "value") == value)
      try other.removeValue(forKey: "value")
      mirror.sync()
    }
  }

  @Test func aDateThatWouldCostTheWholeFileIsLeftOut() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    let mirror = fixture.mirror(store)
    try mirror.set("old", forKey: "theme")
    for seconds in [Double.nan, .infinity, -.infinity, 1e300, -1e16] {
      let date = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: seconds))
      try store.set([date], forKey: "theme")
      #expect(mirror.sync().problems["theme"]?.code == .unsupportedValue)
      #expect(mirror.problems["theme"]?.key == "theme")
      #expect(fixture.defaults.string(forKey: "theme") == "old")
      let error = #expect(throws: KithError.self) { try mirror.set(["d": date], forKey: "theme") }
      #expect(error?.code == .unsupportedValue)
      // Compared here: a failed expectation would describe the date, which traps.
      let isUnchanged = store.value(forKey: "theme") == [date]
      #expect(isUnchanged)
    }
    try store.set("new", forKey: "theme")
    #expect(mirror.sync().taken == ["theme"])
    #expect(mirror.problems.isEmpty)
  }

  @Test func whatNoStoreHoldsIsLeftOutAndReported() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    let mirror = fixture.mirror(store)
    fixture.defaults.set(UInt64.max as Any?, forKey: "fontSize")
    fixture.defaults.set(String(repeating: "x", count: 2_000_000), forKey: "theme")
    fixture.defaults.set(true, forKey: "flag")
    let report = mirror.sync()
    #expect(report.stored == ["flag"])
    #expect(report.problems["fontSize"]?.code == .unsupportedValue)
    #expect(report.problems["theme"]?.code == .valueTooLarge)
    #expect(store.keys == ["flag"])
    // They stay in the defaults until they fit.
    #expect(fixture.defaults.string(forKey: "theme")?.count == 2_000_000)
    fixture.defaults.set("short", forKey: "theme")
    #expect(mirror.sync().stored == ["theme"])
  }

  // MARK: Writes of the program

  @Test func aWriteIsOnBothSidesAtOnceAndOnTheDisk() throws {
    let fixture = try MirrorFixture()
    let mirror = fixture.mirror(try fixture.store())
    try mirror.set("dark", forKey: "theme")
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
    #expect(try fixture.store(1).value(forKey: "theme") == "dark")
    fixture.account.isolate(0)
    try fixture.account.crash(0)
    #expect(try fixture.store().value(forKey: "theme") == "dark")
    try fixture.mirror(try fixture.store()).set(nil, forKey: "theme")
    #expect(fixture.defaults.object(forKey: "theme") == nil)
    #expect(try fixture.store().keys.isEmpty)
  }

  private struct Window: StoreValue {
    var width = 0
  }

  @Test func aTypedWriteKeepsTheMembersThatANewerProgramWrote() throws {
    let fixture = try MirrorFixture()
    let other = try fixture.store(1)
    let mirror = fixture.mirror(try fixture.store(), keys: ["window"])
    let key = StoreKey("window", default: Window())
    try other.set(["width": 1, "height": 2], forKey: "window")
    try mirror.set(Window(width: 5), for: key)
    #expect(other.value(forKey: "window") == ["width": 5, "height": 2])
    #expect(try fixture.shown("window") == ["width": 5, "height": 2])
    #expect(mirror.sync().stored.isEmpty)
    // As in the store itself, a value that cannot be read is replaced.
    try other.set("large", forKey: "window")
    try mirror.set(Window(width: 6), for: key)
    #expect(other.value(forKey: "window") == ["width": 6])
    try mirror.set(nil, for: StoreKey<Window?>("window"))
    #expect(other.keys.isEmpty)
    #expect(fixture.defaults.object(forKey: "window") == nil)
  }

  @Test func aTypedWriteThatTheDefaultsCannotHoldChangesNeitherSide() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    let mirror = fixture.mirror(store, keys: ["window"])
    let date = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: 1e300))
    try store.set(["width": 1, "made": date], forKey: "window")
    let error = #expect(throws: KithError.self) {
      try mirror.set(Window(width: 5), for: StoreKey("window", default: Window()))
    }
    #expect(error?.code == .unsupportedValue)
    let isUnchanged = store.value(forKey: "window") == ["width": 1, "made": date]
    #expect(isUnchanged)
    #expect(fixture.defaults.object(forKey: "window") == nil)
  }

  /// Defaults whose next read of a value lets something else happen first.
  private final class InterruptedDefaults: UserDefaults {
    let interruption = Mutex<(@Sendable () -> Void)?>(nil)

    override func object(forKey defaultName: String) -> Any? {
      let body = interruption.withLock { $0.take() }
      body?()
      return super.object(forKey: defaultName)
    }
  }

  @Test func aValueThatCameToTheStoreDuringTheComparisonIsNotOverwritten() throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let defaults = try #require(InterruptedDefaults(suiteName: fixture.suite))
    defaults.set("light", forKey: "theme")
    let mirror = UserDefaultsMirror(
      store, keys: ["theme"], defaults: Defaults(defaults, store: "\(store.identifier)"))
    defaults.interruption.withLock { $0 = { _ = try? store.set("dark", forKey: "theme") } }
    let report = mirror.sync()
    #expect(report.taken == ["theme"])
    #expect(report.stored.isEmpty && report.problems.isEmpty)
    #expect(other.value(forKey: "theme") == "dark")
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
  }

  @Test func anotherAccountDuringTheComparisonTakesNoSettingAway() throws {
    let fixture = try MirrorFixture(devices: 1)
    let (device, store) = (fixture.account[0], try fixture.store())
    let defaults = try #require(InterruptedDefaults(suiteName: fixture.suite))
    try store.set("dark", forKey: "theme")
    defaults.set("dark", forKey: "theme")
    defaults.set(11, forKey: "fontSize")
    let mirror = UserDefaultsMirror(
      store, keys: ["fontSize", "theme"],
      defaults: Defaults(defaults, store: "\(store.identifier)"))
    // Once the first key is compared, the store is another one, which has no theme.
    defaults.interruption.withLock {
      $0 = {
        _ = try? device.signOut()
        _ = try? store.set(12, forKey: "fontSize")
      }
    }
    let report = mirror.sync()
    #expect(report.taken == ["fontSize"])
    #expect(report.stored == ["theme"])
    #expect(report.problems.isEmpty)
    let quiet = mirror.sync()
    #expect(quiet.stored.isEmpty && quiet.taken.isEmpty)
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
    #expect(store.dictionary == ["fontSize": 12, "theme": "dark"])
  }

  /// The copy is in the new account's store; the old one's, shown again, never had it.
  @Test func aCopyThatAnotherAccountGotIsNoBaselineOfTheFirst() throws {
    let fixture = try MirrorFixture(devices: 1)
    let (device, store) = (fixture.account[0], try fixture.store())
    let defaults = try #require(InterruptedDefaults(suiteName: fixture.suite))
    defaults.set("dark", forKey: "theme")
    let mirror = UserDefaultsMirror(
      store, keys: ["theme"], defaults: Defaults(defaults, store: "\(store.identifier)"))
    defaults.interruption.withLock { $0 = { _ = try? device.signOut() } }
    #expect(mirror.sync().stored == ["theme"])
    try store.removeValue(forKey: "theme")
    try device.signIn()
    #expect(store.keys.isEmpty)
    #expect(mirror.sync().stored == ["theme"])
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
  }

  @Test func theProgramsCodeInATypedWriteMayUseTheMirror() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    let mirror = fixture.mirror(store, keys: ["theme", "window"])
    try store.set(["size": 3], forKey: "window")
    let key = StoreKey("window", default: Window()) { _ in
      guard mirror.problems.isEmpty else { return nil }
      try? mirror.set("dark", forKey: "theme")
      return Window(width: 3)
    }
    try mirror.set(Window(width: 5), for: key)
    #expect(store.dictionary == ["theme": "dark", "window": ["width": 5]])
    #expect(try fixture.shown("window") == ["width": 5])
    #expect(fixture.defaults.string(forKey: "theme") == "dark")
  }

  @Test func aRefusedWriteChangesNeitherSide() throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    let mirror = fixture.mirror(store)
    try mirror.set("old", forKey: "theme")
    let large = PropertyListValue.string(String(repeating: "x", count: 2_000_000))
    var error = #expect(throws: KithError.self) { try mirror.set(large, forKey: "theme") }
    #expect(error?.code == .valueTooLarge)
    error = #expect(throws: KithError.self) { try mirror.set(1, forKey: "unlisted") }
    #expect(error?.code == .invalidKey)
    #expect(fixture.defaults.string(forKey: "theme") == "old")
    #expect(fixture.defaults.object(forKey: "unlisted") == nil)
    #expect(store.dictionary == ["theme": "old"])
  }

  // MARK: Running

  @Test func whileItRunsBothSidesFollow() async throws {
    let fixture = try MirrorFixture()
    let (store, other) = (try fixture.store(), try fixture.store(1))
    let heard = Mutex<[String]>([])
    let mirror = fixture.mirror(store, interval: .milliseconds(5)) { report in
      heard.withLock { $0 += report.taken.map { "<" + $0 } + report.stored.map { ">" + $0 } }
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await mirror.run() }
      try other.set("dark", forKey: "theme")
      try await eventually { fixture.defaults.string(forKey: "theme") == "dark" }
      fixture.defaults.set(12, forKey: "fontSize")
      try await eventually { other.value(forKey: "fontSize") == 12 }
      // The program's own writes to the store count as well.
      try store.set(true, forKey: "flag")
      try await eventually { fixture.defaults.bool(forKey: "flag") }
      group.cancelAll()
    }
    #expect(heard.withLock { $0 } == ["<theme", ">fontSize", "<flag"])
  }

  @Test func whatWasWrittenLastIsTakenAtTheEnd() async throws {
    let fixture = try MirrorFixture()
    let store = try fixture.store()
    let looked = Atomic<Int>(0)
    let mirror = fixture.mirror(store) { _ in
      // It may block for another program's node, and Swift's threads are few.
      #expect(withUnsafeCurrentTask { $0 == nil })
      looked.add(1, ordering: .relaxed)
    }
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { try await mirror.run() }
      try store.set(1, forKey: "flag")
      try await eventually { looked.load(ordering: .relaxed) == 1 }
      fixture.defaults.set("late", forKey: "theme")
      group.cancelAll()
    }
    #expect(store.value(forKey: "theme") == "late")
  }

  @Test func everyInt8IsANumberAndOnlyBoolsAreBools() throws {
    let fixture = try MirrorFixture()
    for number in Int8.min...Int8.max {
      let expected = PropertyListValue.integer(Int64(number))
      #expect(try DefaultsValue.value(of: number) == expected)
      #expect(try DefaultsValue.value(of: [NSNumber(value: number)]) == [expected])
      fixture.defaults.set(number, forKey: "flag")
      #expect(try fixture.shown("flag") == expected)
      fixture.defaults.set([number, true, NSNumber(value: false)] as [Any], forKey: "flag")
      #expect(try fixture.shown("flag") == [expected, true, false])
    }
    // As other programs' objects may hold them.
    #expect(try DefaultsValue.value(of: NSArray(array: [NSNumber(value: true)])) == [true])
  }
}
