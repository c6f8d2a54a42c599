import Foundation
import Kith
import Testing

@testable import UbiquitousKeyValueStore

/// The values that programs hand over, and their results.
@Suite struct ValueTests {
  private let backend = FakeBackend()
  private let store: NSUbiquitousKeyValueStore

  init() {
    store = .on(backend)
  }

  private func stored(_ object: Any?) -> PropertyListValue? {
    store.set(object, forKey: "k")
    return backend.value(forKey: "k")
  }

  @Test func `every kind of number is normalised`() {
    #expect(stored(Int(1)) == .integer(1))
    #expect(stored(Int8(1)) == .integer(1))
    #expect(stored(Int16(-2)) == .integer(-2))
    #expect(stored(Int32(3)) == .integer(3))
    #expect(stored(UInt8(4)) == .integer(4))
    #expect(stored(UInt(5)) == .integer(5))
    #expect(stored(UInt64(Int64.max)) == .integer(.max))
    #expect(stored(Float(1.5)) == .double(1.5))
    #expect(stored(CGFloat(2.5)) == .double(2.5))
    #expect(stored(Decimal(3)) == .double(3))
    #expect(stored(NSDecimalNumber(string: "1.5")) == .double(1.5))
    #expect(stored(true) == .bool(true))
    #expect(stored(NSNumber(value: true)) == .bool(true))
    #expect(stored(NSNumber(value: 1)) == .integer(1))
    #expect(stored(NSNumber(value: 0)) == .integer(0))
    #expect(stored(NSNumber(value: 1.0)) == .double(1))
  }

  @Test func `every Int8 is a number, at the top and nested, and only bools are bools`() {
    for number in Int8.min...Int8.max {
      let expected = PropertyListValue.integer(Int64(number))
      for object: Any in [number, NSNumber(value: number)] {
        #expect(stored(object) == expected)
        #expect(stored([object, true]) == .array([expected, .bool(true)]))
        #expect(
          stored(["n": object, "b": false, "list": [object]])
            == .dictionary(["n": expected, "b": .bool(false), "list": .array([expected])]))
      }
    }
    for number in UInt8.min...UInt8.max { #expect(stored(number) == .integer(Int64(number))) }
    for bool in [true, false] {
      for object: Any in [
        bool, NSNumber(value: bool), bool as NSNumber, NSNumber(value: bool).copy(),
      ] {
        #expect(stored(object) == .bool(bool))
        #expect(stored(NSArray(array: [object])) == .array([.bool(bool)]))
        #expect(stored(NSDictionary(dictionary: ["b": object])) == .dictionary(["b": .bool(bool)]))
      }
    }
  }

