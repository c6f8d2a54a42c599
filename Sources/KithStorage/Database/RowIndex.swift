import KithCore

/// Rows in memory, so that commits look nothing up.
struct RowIndex {
  struct ChangeSetKey: Hashable {
    var store: Int64
    var reference: ChangeSetReference
  }

  struct Slot {
    var id: Int64
    /// The entry in the row itself.
    var inlineIndex: UInt32?
    /// Whether the table `entry` may have more.
    var hasMore = false
  }

  /// The row is written whole.
  struct Store {
    var policy: Policy
    var adopted = HybridTime.zero
    var isOpened = false
  }

  var stores: [StoreIdentifier: Int64] = [:]
  var storeRows: [StoreIdentifier: Store] = [:]
  var changeSets: [ChangeSetKey: Slot] = [:]
  var drafts = DraftIndex()
  /// By store and number.
  var pastValues: [DraftIndex.Key: Int64] = [:]
  var damaged = DamagedRows()
  var lastChangeSet: Int64 = 0
  var lastStore: Int64 = 0
  var lastPastValue: Int64 = 0
}
