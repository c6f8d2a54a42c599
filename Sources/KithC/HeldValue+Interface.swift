// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

public import CKith
internal import FoundationEssentials
internal import Kith
internal import KithValues

private func value(_ value: Pointer) -> HeldValue? { Registry.shared.object(value, HeldValue.self) }

private func content(_ pointer: Pointer) -> PropertyListValue? { value(pointer)?.content }

extension PropertyListValue {
  /// A new handle for the program.
  var handle: OpaquePointer? { HeldValue(self).handle }
}

// MARK: - Making

@c @implementation
public func kith_value_new_bool(_ value: Bool) -> Pointer {
  PropertyListValue.bool(value).handle
}

@c @implementation
public func kith_value_new_integer(_ value: Int64) -> Pointer {
  PropertyListValue.integer(value).handle
}

@c @implementation
public func kith_value_new_double(_ value: Double) -> Pointer {
  PropertyListValue.double(value).handle
}

@c @implementation
public func kith_value_new_date(_ seconds: Double) -> Pointer {
  PropertyListValue.date(Date(timeIntervalSinceReferenceDate: seconds)).handle
}

@c @implementation
public func kith_value_new_string(_ text: Text, _ length: Int) -> Pointer {
  guard let text = try? Argument.text(text, length, "text") else { return nil }
  return PropertyListValue.string(text).handle
}

@c @implementation
public func kith_value_new_data(_ bytes: UnsafeRawPointer?, _ length: Int) -> Pointer {
  guard let bytes = try? Argument.bytes(bytes, length, "bytes") else { return nil }
  return PropertyListValue.data(Data(bytes)).handle
}

@c @implementation
public func kith_value_new_array() -> Pointer { PropertyListValue.array([]).handle }

@c @implementation
public func kith_value_new_dictionary() -> Pointer {
  PropertyListValue.dictionary([:]).handle
}

@c @implementation
public func kith_value_copy(_ pointer: Pointer) -> Pointer {
  value(pointer)?.copy.handle
}

@c @implementation
public func kith_value_append(_ array: Pointer, _ element: Pointer, _ error: ErrorOut) -> Bool {
  succeeds(error) {
    let array = try Argument.object(array, "array", HeldValue.self)
    try array.append(Argument.object(element, "element"))
  }
}

@c @implementation
public func kith_value_put(
  _ dictionary: Pointer, _ name: Text, _ length: Int, _ value: Pointer, _ error: ErrorOut
) -> Bool {
  succeeds(error) {
    let dictionary = try Argument.object(dictionary, "dictionary", HeldValue.self)
    let name = try Argument.text(name, length, "name")
    try dictionary.put(value == nil ? nil : Argument.object(value, "value"), name)
  }
}

// MARK: - Looking into

@c @implementation
public func kith_value_type(_ pointer: Pointer) -> kith_type {
  value(pointer)?.type ?? KITH_NONE
}

extension PropertyListValue {
  var asBool: Bool? { if case .bool(let bool) = self { bool } else { nil } }

  var asInteger: Int64? {
    switch self {
    case .integer(let integer): integer
    case .double(let double): Int64(exactly: double)
    default: nil
    }
  }

  var asDouble: Double? {
    switch self {
    case .double(let double): double
    case .integer(let integer): Double(exactly: integer)
    default: nil
    }
  }
}

@c @implementation
public func kith_value_get_bool(_ value: Pointer, _ otherwise: Bool) -> Bool {
  content(value)?.asBool ?? otherwise
}

@c @implementation
public func kith_value_get_integer(_ value: Pointer, _ otherwise: Int64) -> Int64 {
  content(value)?.asInteger ?? otherwise
}

@c @implementation
public func kith_value_get_double(_ value: Pointer, _ otherwise: Double) -> Double {
  content(value)?.asDouble ?? otherwise
}

@c @implementation
public func kith_value_get_date(_ value: Pointer, _ otherwise: Double) -> Double {
  guard case .date(let date)? = content(value) else { return otherwise }
  return date.timeIntervalSinceReferenceDate
}

@c @implementation
public func kith_value_get_string(_ pointer: Pointer, _ length: LengthOut) -> Text {
  guard let value = value(pointer), value.type == KITH_STRING else { return nil }
  return value.text?.text(length)
}

@c @implementation
public func kith_value_get_data(_ pointer: Pointer, _ length: LengthOut) -> UnsafeRawPointer? {
  guard let value = value(pointer), value.type == KITH_DATA else { return nil }
  return UnsafeRawPointer(value.text?.text(length))
}

@c @implementation
public func kith_value_count(_ pointer: Pointer) -> Int { value(pointer)?.count ?? 0 }

@c @implementation
public func kith_value_at(_ pointer: Pointer, _ index: Int) -> Pointer {
  value(pointer)?.element(at: index)
}

@c @implementation
public func kith_value_name_at(_ dictionary: Pointer, _ index: Int, _ length: LengthOut) -> Text {
  value(dictionary)?.name(at: index)?.text(length)
}

@c @implementation
public func kith_value_member(_ dictionary: Pointer, _ name: Text) -> Pointer {
  guard let name = try? Argument.text(name, "name") else { return nil }
  return value(dictionary)?.member(name)
}

@c @implementation
public func kith_value_equal(_ one: Pointer, _ other: Pointer) -> Bool {
  guard let one = try? value(one)?.value, let other = try? value(other)?.value else { return false }
  return one == other
}

// MARK: - JSON and property lists

@c @implementation
public func kith_value_json(_ pointer: Pointer, _ length: LengthOut) -> Text {
  value(pointer)?.json.text(length)
}

@c @implementation
public func kith_value_from_json(_ text: Text, _ length: Int, _ error: ErrorOut) -> Pointer {
  newValue(error) {
    let text = try Argument.text(text, length, "text")
    do {
      return try ValueJSON.value(text)
    } catch {
      throw KithError(.unsupportedValue, "The text is no JSON of a value: \(error).")
    }
  }
}

@c @implementation
public func kith_value_plist(_ pointer: Pointer, _ length: LengthOut) -> UnsafeRawPointer? {
  UnsafeRawPointer(value(pointer)?.plist.text(length))
}

@c @implementation
public func kith_value_from_plist(
  _ bytes: UnsafeRawPointer?, _ length: Int, _ error: ErrorOut
) -> Pointer {
  newValue(error) {
    let bytes = try Argument.bytes(bytes, length, "bytes")
    do {
      var reader = try BinaryPropertyListReader(Data(bytes))
      return try reader.read().value()
    } catch {
      throw KithError(
        .unsupportedValue, "The bytes are no binary property list of a value: \(error).")
    }
  }
}
