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

  var stores: [StoreIdentifier: Int64] = [:]
  var changeSets: [ChangeSetKey: Slot] = [:]
  var drafts = DraftIndex()
  /// The highest row id given out.
  var lastChangeSet: Int64 = 0
  var lastStore: Int64 = 0
}
