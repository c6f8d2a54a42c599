/// Bytes held inline as words. They need no heap; equality and hashing work by word, order by byte.
@usableFromInline package protocol ByteStorage: Hashable, Comparable, Sendable, BitwiseCopyable {
  /// Makes a value of zero bytes.
  init()
}

/// Sixteen bytes inline.
@usableFromInline package struct Bytes16: ByteStorage {
  @usableFromInline let first: UInt64
  @usableFromInline let second: UInt64

  /// Makes a value of zero bytes.
  @inlinable
  package init() {
    first = 0
    second = 0
  }

  /// Returns whether `left` comes before `right`, compared as bytes.
  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.first == right.first
      ? left.second.bigEndian < right.second.bigEndian
      : left.first.bigEndian < right.first.bigEndian
  }
}

/// Twenty bytes inline.
package struct Bytes20: ByteStorage {
  @usableFromInline let head: Bytes16
  @usableFromInline let tail: UInt32

  /// Makes a value of zero bytes.
  @inlinable
  package init() {
    head = Bytes16()
    tail = 0
  }

  /// Returns whether `left` comes before `right`, compared as bytes.
  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail.bigEndian < right.tail.bigEndian : left.head < right.head
  }
}

/// Twenty-four bytes inline.
package struct Bytes24: ByteStorage {
  @usableFromInline let head: Bytes16
  @usableFromInline let tail: UInt64

  /// Makes a value of zero bytes.
  @inlinable
  package init() {
    head = Bytes16()
    tail = 0
  }

  /// Returns whether `left` comes before `right`, compared as bytes.
  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail.bigEndian < right.tail.bigEndian : left.head < right.head
  }
}

/// Thirty-two bytes inline.
@usableFromInline package struct Bytes32: ByteStorage {
  @usableFromInline let head: Bytes16
  @usableFromInline let tail: Bytes16

  /// Makes a value of zero bytes.
  @inlinable
  package init() {
    head = Bytes16()
    tail = Bytes16()
  }

  /// Returns whether `left` comes before `right`, compared as bytes.
  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail < right.tail : left.head < right.head
  }
}

/// Sixty-four bytes inline.
package struct Bytes64: ByteStorage {
  @usableFromInline let head: Bytes32
  @usableFromInline let tail: Bytes32

  /// Makes a value of zero bytes.
  @inlinable
  package init() {
    head = Bytes32()
    tail = Bytes32()
  }

  /// Returns whether `left` comes before `right`, compared as bytes.
  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail < right.tail : left.head < right.head
  }
}
