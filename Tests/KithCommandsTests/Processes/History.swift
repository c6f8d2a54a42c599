import Kith
import Testing

/// Records problems: not all of many, nor the whole of a long one.
func expectNone(
  _ problems: [String], seed: UInt64, sourceLocation: SourceLocation = #_sourceLocation
) {
  guard !problems.isEmpty else { return }
  let shown = problems.prefix(10).map { $0.count > 600 ? "\($0.prefix(600))…" : $0 }
  Issue.record(
    "seed \(seed): \(problems.count) problems\n\(shown.joined(separator: "\n"))",
    sourceLocation: sourceLocation)
}

/// A write of one key that a test asked for, and its result.
struct HistoryWrite {
  var key: String
  /// Unique in the history; nil: the key was removed.
  var value: PropertyListValue?
  /// The node, as an index.
  var node: Int
  /// Counts the transactions of all nodes; writes of one transaction share it.
  var transaction: Int
  /// When it was asked for.
  var began: ContinuousClock.Instant
  /// When the node acknowledged it, or was dead at the latest.
  var ended: ContinuousClock.Instant
  /// Whether the node acknowledged it. A write that was not acknowledged may have happened or not.
  var isAcknowledged: Bool
}

/// All writes that a test asked for, and the judgement over them.
///
/// **How it is judged.** At the end all nodes show the same. Of each key the *winner* is the write
/// whose value is hidden, if one is, otherwise the one whose value is shown, otherwise some removal.
/// An acknowledged write is accounted for if
/// 1. it is the winner, or
/// 2. its value stands among the refusals of its own node: it was refused and its program told, or
///    so was a later write of its node, which may have replaced it among the drafts, or
/// 3. the winner is later. Stamps cannot be seen from outside, so "later" means: not certainly
///    earlier. All nodes read one clock, stamps count milliseconds of it, and a write is stamped
///    between its call and its acknowledgement. So a winner that was acknowledged at least
///    ``slack`` before the lost write was even asked for has the earlier stamp and cannot have
///    superseded it: then an acknowledged write was lost. On one node any later write of a key is
///    later, whatever the clock says.
///
/// A removal of a key that holds nothing on its node leaves no entry, and cannot be lost. Whether it
/// held something cannot be seen from outside either: see ``mayBeNothing(_:_:)``.
///
/// A write that was not acknowledged (its node was killed meanwhile) need not be accounted for, but
/// it may be the winner; it ended when its node was known to be dead. Besides, no transaction is
/// half applied: of its winners that are values, all are shown or none is.
struct History {
  /// The difference that clocks counting milliseconds cannot show; more if a test moves clocks.
  var slack = Duration.milliseconds(3)

  var writes: [HistoryWrite] = []

  /// The values that all nodes show, the hidden ones, and the refusals that each node reported.
  struct Outcome {
    var shown: [KeyValueStore.Key: PropertyListValue]
    var hidden: [KeyValueStore.Key: PropertyListValue]
    var refused: [Set<String>]

    /// Names a write of a key in ``refused``.
    static func name(_ key: String, _ value: PropertyListValue?) -> String {
      "\(key)=\(value.map { ValueText($0) } ?? "removed")"
    }

    private static func ValueText(_ value: PropertyListValue) -> String {
      // The beginning is unique; the rest of a large value says nothing.
      if case .string(let text) = value { String(text.prefix(24)) } else { "\(value)" }
    }
  }

  /// The problems, in sentences; empty if all is accounted for.
  func problems(_ outcome: Outcome) -> [String] {
    var problems: [String] = []
    let byKey = Dictionary(grouping: writes, by: \.key)
    var winners: [String: HistoryWrite] = [:]
    for key in byKey.keys.sorted() {
      let writes = byKey[key] ?? []
      let newest = outcome.hidden[KeyValueStore.Key(key)] ?? outcome.shown[KeyValueStore.Key(key)]
      let candidates = writes.filter { $0.value == newest }
      if let newest {
        guard let winner = candidates.first else {
          problems.append("\(Outcome.name(key, newest)) is shown, and nobody wrote that")
          continue
        }
        winners[key] = winner
      }
      for write in writes where write.isAcknowledged && write.value != newest {
        if isTold(write, outcome) { continue }
        // Several removals look alike: any of them may be the winner.
        let isSuperseded = candidates.contains { mayBeLater($0, than: write) }
        let isReplaced = { writes.contains { mayReplace($0, write) && isTold($0, outcome) } }
        if !isSuperseded && !mayBeNothing(write, writes) && !isReplaced() {
          problems.append(story(of: write, among: writes, newest, outcome))
        }
      }
    }
    for key in outcome.shown.keys where byKey[key.text] == nil {
      problems.append("\(key) is shown, and nobody wrote it")
    }
    let groups = Dictionary(grouping: winners.values, by: \.transaction)
    for (transaction, winners) in groups {
      let hidden = winners.filter { outcome.hidden[KeyValueStore.Key($0.key)] != nil }
      if !hidden.isEmpty && hidden.count < winners.count {
        problems.append("transaction \(transaction) is half shown")
      }
    }
    return problems
  }

  private func isTold(_ write: HistoryWrite, _ outcome: Outcome) -> Bool {
    outcome.refused[write.node].contains(Outcome.name(write.key, write.value))
  }

  /// Whether one write may have replaced an earlier one of its key and node among the drafts.
  private func mayReplace(_ later: HistoryWrite, _ earlier: HistoryWrite) -> Bool {
    later.node == earlier.node && later.began > earlier.began
  }

  private func isAlone(_ write: HistoryWrite) -> Bool {
    writes.count { $0.transaction == write.transaction } == 1
  }

  /// A lost write with all others of its key, so that one failure is enough to understand it.
  private func story(
    of lost: HistoryWrite, among writes: [HistoryWrite], _ newest: PropertyListValue?,
    _ outcome: Outcome
  ) -> String {
    let lines = writes.sorted { $0.began < $1.began }.map { write in
      let facts = [
        write.isAcknowledged ? nil : "not acknowledged", isAlone(write) ? nil : "one of several",
        isTold(write, outcome) ? "refused" : nil, write.value == newest ? "newest" : nil,
      ]
      let times = "\(write.began - lost.began) to \(write.ended - lost.began)"
      return (["\(Outcome.name(write.key, write.value)) of node \(write.node), \(times)"] + facts)
        .compactMap(\.self).joined(separator: ", ")
    }
    let name = Outcome.name(lost.key, lost.value)
    return "\(name) of node \(lost.node) was acknowledged and is lost:\n    "
      + lines.joined(separator: "\n    ")
  }

  /// Whether a write is a removal of a key that may have held nothing on the removing node: no
  /// write had certainly set it there before, or another removal may have come after that write.
  private func mayBeNothing(_ removal: HistoryWrite, _ writes: [HistoryWrite]) -> Bool {
    guard removal.value == nil else { return false }
    let sets = writes.filter {
      $0.node == removal.node && $0.value != nil && $0.isAcknowledged
        && $0.transaction != removal.transaction && $0.began < removal.began
    }
    guard let last = sets.max(by: { $0.began < $1.began }) else { return true }
    return writes.contains {
      $0.value == nil && $0.transaction != removal.transaction
        && $0.began < removal.ended && mayBeLater($0, than: last)
    }
  }

  private func mayBeLater(_ one: HistoryWrite, than other: HistoryWrite) -> Bool {
    if one.node == other.node {
      return one.transaction == other.transaction || one.began > other.began
    }
    return other.began < one.ended + slack
  }
}
