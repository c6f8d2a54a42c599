import Foundation
import Kith
import KithTesting
import UbiquitousKeyValueStore

/// Code as programs have it, and whether it does what it does on Apple's systems.
@MainActor struct Shapes {
  let checks: Checks
  let store: NSUbiquitousKeyValueStore

  func runAll() {
    lists()
    flags()
    numbers()
    removingInALoop()
    mixedArrays()
    groups()
    ownMembers()
    wrappers()
    standIns()
  }

  func lists() {
    store.set(["one", "two"], forKey: "list")
    checks.expect(store.array(forKey: "list") as? [String] == ["one", "two"])
    var list = store.array(forKey: "list") as? [String] ?? []
    list.append("three")
    store.set(list, forKey: "list")
    guard store.synchronize() else { fatalError("synchronize() is false") }
    checks.expect(store.array(forKey: "list") as? [String] == ["one", "two", "three"])
    let bookmarks: [[String: Any]] = [
      ["title": "Swift", "url": "https://swift.org", "visits": 3, "isRead": true]
    ]
    store.set(bookmarks, forKey: "bookmarks")
    let back = store.array(forKey: "bookmarks") as? [[String: Any]]
    checks.expect(back?.first?["title"] as? String == "Swift")
    checks.expect(back?.first?["visits"] as? Int == 3)
    checks.expect(back?.first?["isRead"] as? Bool == true)
  }

  func flags() {
    store.set(true, forKey: "flag")
    checks.expect(store.object(forKey: "flag") as? Bool == true)
    checks.expect(store.bool(forKey: "flag"))
    store.set(false, forKey: "flag")
    checks.expect(store.object(forKey: "flag") as? Bool == false)
    let provider = FlagProvider(store: store)
    provider.set(true, "beta")
    checks.expect(provider.isOn("beta") == true)
    provider.set(nil, "beta")
    checks.expect(provider.isOn("beta") == nil)
    checks.expect(provider.name == (store == .default ? "iCloud" : "iCloud (custom)"))
    checks.expect(FlagProvider().name == "iCloud")
    checks.expect(NSUbiquitousKeyValueStore.default === NSUbiquitousKeyValueStore.default)
  }

  func numbers() {
    let count = 7
    store.set(count as Any?, forKey: "count")
    checks.expect(store.longLong(forKey: "count") == 7)
    checks.expect(store.object(forKey: "count") as? Int == 7)
    checks.expect(store.object(forKey: "count") as? Double == 7)
    checks.expect((store.object(forKey: "count") as? NSNumber)?.intValue == 7)
    checks.expect(store.string(forKey: "count") == "7")
    store.set("2.5", forKey: "text")
    checks.expect(store.double(forKey: "text") == 2.5)
    checks.expect(store.longLong(forKey: "text") == 2)
    store.set(Float(0.5) as Any?, forKey: "float")
    checks.expect(store.double(forKey: "float") == 0.5)
  }

  func removingInALoop() {
    for number in 0..<20 { store.set("value", forKey: "cache.\(number)") }
    for key in store.dictionaryRepresentation.keys where key.hasPrefix("cache.") {
      store.removeObject(forKey: key)
    }
    checks.expect(!store.dictionaryRepresentation.keys.contains { $0.hasPrefix("cache.") })
    for (key, _) in store.dictionaryRepresentation { store.removeObject(forKey: key) }
    store.synchronize()
    checks.expect(store.dictionaryRepresentation.isEmpty)
  }

  func mixedArrays() {
    // The time beside the value, so that the later of two devices wins.
    let now = Date()
    store.set([now, "value"] as [Any], forKey: "stamped")
    let pair = store.array(forKey: "stamped")
    checks.expect(pair?.first as? Date == now)
    checks.expect(pair?.last as? String == "value")
  }

  func groups() {
    // Values that belong together are under one key, so that they arrive together.
    store.set(["width": 640, "height": 480.5, "title": "Main", "tags": ["a"]], forKey: "window")
    let window = store.dictionary(forKey: "window")
    checks.expect(window?["width"] as? Int == 640)
    checks.expect(window?["height"] as? Double == 480.5)
    checks.expect(window?["title"] as? String == "Main")
    checks.expect(window?["tags"] as? [String] == ["a"])
    checks.expect(window?.count == 4)
  }

  func ownMembers() {
    let date = Date(timeIntervalSinceReferenceDate: 1)
    store.set(date, forKey: "date")
    checks.expect(store.date(forKey: "date") == date)
    store.set(3, forKey: "integer")
    checks.expect(store.integer(forKey: "integer") == 3)
    store["subscript"] = "a"
    checks.expect(store["subscript"] == "a")
    store["subscript"] = nil
    checks.expect(store["subscript"] == nil)
    do {
      try store.setCodable([1, 2], forKey: "codable")
      checks.expect(try store.codable([Int].self, forKey: "codable") == [1, 2])
    } catch {
      checks.expect(false, "\(error)")
    }
  }

  func wrappers() {
    let stored = CloudStored(wrappedValue: 14, "fontSize", store: store)
    checks.expect(stored.wrappedValue == 14)
    stored.wrappedValue = 18
    checks.expect(stored.wrappedValue == 18)
    checks.expect(store.longLong(forKey: "fontSize") == 18)
    let settings = CloudSettings(store: store)
    settings.theme = "dark"
    settings.isCompact = true
    settings.stop()
    checks.expect(store.string(forKey: "theme") == "dark")
    checks.expect(CloudSettings(store: store).isCompact)
  }

  func standIns() {
    checks.expect(MemoryStore.default is MemoryStore)
    let memory = MemoryStore.default
    memory.set("a", forKey: "k")
    memory.set(true, forKey: "b")
    memory.set(Int64(4), forKey: "n")
    checks.expect(memory.string(forKey: "k") == "a")
    checks.expect(memory.bool(forKey: "b"))
    checks.expect(memory.object(forKey: "b") as? Bool == true)
    checks.expect(memory.longLong(forKey: "n") == 4)
    let settings = CloudSettings(store: MemoryStore())
    settings.theme = "light"
    checks.expect(settings.theme == "light")
  }
}
