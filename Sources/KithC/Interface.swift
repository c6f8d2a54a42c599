// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

internal import CKith
internal import KithCore

// The functions of kith.h. The header documents them, and the compiler checks that they are those.

/// A handle, or NULL.
public typealias Pointer = OpaquePointer?
/// UTF-8 that ends with a zero byte, or NULL.
public typealias Text = UnsafePointer<CChar>?
/// Texts that end with NULL, or NULL.
public typealias Texts = UnsafePointer<Text>?
/// Where a length goes, or NULL.
public typealias Length = UnsafeMutablePointer<Int>?
/// Where an error goes, or NULL.
public typealias ErrorPlace = UnsafeMutablePointer<Pointer>?

private let version = CText(Software.version)

@c @implementation
public func kith_version() -> Text { version.text }

@c @implementation
public func kith_free(_ handle: UnsafeMutableRawPointer?) -> Bool {
  guard let handle = Handle(handle.map { OpaquePointer($0) }),
    let object = Registry.shared.remove(handle)
  else { return false }
  object.end()
  return true
}
