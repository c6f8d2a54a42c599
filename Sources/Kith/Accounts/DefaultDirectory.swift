internal import FoundationEssentials

/// The directory of programs and commands that name none.
package enum DefaultDirectory {
  package static func path(environment: [String: String]) -> String {
    if let path = environment.variable("KITH_DIRECTORY") { return path }
    let home = environment.variable("HOME") ?? URL.homeDirectory.path
    return dataHome(environment, home: home) + "/kith"
  }

  /// The XDG Base Directory Specification accepts absolute paths only.
  package static func dataHome(_ environment: [String: String], home: String) -> String {
    if let path = environment.variable("XDG_DATA_HOME"), path.hasPrefix("/") { return path }
    return home + "/.local/share"
  }
}

extension [String: String] {
  /// The value of an environment variable; nil also for an empty one.
  package func variable(_ name: String) -> String? { self[name].flatMap { $0.isEmpty ? nil : $0 } }
}
