#if Canaries
  internal import Synchronization
#endif

/// A bug that can be planted, one at a time, so that the simulator shows that it would catch it:
/// each breaks a promise of `Docs/Testing.md`. Only a build with the package's trait
/// `Canaries` can; in every other ``isPlanted`` is a constant that the compiler takes away with what
/// stands behind it.
package enum Canary: String, CaseIterable, Sendable {
  case countWhatCannotBeJudged
  case applyHalfABatch
  case believeTooMuch
  case admitTheLatestFirst
  case admitTooMuch
  case skipAFallback
  case dropTheRunnerUp
  case forgetARemoval
  case loseADraft
  case loseARefusal
  case sendBeforePersist
  case reuseASequence
  case splitATransaction
  case compareStampsWrongly
  case setTheClockBack
  case forgetAChange
  case sendPlaintext
  case takeEverything
  case showLate
  case drawFromTheSystem
  case leaveWhatTheRevokedWrote
  case startNoGeneration
  case tellNoGeneration
  case restampOnlyWhatIsAhead
  case dropTheRation
  case stateWhatIsNotStored
  case adoptTwice
  case stampAdoptedNow
  case takeInBeforeItExists

  /// What is wrong then.
  package var bug: String {
    switch self {
    case .countWhatCannotBeJudged: "what cannot be judged yet is counted in the vector"
    case .applyHalfABatch: "of a batch only half is applied, and all is counted"
    case .believeTooMuch: "a vector is believed beyond the headers received"
    case .admitTheLatestFirst: "the latest claim is admitted first"
    case .admitTooMuch: "admission does not look at the total"
    case .skipAFallback: "a write carries no fallback"
    case .dropTheRunnerUp: "no runner-up is kept"
    case .forgetARemoval: "a removal is not kept"
    case .loseADraft: "a draft is acknowledged and not made durable"
    case .loseARefusal: "a refused draft is dropped without a word"
    case .sendBeforePersist: "what came is passed on before it is committed"
    case .reuseASequence: "a sequence is given twice"
    case .splitATransaction: "each value of a transaction is admitted by itself"
    case .compareStampsWrongly: "stamps compare by device before clock"
    case .setTheClockBack: "the hybrid clock follows the host's back"
    case .forgetAChange: "a program is not told what the quota changed"
    case .sendPlaintext: "entries are sent as they are, not sealed"
    case .takeEverything: "one author may fill a node"
    case .showLate: "of a transaction only the first write shows at once"
    case .drawFromTheSystem: "randomness comes from the system, and not from the seed"
    case .leaveWhatTheRevokedWrote: "what a revoked device wrote is dropped and not carried over"
    case .startNoGeneration: "a clock that was ahead starts no new generation"
    case .tellNoGeneration: "a device tells no generation of its clock"
    case .restampOnlyWhatIsAhead: "drafts a little ahead keep their stamps when a clock is set back"
    case .dropTheRation: "any generation counts"
    case .stateWhatIsNotStored: "a statement names a change set more than is covered"
    case .adoptTwice: "a local write is adopted again after a crash"
    case .stampAdoptedNow: "adopted writes bear stamps of now"
    case .takeInBeforeItExists: "a joining device is a member before its directory exists"
    }
  }

  #if Canaries
    private static let planted = Mutex<Canary?>(nil)

    /// Whether bugs can be planted.
    package static var canBePlanted: Bool { true }
    /// Whether this one is there now.
    package var isPlanted: Bool { Self.planted.withLock { $0 == self } }
    /// Plants a bug in the place of any other; nil takes it out.
    package static func plant(_ canary: Canary?) { planted.withLock { $0 = canary } }
  #else
    /// Whether bugs can be planted.
    package static var canBePlanted: Bool { false }
    /// Whether this one is there now.
    @inline(__always) package var isPlanted: Bool { false }
    /// Plants nothing: this build has none.
    package static func plant(_ canary: Canary?) {}
  #endif
}
