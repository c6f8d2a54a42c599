public import KithCrypto

/// One device's replica of its account's stores, as a value: inputs come in with the time, effects
/// go out in order, and nothing else happens. It does no I/O, starts no task, reads no clock and
/// makes no randomness, so the same code runs in production, in the simulator and in fuzzers.
///
/// The rule of the effects: a `persist` stands before every effect that depends on it, and the
/// shell never reorders. After a commit fails, throw the replica away and make a new one from what
/// storage holds.
public struct Replica: Sendable {
}
