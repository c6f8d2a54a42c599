// swift-format-ignore-file: AllPublicDeclarationsHaveDocumentation
// kith.h documents them.

public import CKith
internal import Kith
internal import KithCore
internal import Synchronization

/// A `kith_changes`.
final class Changes: Handled {
  private let descriptor: Descriptor
  private let changes: StoreChanges

  init(of store: KeyValueStore, includingOwnWrites: Bool) throws(KithError) {
    let descriptor = try Descriptor()
    self.descriptor = descriptor
    changes = store.changes(includingOwnWrites: includingOwnWrites) { descriptor.set(true) }
    if changes.isReady { descriptor.set(true) }
  }

  var number: CInt { descriptor.number }

  var haveEnded: Bool { changes.hasEnded }

  /// The next change; nil if none comes in time. One at a time: own writes update those that wait.
  func next(within milliseconds: CInt) -> KeyValueStore.Change? {
    descriptor.take(within: milliseconds) {
      // A change that comes meanwhile sets it again.
      descriptor.set(false)
      let change = changes.takeFirst()
      if changes.isReady { descriptor.set(true) }
      return change
    } unless: {
      changes.isFinished
    }
  }
}

/// A `kith_change`.
final class Change: Handled {
  let change: KeyValueStore.Change
  private let lent = Mutex(Lent())

  init(_ change: KeyValueStore.Change) {
    self.change = change
  }

  private func item(at index: Int) -> KeyValueStore.Change.Item? {
    change.items.indices.contains(index) ? change.items[index] : nil
  }

  func key(at index: Int) -> CText? {
    item(at: index).map { item in lent.withLock { $0.text(index, of: CText(item.key.text)) } }
  }

  func value(at index: Int, isNew: Bool) -> OpaquePointer? {
    guard let item = item(at: index), let value = isNew ? item.new : item.old else { return nil }
    return lend(value, at: 2 * index + (isNew ? 1 : 0))
  }

  var superseded: OpaquePointer? { lend(.texts(change.superseded.map(\.text)), at: -1) }

  private func lend(
    _ value: @autoclosure () -> PropertyListValue, at index: Int
  ) -> OpaquePointer? {
    lent.withLock { $0.handle(index, of: HeldValue(value(), isBorrowed: true)) }?.pointer
  }

  var reason: kith_reason {
    switch change.reason {
    case .ownWrite: KITH_OWN_WRITE
    case .externalChange: KITH_EXTERNAL_CHANGE
    case .initialSyncChange: KITH_INITIAL_SYNC_CHANGE
    case .quotaViolationChange: KITH_QUOTA_VIOLATION_CHANGE
    case .accountChange: KITH_ACCOUNT_CHANGE
    }
  }
}

// MARK: - Interface

private func changes(_ changes: Pointer) -> Changes? {
  Registry.shared.object(changes, Changes.self)
}

private func change(_ change: Pointer) -> Change? {
  Registry.shared.object(change, Change.self)
}

@c @implementation
public func kith_store_changes(_ store: Pointer, _ flags: UInt32, _ error: ErrorOut) -> Pointer {
  new(error) {
    let store = try Argument.object(store, "store", Store.self).opened()
    try Argument.flags(flags, known: KITH_OWN_WRITES, "flags")
    return try Changes(of: store, includingOwnWrites: flags & UInt32(KITH_OWN_WRITES) != 0)
  }
}

@c @implementation
public func kith_changes_fd(_ pointer: Pointer) -> CInt { changes(pointer)?.number ?? -1 }

@c @implementation
public func kith_changes_next(_ pointer: Pointer, _ milliseconds: CInt) -> Pointer {
  changes(pointer)?.next(within: milliseconds).flatMap { Change($0).handle }
}

@c @implementation
public func kith_changes_have_ended(_ pointer: Pointer) -> Bool {
  changes(pointer)?.haveEnded ?? true
}

@c @implementation
public func kith_change_reason(_ pointer: Pointer) -> kith_reason {
  change(pointer)?.reason ?? KITH_NO_REASON
}

@c @implementation
public func kith_change_count(_ pointer: Pointer) -> Int {
  change(pointer)?.change.items.count ?? 0
}

@c @implementation
public func kith_change_key(_ pointer: Pointer, _ index: Int, _ length: LengthOut) -> Text {
  change(pointer)?.key(at: index)?.text(length)
}

@c @implementation
public func kith_change_old(_ pointer: Pointer, _ index: Int) -> Pointer {
  change(pointer)?.value(at: index, isNew: false)
}

@c @implementation
public func kith_change_new(_ pointer: Pointer, _ index: Int) -> Pointer {
  change(pointer)?.value(at: index, isNew: true)
}

@c @implementation
public func kith_change_superseded(_ pointer: Pointer) -> Pointer { change(pointer)?.superseded }

@c @implementation
public func kith_change_is_joined(_ pointer: Pointer) -> Bool {
  change(pointer)?.change.isJoined ?? false
}
