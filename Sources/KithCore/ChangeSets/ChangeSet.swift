internal import KithCrypto
internal import SwiftProtobuf

/// A change set with a valid signature, and the sealed entries received.
package struct ChangeSet: Hashable, Sendable {
  package var header: ChangeSetHeader
  package var reference: ChangeSetReference
  package var stored: StoredChangeSet
  /// Nil: judging opens them.
  var opened: OpenedEntries?

  package init(header: ChangeSetHeader, stored: StoredChangeSet) {
    self.header = header
    self.stored = stored
    reference = ChangeSetReference(
      device: header.chain.device, incarnation: header.chain.incarnation,
      sequence: header.sequence, digest: Blake2b.digest256(stored.header))
  }

  /// Bytes with overhead, counted against its author.
  var weight: Int {
    stored.entries.values.reduce(Limits.overheadBytes + stored.header.count) {
      $0 + $1.count + Limits.overheadBytes
    }
  }

  var wire: WireChangeSet { stored.wire }

  /// Without its opened entries, which take as much memory again.
  var sealed: Self {
    var sealed = self
    sealed.opened = nil
    return sealed
  }

  /// The indices of its entries, ascending.
  var indices: [UInt32] { stored.entries.keys.sorted() }

  /// The rows of its header and of these entries.
  func rows(of indices: some Sequence<UInt32>, in store: StoreIdentifier) -> [Mutation] {
    [.put(.store(store, .changeSet(reference)), stored.row)]
      + indices.compactMap { index in
        stored.entries[index].map { .put(.store(store, .entry(reference, index)), $0) }
      }
  }
}

extension StoredChangeSet {
  /// Its message without entries, which have rows of their own.
  package var row: [UInt8] {
    var row: [UInt8] = []
    row.reserveCapacity(header.count + signature.count + 12)
    row.append(header, asField: 1)
    row.append(signature, asField: 2)
    return row
  }

  package init?(row: [UInt8]) {
    guard let wire = try? WireChangeSet(serializedBytes: row) else { return nil }
    self.init(header: [UInt8](wire.header), signature: [UInt8](wire.signature))
  }

  /// Reads the rows of ``ChangeSetReference/keys(_:in:)``; nil without the first. An entry without
  /// a row is missing.
  init?(_ rows: some Collection<[UInt8]?>, entries indices: [UInt32]) {
    guard let row = rows.first ?? nil else { return nil }
    self.init(row: row)
    for (index, box) in zip(indices, rows.dropFirst()) { entries[index] = box }
  }

  var wire: WireChangeSet {
    var wire = WireChangeSet()
    wire.header = .init(header)
    wire.signature = .init(signature)
    wire.entries = entries.sorted { $0.key < $1.key }.map { index, box in
      var entry = WireSealedEntry()
      entry.index = index
      entry.box = .init(box)
      return entry
    }
    return wire
  }
}

extension [UInt8] {
  /// Appends a field as SwiftProtobuf does, but without a `Data`; none if there are no bytes.
  fileprivate mutating func append(_ bytes: [UInt8], asField number: UInt8) {
    guard !bytes.isEmpty else { return }
    append(CanonicalReader.Tag.bytes(number))
    var length = bytes.count
    while length > 0x7f {
      append(UInt8(length & 0x7f) | 0x80)
      length >>= 7
    }
    append(UInt8(length))
    append(contentsOf: bytes)
  }
}

/// Stateless checks of a well-formed change set.
enum CheckedChangeSet: Hashable {
  case sound(ChangeSet)
  /// The signature or a digest is wrong; the claimed chain.
  case unsound(ChainID)
  /// Validly signed, in an unknown format.
  case unknownFormat(ChainID)

  /// Pure, so many can be checked at once. Nil if malformed: no honest device relays it.
  init?(
    _ wire: WireChangeSet, account: AccountID, concurrently: InboundMessage.Repeater? = nil
  ) {
    let bytes = [UInt8](wire.header)
    guard let signature = try? Signature(wire.signature),
      wire.entries.isStrictlyAscending(by: \.index),
      wire.entries.reduce(bytes.count, { $0 + $1.box.count }) <= Limits.changeSetBoxBytes
    else { return nil }
    let header: ChangeSetHeader?
    let chain: ChainID
    let entries: Int
    do throws(ChangeSetHeader.Problem) {
      let decoded = try ChangeSetHeader(decoding: bytes)
      (header, chain, entries) = (decoded, decoded.chain, decoded.entryDigests.count)
    } catch {
      guard case .unknownFormat(let claimed, let count) = error else { return nil }
      (header, chain, entries) = (nil, claimed, count)
    }
    guard wire.entries.allSatisfy({ $0.index < entries }) else { return nil }
    guard
      chain.device.isValid(
        signature, for: ChangeSetHeader.signedBytes(account: account, header: bytes))
    else {
      self = .unsound(chain)
      return
    }
    guard let header else {
      self = .unknownFormat(chain)
      return
    }
    guard let entries = Self.entries(of: wire, matching: header.entryDigests, concurrently) else {
      self = .unsound(chain)
      return
    }
    self = .sound(
      ChangeSet(
        header: header,
        stored: StoredChangeSet(header: bytes, signature: signature.bytes, entries: entries)))
  }

  /// The boxes by index; nil unless each has its digest.
  private static func entries(
    of wire: WireChangeSet, matching digests: [Digest256], _ concurrently: InboundMessage.Repeater?
  ) -> [UInt32: [UInt8]]? {
    let sealed = wire.entries
    let boxes = values(sealed.count, by: 32, with: concurrently) { index -> [UInt8]? in
      let box = [UInt8](sealed[index].box)
      return Blake2b.digest256(box) == digests[Int(sealed[index].index)] ? box : nil
    }
    var entries: [UInt32: [UInt8]] = [:]
    entries.reserveCapacity(sealed.count)
    for (entry, box) in zip(sealed, boxes) {
      guard let box else { return nil }
      entries[entry.index] = box
    }
    return entries
  }
}
