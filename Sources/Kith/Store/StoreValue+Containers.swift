public import KithCore

extension Array: StoreValue where Element: StoreValue {
  /// Makes an array, if all elements are of the type.
  public init?(propertyListValue: PropertyListValue) {
    guard case .array(let values) = propertyListValue else { return nil }
    var elements: [Element] = []
    elements.reserveCapacity(values.count)
    for value in values {
      guard let element = Element(propertyListValue: value) else { return nil }
      elements.append(element)
    }
    self = elements
  }

  /// The elements' values in order.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    var values: [PropertyListValue] = []
    values.reserveCapacity(count)
    for element in self { values.append(try element.propertyListValue()) }
    return .array(values)
  }
}

extension Dictionary: StoreValue where Key == String, Value: StoreValue {
  /// Makes a dictionary, if all values are of the type.
  public init?(propertyListValue: PropertyListValue) {
    guard case .dictionary(let members) = propertyListValue else { return nil }
    var result: [String: Value] = [:]
    for (key, member) in members {
      guard let value = Value(propertyListValue: member) else { return nil }
      result[key] = value
    }
    self = result
  }

  /// The values by name.
  public func propertyListValue() throws(KithError) -> PropertyListValue {
    var members: [String: PropertyListValue] = [:]
    for (key, value) in self { members[key] = try value.propertyListValue() }
    return .dictionary(members)
  }
}
