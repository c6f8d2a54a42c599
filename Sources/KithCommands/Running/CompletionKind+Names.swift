import ArgumentParser
import FoundationEssentials
import Kith
import KithTerminal

extension CompletionKind {
  static let keys = names {
    await $0.ask { node, store in try await node.values(in: store.rawValue).entries.map(\.key) }
  }

  static let pastKeys = names {
    await $0.ask { node, store in
      let values = try await node.history(of: nil, in: store.rawValue, limit: .max)
      return Set(values.map(\.key)).sorted().map(\.text)
    }
  }

  static let stores = names {
    await $0.ask { node, _ in try await node.status().stores.map(\.identifier.rawValue) }
  }

  static let devices = names {
    await $0.ask(readsMembershipOnly: true) { node, _ in
      try await node.status().devices.filter(\.isMember).map(\.name)
    }
  }

  static let accounts = names { await $0.accounts }

  private static func names(
    _ find: @escaping @Sendable (CompletedNames) async -> [String]
  ) -> CompletionKind {
    CompletionKind.custom { (words: [String], _: Int, _: String) async -> [String] in
      await CompletedNames(words: words).inTime(find)
    }
  }
}

/// Names for a shell's completions: at once, or none. It neither waits nor asks nor says anything.
///
/// It asks the running node. Without one it opens the directory, because a database that may be
/// opened meanwhile cannot be read; a node that starts just then waits for it.
private struct CompletedNames: Sendable {
  /// A node that takes longer gives no names. Opening the directory takes as long as the disk.
  private static let timeout = Duration.seconds(2)

  /// The command line's, as typed.
  let words: [String]

  /// The directory as the shell will give it, unless it is quoted.
  private var options: CommonOptions {
    get throws {
      let directory = word(after: ["--directory", "-d"])
        .map { ["--directory", Self.expandingTilde($0)] }
      return try CommonOptions.parse(["--quiet"] + (directory ?? []))
    }
  }

  var accounts: [String] {
    get async {
      guard let options = try? options else { return [] }
      if let noted = try? Accounts.noted(in: options.directoryURL.path) {
        return noted.map(\.account.hex)
      }
      guard (try? options.isSignedOut) == false else { return [] }
      return await ask(readsMembershipOnly: true) { node, _ in
        try await [node.status().account].compactMap { $0?.hex }
      }
    }
  }

  func inTime(_ find: @escaping @Sendable (Self) async -> [String]) async -> [String] {
    await withTaskGroup(of: [String]?.self) { group in
      group.addTask { await find(self) }
      group.addTask {
        try? await Task.sleep(for: Self.timeout)
        return nil
      }
      defer { group.cancelAll() }
      while let found = await group.next() {
        if let found { return found }
        // Ends a request to a node.
        group.cancelAll()
      }
      return []
    }
  }

  func ask(
    readsMembershipOnly: Bool = false,
    _ find: (any NodeAccess, StoreIdentifier) async throws -> [String]
  ) async -> [String] {
    do {
      let options = try options
      let store = try StoreOptions.identifier(
        option: word(after: ["--store", "-s"]),
        environment: ProcessInfo.processInfo.environment)
      let found = try await options.withNode(
        readsMembershipOnly: readsMembershipOnly, reads: true, waiting: .zero,
        answering: Self.timeout,
        passphrase: Self.passphrase(options)
      ) { try await find($0, store) }
      // Others would not be one line.
      return found.filter { Columns.sentence($0) == $0 }
    } catch {
      return []
    }
  }

  private static func passphrase(_ options: CommonOptions) -> PassphraseQuestion {
    let source = options.passphraseSource
    return { () throws(KithError) in
      guard let source else { throw KithError(.passphrase, "Nobody is asked.") }
      return try source.read()
    }
  }

  private static func expandingTilde(_ path: String) -> String {
    guard path.hasPrefix("~") else { return path }
    let user = path.dropFirst().prefix { $0 != "/" }
    let home =
      user.isEmpty
      ? FileManager.default.homeDirectoryForCurrentUser
      : FileManager.default.homeDirectory(forUser: String(user))
    return home.map { $0.path + path.dropFirst(1 + user.count) } ?? path
  }

  private func word(after names: [String]) -> String? {
    words.firstIndex(where: names.contains).flatMap { words.dropFirst($0 + 1).first }
  }
}
