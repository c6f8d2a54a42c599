import Kith

/// The subject of all checks: a directory and its node.
struct DiagnosisTarget: Sendable {
  enum Device: Sendable {
    /// A node is running and answered.
    case running(NodeStatus)
    /// No node is running; the directory was opened for this report.
    case opened(NodeStatus)
    case none
    case failed(KithError)
  }

  var directory: String
  /// The port for a node if none is running.
  var port: UInt16
  var nowMilliseconds: UInt64
  var device: Device
  /// The directory is then that of the local stores.
  var isSignedOut = false

  var report: NodeStatus? {
    switch device {
    case .running(let report), .opened(let report): report
    case .none, .failed: nil
    }
  }

  var isRunning: Bool { if case .running = device { true } else { false } }

  /// The port of a running node, or the one to use.
  var effectivePort: UInt16 {
    guard isRunning, let address = report?.listening.first,
      let text = address.split(separator: ":").last, let port = UInt16(text)
    else { return port }
    return port
  }
}

extension DiagnosisTarget {
  /// Asks the directory's node, or opens the directory if none is running.
  static func device(
    of directory: String, _ passphrase: @escaping PassphraseQuestion
  ) async -> Device {
    do throws(KithError) {
      return .running(try await LocalClient(directory: directory).status())
    } catch  where error.code != .notRunning {
      return .failed(error)
    } catch {}
    do throws(KithError) {
      var configuration = Node.Configuration(directory: directory)
      configuration.passphrase = passphrase
      configuration.logger.logLevel = .critical
      configuration.isForReading = true
      let node = try await Node.open(configuration)
      let report = node.status
      try node.close()
      return .opened(report)
    } catch {
      return error.code == .missing ? .none : .failed(error)
    }
  }
}
