// Counts the public symbols of symbol graphs, and names those without a doc comment (for Docs/build).
// Status 1 if there is one, or no symbol at all.
//
//   check-comments FOLDER

import Foundation

struct Graph: Decodable {
  struct Module: Decodable { var name: String }
  struct Symbol: Decodable {
    struct Kind: Decodable { var displayName: String }
    struct Comment: Decodable {}
    var kind: Kind
    var pathComponents: [String]
    var docComment: Comment?
  }
  var module: Module
  var symbols: [Symbol]
}

var count = 0
var missing: [String] = []
let folder = URL(filePath: CommandLine.arguments.dropFirst().first ?? ".")
for name in try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
where name.hasSuffix(".symbols.json") {
  let graph = try JSONDecoder().decode(
    Graph.self, from: Data(contentsOf: folder.appending(path: name)))
  count += graph.symbols.count
  for symbol in graph.symbols where symbol.docComment == nil {
    let path = symbol.pathComponents.joined(separator: ".")
    missing.append("\(graph.module.name): \(path) (\(symbol.kind.displayName))")
  }
}
print("\(count) public symbols, \(missing.count) without a doc comment")
for line in missing { print("  \(line)") }
exit(missing.isEmpty && count > 0 ? 0 : 1)
