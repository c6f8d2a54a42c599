internal import CKith
internal import FoundationEssentials
internal import Glibc
internal import Kith

/// Reads what a C program hands over. Everything may be missing or wrong.
enum Argument {
  /// The length of a text that ends at its first zero byte, as KITH_TERMINATED is read here.
  static let terminated = -1

  static func object<Object: Handled>(
    _ pointer: OpaquePointer?, _ name: StaticString, _ type: Object.Type = Object.self
  ) throws(KithError) -> Object {
    if let object = Registry.shared.object(pointer, type) { return object }
    throw .invalid(
      pointer == nil
        ? "The argument \(name) is NULL."
        : "The argument \(name) is no handle of its kind, or was freed before.")
  }

  /// Nil for NULL.
  static func value(_ pointer: OpaquePointer?) throws(KithError) -> PropertyListValue? {
    try pointer == nil ? nil : object(pointer, "value", HeldValue.self).value
  }

  /// Text that ends with a zero byte.
  static func text(_ text: UnsafePointer<CChar>?, _ name: StaticString) throws(KithError) -> String
  {
    guard let text else { throw .invalid("The argument \(name) is NULL.") }
    return try self.text(text, strlen(text), name)
  }

  static func text(
    _ text: UnsafePointer<CChar>?, _ length: Int, _ name: StaticString
  ) throws(KithError) -> String {
    if length == terminated { return try self.text(text, name) }
    if let valid = String(validating: try bytes(text, length, name), as: UTF8.self) { return valid }
    throw .invalid("The argument \(name) is not valid UTF-8.")
  }

  static func key(
    _ key: UnsafePointer<CChar>?, _ length: Int, _ name: StaticString = "key"
  ) throws(KithError) -> String {
    let valid: String?
    if length == terminated {
      guard let key else { throw .invalid("The argument \(name) is NULL.") }
      valid = String(validatingCString: key)
    } else {
      valid = String(validating: try bytes(key, length, name), as: UTF8.self)
    }
    if let valid { return valid }
    throw KithError(.invalidKey, "The \(name) is not valid UTF-8.")
  }

  /// Empty for NULL: all keys begin with it.
  static func prefix(_ prefix: UnsafePointer<CChar>?, _ length: Int) throws(KithError) -> String {
    try prefix == nil ? "" : key(prefix, length, "prefix")
  }

  /// Throws if a bit is set that this version does not know: a later one may mean something by it.
  static func flags(_ flags: UInt32, known: Int, _ name: StaticString) throws(KithError) {
    guard flags & ~UInt32(known) == 0 else {
      throw .invalid("The argument \(name) has a bit that means nothing here.")
    }
  }

  /// Texts that end with NULL; nil for none.
  static func texts(
    _ texts: UnsafePointer<UnsafePointer<CChar>?>?, _ name: StaticString
  ) throws(KithError) -> [String]? {
    guard var next = texts else { return nil }
    var all: [String] = []
    while let text = next.pointee {
      all.append(try self.text(text, name))
      next += 1
    }
    return all
  }

  static func bytes(
    _ bytes: UnsafeRawPointer?, _ length: Int, _ name: StaticString
  ) throws(KithError) -> UnsafeRawBufferPointer {
    guard length >= 0, bytes != nil || length == 0 else {
      throw .invalid("The argument \(name) is NULL, or its length too large.")
    }
    return UnsafeRawBufferPointer(start: bytes, count: length)
  }

  /// A struct that begins with its size. One of a later header may be larger, if all that this version
  /// does not know is zero. There is no earlier header yet, whose struct would be smaller.
  static func options<Options>(
    _ options: UnsafePointer<Options>?, _ standard: Options, _ name: StaticString
  ) throws(KithError) -> Options {
    guard let options else { return standard }
    let known = MemoryLayout<Options>.size
    let raw = UnsafeRawPointer(options)
    let size = raw.load(as: Int.self)
    guard (known...4_096).contains(size),
      UnsafeRawBufferPointer(start: raw, count: size).dropFirst(known).allSatisfy({ $0 == 0 })
    else {
      throw .invalid("The size in \(name) is not that of its struct, or a member is unknown here.")
    }
    return options.pointee
  }
}

extension PropertyListValue {
  static func texts(_ texts: [String]) -> Self { .array(texts.map { .string($0) }) }

  static func number(_ number: UInt64) -> Self { .integer(Int64(clamping: number)) }

  static func number(_ number: Int) -> Self { .integer(Int64(number)) }

  /// A dictionary without the members that are nil.
  static func members(_ members: [String: PropertyListValue?]) -> Self {
    .dictionary(members.compactMapValues(\.self))
  }
}
