import Kith
import KithTerminal

/// The versions of Kith, here and on the other devices.
struct VersionsCheck: Check {
  static let name = "versions"

  func look(at patient: Patient) {}

  func findings(_ sight: Void, of patient: Patient) -> [Finding] {
    [finding(.good, tried: "asked this program", seen: "kith \(KithCommand.configuration.version)")]
  }
}
