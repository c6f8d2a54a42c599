import KithCore
import Testing

@testable import KithValues

struct GrowingValueTests {
  @Test func growsByCopies() throws {
    var array = GrowingValue([])
    try array.append(GrowingValue(1))
    try array.append(array)
    #expect(array.value == [1, [1]])
    var dictionary = GrowingValue([:])
    try dictionary.put(array, "list")
    try dictionary.put(GrowingValue(true), "list")
    #expect(dictionary.value == ["list": true])
    try dictionary.put(nil, "list")
    #expect(dictionary.value == [:])
    #expect(throws: GrowingValue.Refusal.notADictionary) { try array.put(array, "a") }
    #expect(throws: GrowingValue.Refusal.notAnArray) { try dictionary.append(array) }
  }

  @Test func namesAreDistinct() throws {
    var dictionary = GrowingValue([:])
    try dictionary.put(GrowingValue(1), "\u{e9}")
    #expect(throws: GrowingValue.Refusal.equivalentName) {
      try dictionary.put(GrowingValue(2), "e\u{301}")
    }
    #expect(dictionary.value == ["\u{e9}": 1])
  }

  @Test func depthIsBounded() throws {
    var value = GrowingValue([])
    for _ in 1..<PropertyListValue.maximumDepth {
      var outer = GrowingValue([])
      try outer.append(value)
      value = outer
    }
    var outer = GrowingValue([:])
    #expect(throws: GrowingValue.Refusal.tooDeep) { try outer.put(value, "a") }
    #expect(outer.value == [:])
  }

  /// It would double each time, and nobody could print it.
  @Test func valueInsideItselfIsBounded() throws {
    var value = GrowingValue(["0123456789abcdef"])
    var steps = 0
    #expect(throws: GrowingValue.Refusal.tooLarge) {
      while true {
        let copy = value
        value = GrowingValue([])
        try value.append(copy)
        try value.append(copy)
        steps += 1
      }
    }
    #expect(steps == 20)
  }

  @Test func replacedMembersDoNotCount() throws {
    let large = GrowingValue(.string(String(repeating: "a", count: 40 << 20)))
    var dictionary = GrowingValue([:])
    for _ in 0..<3 { try dictionary.put(large, "a") }
    #expect(throws: GrowingValue.Refusal.tooLarge) { try dictionary.put(large, "b") }
    let name = String(repeating: "n", count: 40 << 20)
    #expect(throws: GrowingValue.Refusal.tooLarge) { try dictionary.put(GrowingValue(1), name) }
    try dictionary.put(nil, "a")
    try dictionary.put(large, "b")
  }
}
