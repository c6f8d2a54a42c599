import Foundation
import Testing

@testable import KithWeb

@Suite struct PageFileTests {
  private var folder: URL {
    URL(filePath: #filePath).deletingLastPathComponent()
      .appending(path: "../../Sources/KithWeb/Page").standardized
  }

  @Test("each file of the folder is served as it is, by its type")
  func files() throws {
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(Set(names.map { "/" + $0 }) == Set(PageFile.files.keys))
    for name in names {
      let file = try #require(PageFile(path: "/" + name))
      #expect(Data(file.bytes) == (try Data(contentsOf: folder.appending(path: name))))
    }
    #expect(PageFile(path: "/")?.type == "text/html; charset=utf-8")
    #expect(PageFile(path: "/icon.svg")?.type == "image/svg+xml; charset=utf-8")
    #expect(PageFile(path: "/app.js")?.type == "text/javascript; charset=utf-8")
    #expect(PageFile(path: "/page.css")?.type == "text/css; charset=utf-8")
    #expect(PageFile(path: "/../Package.swift") == nil)
    #expect(PageFile(path: "/js") == nil)
  }

  @Test("the page fetches nothing from elsewhere, and makes no markup of texts")
  func sources() throws {
    for (path, bytes) in PageFile.files {
      let text = String(decoding: bytes, as: UTF8.self)
      for forbidden in [
        "innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
        "DOMParser", "createContextualFragment", "srcdoc", "https://", "@import", "style=\"",
        "javascript:",
      ] {
        #expect(!text.contains(forbidden), "\(path) has \(forbidden)")
      }
      // `setChildren` leaves out what `condition && child` gives.
      if path != "/dom.js" { #expect(!text.contains(".replaceChildren("), "\(path)") }
      #expect(!text.contains(/<script(?![^>]*src=)/), "\(path) has a script inside")
      #expect(!text.contains(/\son[a-z]+="/), "\(path) has a handler inside")
      for address in text.matches(of: /http:\/\/[^\s"']+/) {
        #expect(address.output.hasPrefix("http://www.w3.org/"), "\(path) names \(address.output)")
      }
    }
  }

  @Test("each module that a module imports is there")
  func imports() {
    for (path, bytes) in PageFile.files where path.hasSuffix(".js") {
      let text = String(decoding: bytes, as: UTF8.self)
      for module in text.matches(of: /(?:from|import)\s+["']\.(\/[^"']+)["']/) {
        #expect(PageFile.files[String(module.output.1)] != nil, "\(path): \(module.output.1)")
      }
    }
  }
}
