import Kith
import KithStorage

/// What all checks look at: a directory and its node.
struct Patient: Sendable {
  /// What is known of the directory's device.
  enum Device: Sendable {
    /// A node runs, and said this; its process, where it is known.
    case running(NodeReport, processID: Int32?)
    /// No node runs; the directory was opened for as long as this took.
    case opened(NodeReport)
    /// The directory holds no device.
    case none
    /// It could not be looked into.
    case failed(KithError)
  }

  /// The device's directory.
  var directory: String
  /// The port on which a node is to listen, where none does.
  var port: UInt16
  /// Now, in milliseconds since 1970.
  var nowMilliseconds: UInt64
  /// The device.
  var device: Device
  /// Whether nobody is signed in: the directory is that of the local stores.
  var isSignedOut = false
  /// The versions of Kith of the devices that were met, by name.
  var versions: [String: String] = [:]

  /// What the device says of itself, if it says anything.
  var report: NodeReport? {
    switch device {
    case .running(let report, _), .opened(let report): report
    case .none, .failed: nil
    }
  }

  /// Whether a node runs in the directory.
  var isRunning: Bool { if case .running = device { true } else { false } }

  /// The port that matters: the one on which the node listens, or is to.
  var effectivePort: UInt16 {
    guard isRunning, let address = report?.listening.first,
      let text = address.split(separator: ":").last, let port = UInt16(text)
    else { return port }
    return port
  }

  /// What people call a device.
  func name(_ id: String) -> String {
    report?.devices.first { $0.id == id }?.name ?? String(id.prefix(16))
  }
}

extension Patient {
  /// Asks the node of a directory, or opens the directory where none runs, as every command does.
  init(
    directory: String, port: UInt16, passphrase: @escaping PassphraseQuestion,
    nowMilliseconds: UInt64
  ) async {
    self.init(
      directory: directory, port: port, nowMilliseconds: nowMilliseconds,
      device: await Self.device(of: directory, passphrase))
    guard isRunning else { return }
    let devices = try? await ControlClient(directory: directory).deviceReports()
    for device in devices ?? [] where device.isMember && !device.isThisDevice {
      versions[device.name] = device.software
    }
  }

  private static func device(
    of directory: String, _ passphrase: @escaping PassphraseQuestion
  ) async -> Device {
    do throws(KithError) {
      let report = try await ControlClient(directory: directory).report()
      return .running(report, processID: DirectoryOwner.processID(of: directory))
    } catch  where error.code != .notRunning {
      return .failed(error)
    } catch {}
    do throws(KithError) {
      var configuration = Node.Configuration(directory: directory)
      configuration.passphrase = passphrase
      configuration.logger.logLevel = .critical
      let node = try await Node.open(configuration)
      let report = NodeReport(node.status)
      try node.close()
      return .opened(report)
    } catch {
      return error.code == .missing ? .none : .failed(error)
    }
  }
}
