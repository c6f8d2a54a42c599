import KithCore

/// The rows of stores, change sets and drafts, in memory, so that commits look nothing up.
struct RowIndex {
  struct ChangeSetKey: Hashable {
    var store: Int64
    var reference: ChangeSetReference
  }

  /// A change set's row.
  struct Slot {
    var id: Int64
    /// The entry in the row itself.
    var inlineIndex: UInt32?
    /// Whether the table of further entries may hold some of it.
    var hasMore = false
  }

  /// The content of a store's row, which is written whole.
  struct Store {
    var policy: Policy
    var adopted = HybridTime.zero
    var isOpened = false
  }

  var stores: [StoreIdentifier: Int64] = [:]
  var storeRows: [StoreIdentifier: Store] = [:]
  var changeSets: [ChangeSetKey: Slot] = [:]
  var drafts = DraftIndex()
  var damaged = DamagedRows()
  /// The highest used row id.
  var lastChangeSet: Int64 = 0
  var lastStore: Int64 = 0
}
