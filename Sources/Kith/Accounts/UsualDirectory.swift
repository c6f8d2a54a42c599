internal import FoundationEssentials

/// The directory of programs and commands that name none.
package enum UsualDirectory {
  package static func path(environment: [String: String]) -> String {
    func named(_ name: String) -> String? { environment[name].flatMap { $0.isEmpty ? nil : $0 } }
    if let path = named("KITH_DIRECTORY") { return path }
    // The XDG Base Directory Specification accepts absolute paths only.
    if let path = named("XDG_DATA_HOME"), path.hasPrefix("/") { return path + "/kith" }
    let home = named("HOME") ?? URL.homeDirectory.path
    return home + "/.local/share/kith"
  }
}
