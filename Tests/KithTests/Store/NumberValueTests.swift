import Kith
import Testing

/// Numbers of every width: what fits comes back, what does not is no value of the type.
struct NumberValueTests {
  @Test func integersOfEveryWidthComeBack() throws {
    func roundTrip<Value: StoreValue & FixedWidthInteger>(_ type: Value.Type) throws {
      for value in [Value.min, 0, 1] {
        #expect(try value.storedValue() == .integer(Int64(value)))
        #expect(Value(propertyListValue: .integer(Int64(value))) == value)
      }
    }
    try roundTrip(Int.self)
    try roundTrip(Int8.self)
    try roundTrip(Int16.self)
    try roundTrip(Int32.self)
    try roundTrip(Int64.self)
    try roundTrip(UInt.self)
    try roundTrip(UInt8.self)
    try roundTrip(UInt16.self)
    try roundTrip(UInt32.self)
    try roundTrip(UInt64.self)
  }

  @Test func integersOutOfRangeAreOfAnotherType() {
    #expect(Int8(propertyListValue: 128) == nil)
    #expect(UInt(propertyListValue: -1) == nil)
    #expect(UInt16(propertyListValue: 65_536) == nil)
    #expect(Int32(propertyListValue: .double(7)) == 7)
    #expect(Int32(propertyListValue: .double(7.5)) == nil)
    #expect(UInt8(propertyListValue: true) == nil)
  }

  @Test func unsignedIntegersBeyondSignedOnesAreRefused() {
    let error = #expect(throws: KithError.self) { try UInt64.max.storedValue() }
    #expect(error?.code == .unsupportedValue)
  }

  @Test func floatsAreExactAsDoublesAndNearestBack() throws {
    #expect(try Float(0.1).storedValue() == .double(Double(Float(0.1))))
    #expect(Float(propertyListValue: .double(0.1)) == 0.1)
    #expect(Float(propertyListValue: 3) == 3)
    #expect(Float(propertyListValue: .double(1e300)) == nil)
    #expect(Float(propertyListValue: .double(.infinity)) == .infinity)
    #expect(Float(propertyListValue: 16_777_217) == nil)
  }
}
