import KithTerminal

/// A store, as `status` and `quota` show it.
struct StoreFacts: Equatable, Sendable {
  /// The store's identifier.
  var identifier: String
  /// The number of shown keys.
  var keys: Int
  /// The number of encoded bytes of the shown values.
  var bytes: Int
  /// The maximum number of keys.
  var limitKeys: Int
  /// The maximum number of bytes.
  var limitBytes: Int
  /// The maximum length of a key, in bytes of UTF-8.
  var limitKeyBytes: Int
  /// The maximum size of a value, in encoded bytes.
  var limitValueBytes: Int
  /// The number of newest writes that the quota hides.
  var hidden = 0
  /// The number of drafts.
  var drafts = 0
  /// The number of refusals that wait to be taken.
  var refusals = 0
  /// The number of quarantined entries.
  var quarantined = 0
  /// Whether a part of it was damaged here and is still missing.
  var isLacking = false
  /// How many change sets were hit, where that is so.
  var missingChangeSets: Int?
  /// How many of their entries were dropped.
  var missingEntries: Int?
  /// The digest of its state in hexadecimal: equal on devices that have exchanged everything.
  var digest: String
  /// The names of the other devices known to have everything that this one published.
  var heldBy: [String] = []
  /// The names of devices whose limits differ.
  var mismatches: [String] = []

  /// Short remarks for people.
  var remarks: String {
    var remarks: [String] = []
    if isLacking { remarks.append("damaged, missing (\(missingText))") }
    if drafts > 0 { remarks.append("\(Humane.count(drafts, "write")) to publish") }
    if hidden > 0 { remarks.append("\(Humane.count(hidden)) hidden") }
    if refusals > 0 { remarks.append("\(Humane.count(refusals)) refused") }
    if quarantined > 0 { remarks.append("\(Humane.count(quarantined)) quarantined") }
    if !mismatches.isEmpty {
      let names = mismatches.map { Columns.printable($0) }.joined(separator: ", ")
      remarks.append("limits differ on \(names)")
    }
    return remarks.joined(separator: ", ")
  }

  /// How much is missing, for people.
  var missingText: String {
    guard let missingChangeSets, missingChangeSets > 0 else { return "it is not known how much" }
    let sets = Humane.count(missingChangeSets, "change set")
    return "\(Humane.count(missingEntries ?? 0, "write")) of \(sets)"
  }

  /// The limits and their use, in JSON.
  var quotaMembers: [String: Document?] {
    [
      "bytes": .int(bytes),
      "hidden": .int(hidden),
      "keys": .int(keys),
      "limits": .object([
        "bytes": .int(limitBytes), "keyBytes": .int(limitKeyBytes), "keys": .int(limitKeys),
        "valueBytes": .int(limitValueBytes),
      ]),
      "refusals": .int(refusals),
      "store": .string(identifier),
    ]
  }

  /// The store in JSON.
  var document: Document {
    let own: [String: Document?] = [
      "digest": .string(digest),
      "damaged": .bool(isLacking),
      "drafts": .int(drafts),
      "heldBy": .strings(heldBy),
      "missingChangeSets": missingChangeSets.map(Document.int),
      "missingEntries": missingEntries.map(Document.int),
      "policyMismatches": .strings(mismatches),
      "quarantined": .int(quarantined),
    ]
    return .object(quotaMembers.merging(own) { _, new in new })
  }
}
