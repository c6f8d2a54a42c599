package import KithCrypto

/// A device's signed word of what it covers, which other devices pass on but cannot forge
/// (`Docs/Protocol/words.md`).
package struct Word: Hashable, Sendable {
  /// Orders a device's words: the latest counts.
  package struct Version: Hashable, Comparable, Sendable {
    /// At most ``Word/lastNumber``.
    package var number: UInt64
    /// ``ProcessID/shortName`` of the process that made it.
    package var process: UInt64

    package static func < (left: Self, right: Self) -> Bool {
      (left.number, left.process) < (right.number, right.process)
    }
  }

  static let lastNumber: UInt64 = 1 << 63 - 1

  package let device: DeviceID
  package let version: Version
  package let content: WordContent
  let signature: Signature

  init(_ content: WordContent, version: Version, account: AccountID, keys: DeviceKeys) {
    device = keys.id
    self.version = version
    self.content = content
    signature = keys.signing.sign(
      Self.signedBytes(account: account, device: keys.id, version: version, body: content.body))
  }

  /// Does not check the signature.
  init(_ said: WordGroup.Said, by device: DeviceID, content: WordContent) {
    self.device = device
    version = said.version
    self.content = content
    signature = said.signature
  }

  func isSigned(in account: AccountID) -> Bool {
    device.isValid(
      signature,
      for: Self.signedBytes(
        account: account, device: device, version: version, body: content.body))
  }

  /// The domain, a zero byte, the account's id, the device's id, the process and the number as
  /// 64-bit big-endian, the content's bytes.
  static func signedBytes(
    account: AccountID, device: DeviceID, version: Version, body: [UInt8]
  ) -> [UInt8] {
    Array("kith word v1".utf8) + [0] + account.bytes + device.bytes
      + version.process.bigEndianBytes + version.number.bigEndianBytes + body
  }
}

/// How much a device covers of all its stores.
///
/// Devices with equal vectors make equal contents, byte for byte, so that a message has one for all
/// of them.
package struct WordContent: Hashable, Sendable {
  package struct Store: Hashable, Sendable {
    /// The digest of the whole vector.
    package var digest: Digest128
    /// Entries of the chains that published last, at most ``Limits/wordEntries`` in all stores: they
    /// tell something while vectors still differ.
    package var latest: [ChainID: UInt64] = [:]
    /// Whether the device is below the store's horizon.
    package var isBelow = false
  }

  package let stores: [StoreIdentifier: Store]
  let body: [UInt8]

  init(_ stores: [StoreIdentifier: Store]) {
    self.stores = stores
    var wire = WireWordContent()
    wire.stores = stores.sorted { $0.key < $1.key }.map { identifier, store in
      var word = WireStoreWord()
      word.store = identifier.rawValue
      word.digest = .init(store.digest.bytes)
      word.latest = store.latest.sorted { $0.key < $1.key }.map {
        WireVectorEntry($0.key, $0.value)
      }
      word.belowHorizon = store.isBelow
      return word
    }
    body = wire.encodedBytes()
  }

  /// Nil if malformed.
  init?(_ body: [UInt8]) {
    guard body.count <= Limits.wordBytes, MessageOutline.wordContent.permits(body),
      let wire = try? WireWordContent(serializedBytes: body)
    else { return nil }
    var stores: [(key: StoreIdentifier, store: Store)] = []
    for word in wire.stores {
      guard let identifier = StoreIdentifier(word.store), let digest = try? Digest128(word.digest),
        let latest = [ChainID: UInt64](word.latest)
      else { return nil }
      let store = Store(digest: digest, latest: latest, isBelow: word.belowHorizon)
      stores.append((identifier, store))
    }
    guard stores.isStrictlyAscending(by: \.key) else { return nil }
    self.stores = Dictionary(stores.map { ($0.key, $0.store) }, uniquingKeysWith: { old, _ in old })
    self.body = body
  }

  package static func == (left: Self, right: Self) -> Bool { left.body == right.body }

  package func hash(into hasher: inout Hasher) { hasher.combine(body) }

  /// Digests a vector in order of its chains: the device's id, then incarnation and sequence as
  /// 64-bit big-endian. O(*n* log *n*).
  static func digest(of vector: [ChainID: UInt64]) -> Digest128 {
    var hasher = Blake2b.Hasher()
    for (chain, sequence) in vector.sorted(by: { $0.key < $1.key }) {
      hasher.update(chain.device)
      hasher.update(chain.incarnation.rawValue.bigEndianBytes)
      hasher.update(sequence.bigEndianBytes)
    }
    return Digest128(hasher.digest256())
  }
}

/// A message's words with one content.
package struct WordGroup: Hashable, Sendable {
  /// A word without its content.
  package struct Said: Hashable, Sendable {
    /// The device's ``DeviceID/shortName``.
    package var device: UInt64
    package var version: Word.Version
    var signature: Signature
  }

  package var content: WordContent
  package var said: [Said] = []

  /// Groups words by content, in order of their devices.
  static func groups(of words: some Sequence<Word>) -> [WordGroup] {
    var groups: [WordGroup] = []
    var indices: [WordContent: Int] = [:]
    for word in words.sorted(by: { $0.device < $1.device }) {
      let index = indices[word.content] ?? groups.count
      if index == groups.count {
        indices[word.content] = index
        groups.append(WordGroup(content: word.content))
      }
      groups[index].said.append(
        Said(device: word.device.shortName, version: word.version, signature: word.signature))
    }
    return groups
  }

  private init(content: WordContent) { self.content = content }

  /// Nil if malformed, also if nobody says it.
  init?(_ wire: WireWords) {
    guard !wire.said.isEmpty, let content = WordContent([UInt8](wire.content)) else { return nil }
    self.content = content
    for said in wire.said {
      guard said.number <= Word.lastNumber, let signature = try? Signature(said.signature) else {
        return nil
      }
      let version = Word.Version(number: said.number, process: said.process)
      self.said.append(Said(device: said.device, version: version, signature: signature))
    }
  }

  var wire: WireWords {
    var wire = WireWords()
    wire.content = .init(content.body)
    wire.said = said.map { said in
      var word = WireSaid()
      word.device = said.device
      word.process = said.version.process
      word.number = said.version.number
      word.signature = .init(said.signature.bytes)
      return word
    }
    return wire
  }

  /// More bytes than it takes in a message.
  var sizeBound: Int { 16 + content.body.count + 110 * said.count }
}

extension DeviceID {
  /// The first 8 bytes as a big-endian number; it names a device in words.
  var shortName: UInt64 { bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}

extension ProcessID {
  /// The first 8 bytes as a big-endian number; it names a process in words.
  package var shortName: UInt64 { digest.bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) } }
}

extension Digest128 {
  /// The first 16 bytes.
  init(_ digest: Digest256) { self.init { $0.copyBytes(from: digest.bytes.prefix(16)) } }
}

extension FixedWidthInteger {
  var bigEndianBytes: [UInt8] { withUnsafeBytes(of: bigEndian, Array.init) }
}
