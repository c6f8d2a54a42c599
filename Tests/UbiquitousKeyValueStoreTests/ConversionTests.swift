import Foundation
import Kith
import KithTesting
import Testing

@testable import UbiquitousKeyValueStore

/// The table of typed getters, through a real store.
@Suite struct ConversionTests {
  private let account: TestAccount
  private let store: NSUbiquitousKeyValueStore

  init() throws {
    account = try TestAccount(devices: 1)
    store = try UbiquityBootstrap.makeStore(on: account[0].store("com.example.Conversions"))
  }

  /// The value that is set, and the result of each getter.
  struct Row: Sendable, CustomTestStringConvertible {
    var value: PropertyListValue
    var string: String?
    var bool: Bool
    var integer: Int64
    var double: Double
    var testDescription: String { "\(value)" }

    init(
      _ value: PropertyListValue, _ string: String?, _ bool: Bool, _ integer: Int64,
      _ double: Double
    ) {
      (self.value, self.string, self.bool, self.integer, self.double) = (
        value, string, bool, integer, double
      )
    }
  }

  static let rows: [Row] = [
    Row(.bool(true), "1", true, 1, 1),
    Row(.bool(false), "0", false, 0, 0),
    Row(.integer(123), "123", true, 123, 123),
    Row(.integer(0), "0", false, 0, 0),
    Row(.integer(-1), "-1", true, -1, -1),
    Row(.integer(.max), "9223372036854775807", true, .max, 9.223372036854775807e18),
    Row(.double(1), "1", true, 1, 1),
    Row(.double(2.67), "2.67", true, 2, 2.67),
    Row(.double(-2.67), "-2.67", true, -2, -2.67),
    Row(.double(0.1), "0.1", true, 0, 0.1),
    Row(.double(0), "0", false, 0, 0),
    Row(.double(-0.0), "-0", false, 0, 0),
    Row(.double(1e300), "1e+300", true, .max, 1e300),
    Row(.double(-1e300), "-1e+300", true, .min, -1e300),
    Row(.double(.infinity), "inf", true, .max, .infinity),
    Row(.double(0x1p63), "9.223372036854776e+18", true, .max, 0x1p63),
    Row(.double(-0x1p63), "-9.223372036854776e+18", true, .min, -0x1p63),
    Row(.string("true"), "true", true, 0, 0),
    Row(.string("YES"), "YES", true, 0, 0),
    Row(.string("yes"), "yes", true, 0, 0),
    Row(.string("True"), "True", true, 0, 0),
    Row(.string("1"), "1", true, 1, 1),
    Row(.string(" 7"), " 7", true, 7, 7),
    Row(.string("+01"), "+01", true, 1, 1),
    Row(.string("-09"), "-09", true, -9, -9),
    Row(.string("0"), "0", false, 0, 0),
    Row(.string("no"), "no", false, 0, 0),
    Row(.string("false"), "false", false, 0, 0),
    Row(.string(""), "", false, 0, 0),
    Row(.string("on"), "on", false, 0, 0),
    Row(.string("123"), "123", true, 123, 123),
    Row(.string("123.4"), "123.4", true, 123, 123.4),
    Row(.string("123abc"), "123abc", true, 123, 123),
    Row(.string("1e3"), "1e3", true, 1, 1000),
    Row(.string("99999999999999999999"), "99999999999999999999", true, .max, 1e20),
    Row(.string("-99999999999999999999"), "-99999999999999999999", true, .min, -1e20),
    Row(.data(Data([1])), nil, false, 0, 0),
    Row(.date(Date(timeIntervalSinceReferenceDate: 1)), nil, false, 0, 0),
    Row(.array([.integer(1)]), nil, false, 0, 0),
    Row(.dictionary(["a": .integer(1)]), nil, false, 0, 0),
  ]

  @Test(arguments: rows) func `each getter reads each type`(_ row: Row) {
    store.set(row.value.foundationObject, forKey: "k")
    #expect(store.string(forKey: "k") == row.string)
    #expect(store.bool(forKey: "k") == row.bool)
    #expect(store.longLong(forKey: "k") == row.integer)
    #expect(store.double(forKey: "k") == row.double)
  }

  @Test func `no number is 0 as an integer, and true`() {
    store.set(Double.nan, forKey: "k")
    #expect(store.longLong(forKey: "k") == 0)
    #expect(store.double(forKey: "k").isNaN)
    #expect(store.bool(forKey: "k"))
  }

  @Test func `a missing value is nil, false or 0`() {
    #expect(store.object(forKey: "k") == nil)
    #expect(store.string(forKey: "k") == nil)
    #expect(store.array(forKey: "k") == nil)
    #expect(store.dictionary(forKey: "k") == nil)
    #expect(store.data(forKey: "k") == nil)
    #expect(!store.bool(forKey: "k"))
    #expect(store.longLong(forKey: "k") == 0)
    #expect(store.double(forKey: "k") == 0)
  }

  @Test func `containers and data are nil where the type is another`() {
    store.set("text", forKey: "text")
    store.set(["a"], forKey: "array")
    store.set(["a": 1], forKey: "dictionary")
    store.set(Data([1, 2]), forKey: "data")
    #expect(store.array(forKey: "text") == nil)
    #expect(store.array(forKey: "dictionary") == nil)
    #expect(store.dictionary(forKey: "array") == nil)
    #expect(store.data(forKey: "text") == nil)
    #expect(store.array(forKey: "array") as? [String] == ["a"])
    #expect(store.dictionary(forKey: "dictionary") as? [String: Int] == ["a": 1])
    #expect(store.data(forKey: "data") == Data([1, 2]))
  }

  @Test func `a stored bool casts as every kind of number, and so do numbers`() {
    store.set(true, forKey: "bool")
    store.set(Int64(1), forKey: "one")
    store.set(2.0, forKey: "two")
    #expect(store.object(forKey: "bool") is NSNumber)
    #expect(store.object(forKey: "bool") as? Bool == true)
    #expect(store.object(forKey: "bool") as? Int == 1)
    #expect(store.object(forKey: "bool") as? Int64 == 1)
    #expect(store.object(forKey: "bool") as? Double == 1)
    #expect(store.object(forKey: "one") as? Bool == true)
    #expect(store.object(forKey: "two") as? Bool == nil)
    #expect(store.object(forKey: "two") as? Int == 2)
    #expect(store.object(forKey: "two") as? Double == 2)
  }

  @Test func `numbers within containers are NSNumber too`() throws {
    store.set(["flag": true, "list": [1, 2.5]] as [String: Any], forKey: "k")
    let dictionary = try #require(store.dictionary(forKey: "k"))
    #expect(dictionary["flag"] is NSNumber)
    #expect(dictionary["flag"] as? Int == 1)
    #expect(dictionary["flag"] as? Bool == true)
    let list = try #require(dictionary["list"] as? [Any])
    #expect(list.allSatisfy { $0 is NSNumber })
    #expect(list as? [Double] == [1, 2.5])
    let all = store.dictionaryRepresentation
    #expect((all["k"] as? [String: Any])?["flag"] is NSNumber)
  }
}
