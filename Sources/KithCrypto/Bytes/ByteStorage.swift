/// Bytes held inline as words, without a heap; they compare as bytes.
@usableFromInline package protocol ByteStorage: Hashable, Comparable, Sendable, BitwiseCopyable {
  init()
}

@usableFromInline package struct Bytes16: ByteStorage {
  @usableFromInline let first: UInt64
  @usableFromInline let second: UInt64

  @inlinable
  package init() {
    first = 0
    second = 0
  }

  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.first == right.first
      ? left.second.bigEndian < right.second.bigEndian
      : left.first.bigEndian < right.first.bigEndian
  }
}

package struct Bytes20: ByteStorage {
  @usableFromInline let head: Bytes16
  @usableFromInline let tail: UInt32

  @inlinable
  package init() {
    head = Bytes16()
    tail = 0
  }

  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail.bigEndian < right.tail.bigEndian : left.head < right.head
  }
}

package struct Bytes24: ByteStorage {
  @usableFromInline let head: Bytes16
  @usableFromInline let tail: UInt64

  @inlinable
  package init() {
    head = Bytes16()
    tail = 0
  }

  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail.bigEndian < right.tail.bigEndian : left.head < right.head
  }
}

@usableFromInline package struct Bytes32: ByteStorage {
  @usableFromInline let head: Bytes16
  @usableFromInline let tail: Bytes16

  @inlinable
  package init() {
    head = Bytes16()
    tail = Bytes16()
  }

  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail < right.tail : left.head < right.head
  }
}

package struct Bytes64: ByteStorage {
  @usableFromInline let head: Bytes32
  @usableFromInline let tail: Bytes32

  @inlinable
  package init() {
    head = Bytes32()
    tail = Bytes32()
  }

  @inlinable
  package static func < (left: Self, right: Self) -> Bool {
    left.head == right.head ? left.tail < right.tail : left.head < right.head
  }
}
