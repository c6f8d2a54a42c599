import KithCore

/// Where the rows of stores, change sets and drafts are, kept in memory so that a commit looks
/// nothing up.
struct RowIndex {
  /// A change set of one store.
  struct ChangeSetKey: Hashable {
    var store: Int64
    var reference: ChangeSetReference
  }

  /// A change set's row.
  struct Slot {
    var id: Int64
    /// Which entry lies in the row itself.
    var inlineIndex: UInt32?
    /// Whether the table of further entries may hold some of it.
    var hasMore = false
  }

  /// What a store's row holds, which is written whole.
  struct Store {
    var policy: Policy
    var adopted = HybridTime.zero
    var isOpened = false
  }

  var stores: [StoreIdentifier: Int64] = [:]
  var storeRows: [StoreIdentifier: Store] = [:]
  var changeSets: [ChangeSetKey: Slot] = [:]
  var drafts = DraftIndex()
  /// What was found damaged.
  var damaged = DamagedRows()
  /// The highest row id given out.
  var lastChangeSet: Int64 = 0
  var lastStore: Int64 = 0
}
