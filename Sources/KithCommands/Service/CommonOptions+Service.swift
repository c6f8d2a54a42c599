import Foundation
import Kith
import KithTerminal

extension CommonOptions {
  /// The service of this directory's node.
  func service(isOfHost: Bool) throws -> NodeService {
    let environment = ProcessInfo.processInfo.environment
    var unit = ServiceUnit(isOfHost: isOfHost)
    unit.program = URL(filePath: "/proc/self/exe").resolvingSymlinksInPath().path
    if isOfHost {
      if let directory { unit.directory = Self.exactly(directory).path }
      try Self.checkHost(unit)
    } else {
      // Services have neither KITH_DIRECTORY nor XDG_DATA_HOME.
      let usual = Self.directory(
        option: nil, environment: environment.filter { $0.key == "HOME" })
      unit.directory = directoryURL.path == usual.path ? "" : directoryURL.path
    }
    return NodeService(unit, environment: environment)
  }

  private static func checkHost(_ unit: ServiceUnit) throws(CommandFailure) {
    let name = unit.directory.dropFirst(ServiceUnit.hostDirectories.count)
    guard unit.directory.hasPrefix(ServiceUnit.hostDirectories), !name.isEmpty,
      name.allSatisfy({ $0.isLetter || $0.isNumber || "-_.".contains($0) }), !name.hasPrefix(".")
    else {
      throw CommandFailure(
        .refused,
        "\(unit.directory): the host's node has its directory right below "
          + "\(ServiceUnit.hostDirectories); leave --directory out, or pass --user")
    }
  }

  /// Ends the commands that make a device: installs the person's service if the person agrees, or
  /// says how to start the node.
  func offerService() {
    do {
      if let service = try wantedService() {
        try service.install(force: false, starts: true)
        return console.talk(
          service.lingers
            ? "The node runs, also while you are not logged in."
            : "The node runs while you are logged in. To have it run always: loginctl enable-linger"
        )
      }
    } catch {
      console.warn(CommandFailure(error)?.message ?? "\(error)")
    }
    console.talk("Start the node with: kith run, or as a service of systemd: kith service install")
  }

  /// Ends the commands that remove an account: names the services whose node has none left.
  func warnOfServices() {
    for isOfHost in [false, true] {
      guard let service = try? service(isOfHost: isOfHost),
        !isOfHost || service.unit.directory == directoryURL.path, service.startsNode
      else { continue }
      console.talk(
        "No account is left here, so the service \(service.unit.name) fails when it starts again. "
          + "Unless you sign in, remove it: "
          + (isOfHost ? "sudo kith service remove --system" : "kith service remove --user"))
    }
  }

  /// Nil unless there is a terminal, systemd, no passphrase and no enabled unit yet, and the person
  /// agrees.
  private func wantedService() throws -> NodeService? {
    guard !json, !quiet, Terminal.hasInput, Terminal.hasTalk,
      try !Node.isUnderPassphrase(directory: accountDirectory())
    else { return nil }
    let service = try service(isOfHost: false)
    guard !service.isOwn, service.state?.isEnabled == false,
      Confirmation.isGiven("Run the node as a service of systemd from now on?", console)
    else { return nil }
    return service
  }
}
