internal import CoreMetrics
internal import Dispatch
internal import KithNetwork

/// The node's counts for swift-metrics. Labels hold no keys and no values.
struct Metrics: Sendable {
  let sets = Counter(label: "kith_operations_written_total")
  let failures = Counter(label: "kith_commit_failures_total")
  /// Change sets to send that storage lacks: a defect.
  let missing = Counter(label: "kith_change_sets_missing_total")
  let sessions = Counter(label: "kith_sessions_opened_total")
  let bytesSent = Counter(label: "kith_message_bytes_sent_total")
  let bytesReceived = Counter(label: "kith_message_bytes_received_total")
  let carrierBytesPut = Counter(label: "kith_carrier_bytes_put_total")
  let carrierBytesGot = Counter(label: "kith_carrier_bytes_got_total")
  private let connections = Counter(label: "kith_connections_accepted_total")
  private let connectionFailures = Counter(label: "kith_connection_failures_total")
  private let commits = Counter(label: "kith_commits_total")
  private let commitTime = Timer(label: "kith_commit_seconds", preferredDisplayUnit: .seconds)

  func count(_ event: TransportEvent) {
    if event == .accepted { connections.increment() } else { connectionFailures.increment() }
  }

  func commit<E: Error>(_ body: () throws(E) -> Void) throws(E) {
    let start = DispatchTime.now().uptimeNanoseconds
    try body()
    commits.increment()
    commitTime.recordNanoseconds(Int64(DispatchTime.now().uptimeNanoseconds - start))
  }
}