  @Test func `Foundation's classes are taken as Swift's types`() {
    #expect(stored(NSString("a")) == .string("a"))
    #expect(stored(NSMutableString(string: "b")) == .string("b"))
    #expect(stored(NSData(data: Data([1]))) == .data(Data([1])))
    let date = Date(timeIntervalSinceReferenceDate: 7)
    #expect(stored(date as NSDate) == .date(date))
    #expect(stored(NSArray(array: [1, "x"])) == .array([.integer(1), .string("x")]))
    #expect(
      stored(NSDictionary(dictionary: ["a": NSNumber(value: true)]))
        == .dictionary(["a": .bool(true)]))
    #expect(stored([UInt8]([1, 2])) == .array([.integer(1), .integer(2)]))
    #expect(stored([String]()) == .array([]))
    #expect(stored([String: Int]()) == .dictionary([:]))
  }

  @Test func `an optional within Any is what it holds`() {
    let text: String? = "a"
    #expect(stored(text as Any) == .string("a"))
    #expect(stored([text as Any]) == .array([.string("a")]))
  }

  /// Foundation keeps both keys or only the last, by their hashes.
  @Test func `a Foundation dictionary with two equivalent keys is ignored`() throws {
    let dictionaries = (0..<100).map { number in
      NSDictionary(
        objects: [NSNumber(value: 1), NSNumber(value: 2)],
        forKeys: [NSString(string: "\(number)\u{E9}"), NSString(string: "\(number)e\u{301}")])
    }
    let both = try #require(dictionaries.first { $0.count == 2 })
    #expect(stored("before") == "before")
    #expect(stored(both) == "before")
    #expect(stored(["a": both]) == "before")
    // Foundation's containers bridge what they hold when it is read.
    let key = NSString(string: "a")
    let nested: [Any] = [
      NSArray(array: [both]), NSMutableArray(array: [both]), [NSArray(array: [both])],
      NSDictionary(object: both, forKey: key), NSMutableDictionary(object: both, forKey: key),
      NSArray(array: [NSArray(array: [NSDictionary(object: both, forKey: key)])]),
      NSDictionary(object: NSArray(array: [1, both]), forKey: key),
    ]
    for (number, object) in nested.enumerated() {
      #expect(stored(object) == "before", "\(number)")
    }
  }

  @Test func `Foundation's containers within each other are taken as Swift's`() {
    let date = Date(timeIntervalSinceReferenceDate: 7)
    let inner = NSArray(
      array: [NSNumber(value: true), NSNumber(value: 1.5), "x", date, Data([1])])
    let outer = NSDictionary(object: NSArray(array: [inner]), forKey: NSString(string: "a"))
    let expected: PropertyListValue = ["a": [[true, 1.5, "x", .date(date), .data(Data([1]))]]]
    #expect(stored(outer) == expected)
    #expect(stored("before") == "before")
    #expect(stored(NSArray(array: [NSNull()])) == "before")
    #expect(stored(NSDictionary(object: 1, forKey: NSNumber(value: 1))) == "before")
  }

  @Test func `an object that property lists cannot hold is ignored, and changes nothing`() {
    let before = PropertyListValue.string("before")
    #expect(stored("before") == before)
    let none: String? = nil
    for object: Any in [
      NSNull(), Set([1]), NSSet(array: [1]), URL(filePath: "/"), UUID(), Substring("a"),
      [1: "a"], ["a": NSNull()], [none as Any], UInt64.max,
      { 1 }, NSObject(), 1..<2,
    ] {
      #expect(stored(object) == before, "\(type(of: object))")
    }
  }

  @Test func `as deep as a store takes, and no deeper`() {
    func nested(_ depth: Int) -> Any {
      (0..<depth).reduce(1 as Any) { inner, _ in [inner] }
    }
    #expect(stored(nested(PropertyListValue.maximumDepth)) != nil)
    store.removeObject(forKey: "k")
    #expect(stored(nested(PropertyListValue.maximumDepth + 1)) == nil)
  }

  @Test func `nil removes the key, by each setter`() {
    func isRemoved(_ set: (NSUbiquitousKeyValueStore) -> Void) -> Bool {
      store.set("there", forKey: "k")
      set(store)
      return backend.value(forKey: "k") == nil
    }
    #expect(isRemoved { $0.set(nil as Any?, forKey: "k") })
    #expect(isRemoved { $0.set(nil as String?, forKey: "k") })
    #expect(isRemoved { $0.set(nil as Data?, forKey: "k") })
    #expect(isRemoved { $0.set(nil as [Any]?, forKey: "k") })
    #expect(isRemoved { $0.set(nil as [String: Any]?, forKey: "k") })
    #expect(isRemoved { $0.removeObject(forKey: "k") })
  }

  @Test func `all values come back as they were set`() throws {
    let date = Date(timeIntervalSinceReferenceDate: 0.5)
    store.set([date, "text", Data([1])] as [Any], forKey: "mixed")
    let back = try #require(store.array(forKey: "mixed"))
    #expect(back.first as? Date == date)
    #expect(back[1] as? String == "text")
    #expect(back[2] as? Data == Data([1]))
  }

  @Test func `keys that Swift calls equal are both kept, and one of them is represented`() {
    store.set("composed", forKey: "\u{e9}")
    store.set("decomposed", forKey: "e\u{301}")
    #expect(store.string(forKey: "\u{e9}") == "composed")
    #expect(store.string(forKey: "e\u{301}") == "decomposed")
    #expect(store.dictionaryRepresentation as? [String: String] == ["\u{e9}": "composed"])
  }
}
