import Kith
import KithCarriersTesting
import Testing

/// Expects a failure with a code.
func expectFailure(
  _ code: CarrierFailure.Code, sourceLocation: SourceLocation = #_sourceLocation,
  _ operation: () async throws -> Void
) async {
  let failure = await failure(of: operation)
  #expect(
    failure?.code == code, "\(failure?.message ?? "no failure")", sourceLocation: sourceLocation)
}

/// The failure of an operation; nil if it succeeds, or fails otherwise.
func failure(of operation: () async throws -> Void) async -> CarrierFailure? {
  do {
    try await operation()
    return nil
  } catch {
    return error as? CarrierFailure
  }
}

/// Runs a suite, with an issue for each promise that was not kept.
func expectConformance(
  _ conformance: CarrierConformance, sourceLocation: SourceLocation = #_sourceLocation
) async {
  for violation in await conformance.run() {
    Issue.record(violation, sourceLocation: sourceLocation)
  }
}
