#if Web
  import Foundation
  import Kith
  import KithCore
  import Synchronization
  import Testing

  @testable import KithCommands
  @testable import KithWeb

  /// Stores as the page reads, writes and follows them.
  @Suite(.timeLimit(.minutes(2))) struct PageStoresTests {
    @Test("a value is written, read, undone; one that another wrote meanwhile is not overwritten")
    func values() async throws {
      try await withPage { page, _ in
        var answer = try await page.post(
          "/api/write",
          ["store": "default", "writes": [["key": "size", "json": "1.0"], ["key": "gone"]]])
        #expect(answer.status == 200)
        answer = try await page.get("/api/value?store=default&key=size")
        #expect(try answer.members["json"] as? String == "1.0")
        #expect(try answer.members["type"] as? String == "double")
        let edit: [String: Any] = [
          "store": "default", "writes": [["key": "size", "json": "3"]],
          "expecting": [["key": "size", "json": "2.0"]],
        ]
        answer = try await page.post("/api/write", edit)
        #expect(answer.status == 409)
        #expect(try answer.code == "unexpectedValue")
        answer = try await page.post("/api/undo", ["store": "default", "key": "size"])
        #expect(try answer.members["missing"] as? Bool == true)
        answer = try await page.get("/api/value?store=default&key=size")
        #expect(answer.status == 404)
        answer = try await page.get("/api/history?store=default&key=size")
        let past = try #require(answer.members["values"] as? [[String: Any]])
        #expect(past.first?["json"] as? String == "1.0")
      }
    }

    @Test("no request reads or makes a store that the account keeps for itself")
    func reservedStores() async throws {
      try await withPage { page, accounts in
        let node = try await accounts.nodeAccess
        try await node.write([("id", "secret")], in: "kith.carriers")
        for name in ["kith.carriers", "kith.dconf", "kith.", "kith.new"] {
          for path in [
            "events?", "value?key=id&", "unshown?", "history?", "history?key=id&", "export?",
          ] {
            let answer = try await page.get("/api/\(path)store=\(name)")
            #expect(answer.status == 400 && !answer.body.contains("secret"), "\(path)")
          }
          let bodies: [(String, [String: Any])] = [
            ("write", ["create": true, "writes": [["key": "a", "json": "1"]]]),
            ("unshown/again", ["number": 1]), ("unshown/clear", ["through": 1]),
            ("undo", ["key": "id"]), ("sync", [:]),
          ]
          for (path, body) in bodies {
            let body = body.merging(["store": name]) { own, _ in own }
            let answer = try await page.post("/api/\(path)", body)
            #expect(answer.status == 400)
            #expect(try answer.message.contains("the account's own"), "\(path)")
          }
          let answer = try await page.post(
            "/api/import?store=\(name)&dryRun=false", Data(#"{"a": 1}"#.utf8),
            type: "application/octet-stream")
          #expect(answer.status == 400)
        }
        #expect(try await node.values(in: "kith.carriers").count == 1)
        #expect(try await node.values(in: "kith.new").isEmpty)
      }
    }

    @Test("any key can be named in a request")
    func keys() async throws {
      try await withPage { page, _ in
        let key = "a +b&c=d/é\u{202e}%20#?"
        let body: [String: Any] = ["store": "default", "writes": [["key": key, "json": "1"]]]
        #expect(try await page.post("/api/write", body).status == 200)
        // As encodeURIComponent writes it.
        let allowed = CharacterSet.alphanumerics.intersection(CharacterSet(charactersIn: "!"..."~"))
        let name = try #require(key.addingPercentEncoding(withAllowedCharacters: allowed))
        let answer = try await page.get("/api/value?store=default&key=\(name)")
        #expect(try answer.members["key"] as? String == key)
      }
    }

    @Test("a refused write tells its numbers, and changes nothing")
    func refusals() async throws {
      try await withPage { page, _ in
        let long = String(repeating: "k", count: 65)
        var answer = try await page.post(
          "/api/write", ["store": "default", "writes": [["key": long, "json": "1"]]])
        #expect(answer.status == 422)
        #expect(try answer.code == "invalidKey")
        #expect(try answer.message.contains("65"))
        let half = "\"\(String(repeating: "x", count: 600_000))\""
        _ = try await page.post(
          "/api/write", ["store": "default", "writes": [["key": "a", "json": half]]])
        answer = try await page.post(
          "/api/write", ["store": "default", "writes": [["key": "b", "json": half]]])
        #expect(answer.status == 422)
        #expect(try answer.code == "quotaExceeded")
        #expect(try answer.message.contains("1048576") || answer.message.contains("1,048,576"))
        answer = try await page.post(
          "/api/write", ["store": "other", "writes": [["key": "a", "json": "1"]]])
        #expect(answer.status == 404)
        answer = try await page.post(
          "/api/write", ["store": "default", "writes": [["key": "c", "json": "null"]]])
        #expect(answer.status == 422)
        for body in ["{", "[]", "{\"store\": 1}"] {
          answer = try await page.post("/api/write", Data(body.utf8), type: "application/json")
          #expect(answer.status == 400)
        }
        answer = try await page.post(
          "/api/write", Data(repeating: 32, count: Page.bodyBytes + 1), type: "application/json")
        #expect(answer.status == 413)
      }
    }

    @Test("files are imported and exported; a trial writes nothing")
    func files() async throws {
      try await withPage { page, _ in
        let file = Data(#"{"theme": "dark", "window": {"width": 800}, "none": null}"#.utf8)
        let type = "application/octet-stream"
        var answer = try await page.post("/api/import?store=default&dryRun=true", file, type: type)
        #expect(try answer.members["imported"] as? Int == 2)
        answer = try await page.get("/api/value?store=default&key=theme")
        #expect(answer.status == 404)
        answer = try await page.post(
          "/api/import?store=default&dryRun=false&prefix=app.", file, type: type)
        #expect(try answer.members["imported"] as? Int == 2)
        #expect(try (answer.members["refused"] as? [Any])?.count == 1)
        answer = try await page.get("/api/export?store=default")
        #expect(try answer.members["format"] as? String == "kith export")
        let values = try #require(answer.members["values"] as? [String: Any])
        #expect(values["app.theme"] as? String == "dark")
        answer = try await page.post(
          "/api/import?store=default&dryRun=false", Data("nonsense".utf8), type: type)
        #expect(answer.status == 422)
      }
    }

    @Test("the status names the stores that are here only in part, as the commands do")
    func storesInPart() async throws {
      try await withPage { client, accounts in
        let store = try #require(StoreIdentifier("default"))
        try await accounts.nodeAccess.write([("theme", "dark")], in: store.rawValue)
        let answer = try await client.get("/api/status")
        #expect(try answer.members["storesInPart"] as? [String] == [])

        let page = Page(accounts: accounts, usualStore: store)
        var status = try await accounts.status()
        let author = try #require(status.device)
        func text() -> String { page.document(status).text(indented: false) }
        status.stores[0].authorsOverLimit = [author]
        #expect(status.stores[0].isOpenedHere && text().contains(#""storesInPart":[]"#))
        status.stores[0].isOpenedHere = false
        #expect(text().contains(#""storesInPart":["default"]"#))
        // A device of the account may choose such a name.
        status.stores[0].identifier = try #require(StoreIdentifier("a\"\u{202E}<b>"))
        #expect(text().contains(#""storesInPart":["a\"\u202e<b>"]"#))
      }
    }

    @Test("the stream tells the status, the values, and each change, also of other programs")
    func stream() async throws {
      try await withPage { page, accounts in
        let store = try accounts.store("default")
        try await store.commit { $0.set(.string("dark"), forKey: "theme") }
        let hasWritten = Mutex(false)
        let text = try await page.stream("/api/events?store=default") { text in
          if text.contains("event: values"), !hasWritten.withLock({ $0 }) {
            hasWritten.withLock { $0 = true }
            try await store.commit { $0.set(.string("light"), forKey: "theme") }
          }
          return text.contains("event: change") && text.contains("event: status")
            && text.contains("event: pairing")
        }
        #expect(text.contains("\"json\":\"\\\"dark\\\"\""))
        #expect(text.contains("\"json\":\"\\\"light\\\"\""))
        #expect(text.contains("\"hostName\":") && text.contains("\"isOwnNode\":true"))
      }
    }

    @Test("a store that does not exist yet is shown once it does")
    func laterStore() async throws {
      try await withPage { page, accounts in
        let hasWritten = Mutex(false)
        let text = try await page.stream("/api/events?store=later") { text in
          if text.contains("event: values"), !hasWritten.withLock({ $0 }) {
            hasWritten.withLock { $0 = true }
            let store = try accounts.store("later")
            try await store.commit { $0.set(.integer(7), forKey: "number") }
          }
          return text.contains("\"number\"")
        }
        #expect(text.contains("\"entries\":[]"))
      }
    }

    @Test("beats come while the node answers, also before the store is there")
    func beats() async throws {
      try await withPage { page, _ in
        let text = try await page.stream("/api/events?store=later") { $0.contains("\n: beat\n") }
        #expect(text.contains("event: values") && !text.contains("event: away"))
      }
    }
  }
#endif
