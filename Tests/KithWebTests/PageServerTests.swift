#if Web
  import Foundation
  import Kith
  import KithCore
  import KithTestSupport
  import Logging
  import ServiceLifecycle
  import Synchronization
  import Testing

  @testable import KithCommands
  @testable import KithWeb

  /// The page's server on loopback, over the stores of a real directory.
  @Suite(.timeLimit(.minutes(2))) struct PageServerTests {
    private let directory: TestDirectory

    init() throws { directory = try TestDirectory() }

    /// Runs the server, and hands the body a client with the secrets. With no name nobody is signed in.
    private func withPage(
      signedInAs name: String? = "laptop", _ body: (PageClient, Accounts) async throws -> Void
    ) async throws {
      var configuration = Accounts.Configuration(directory: directory.child("a"))
      configuration.hosts = ["127.0.0.1"]
      configuration.port = 0
      configuration.discoversPeers = false
      configuration.logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }
      let accounts = try Accounts(configuration)
      if let name { _ = try await accounts.createAccount(name: name) }
      let (addresses, address) = AsyncStream<String>.makeStream()
      let page = WebPage(
        accounts: accounts, store: try #require(StoreIdentifier("default")), port: 0,
        onReady: { address.yield($0) }, onUse: {})
      let group = ServiceGroup(
        configuration: .init(
          services: [accounts, PageServer(page)],
          logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }))
      async let running: Void = group.run()
      for await address in addresses {
        try await body(PageClient.opening(address), accounts)
        break
      }
      await group.triggerGracefulShutdown()
      try await running
      try accounts.close()
    }

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

    @Test("a request with two hosts is malformed")
    func twoHosts() async throws {
      try await withPage { page, _ in
        let host = "127.0.0.1:\(page.port)"
        for hosts in [[host, "evil.example"], ["evil.example", host], [host, host]] {
          let answer = try await page.get("/api/status", hosts: hosts)
          #expect(answer.status == 400)
        }
      }
    }

    @Test(
      "the host that a target names, and none if it is a path",
      arguments: [
        ("/api/status", nil), ("/http://evil.example/", nil), ("http://h:1/api", "h:1"),
        ("HTTP://h:1", "h:1"), ("http://h:1?x", "h:1"), ("http://h:1@evil/", "h:1@evil"),
        ("http://evil/h:1", "evil"), ("http:///", ""), ("https://h:1/", "https://h:1/"),
        ("evil:80", "evil:80"), ("*", "*"), ("", ""),
      ] as [(String, String?)])
    func hosts(target: String, host: String?) {
      #expect(TargetHostHandler.host(of: target) == host)
    }

    @Test("a target that names another host is foreign, and one that names the page's is not")
    func targets() async throws {
      try await withPage { page, _ in
        for path in ["/", "/api/status"] {
          let foreign = try await page.get("http://evil.example\(path)")
          #expect(try foreign.status == 403 && foreign.code == "foreign", "\(foreign)")
          #expect(try await page.get("http://127.0.0.1:\(page.port)\(path)").status == 200)
        }
      }
    }

    @Test("who is signed out is offered the accounts of this host")
    func signingIn() async throws {
      try await withPage { page, accounts in
        let account = try #require(accounts.signedIn?.hex)
        try await accounts.signOut()
        var answer = try await page.get("/api/accounts")
        let known = try #require(answer.members["accounts"] as? [[String: Any]])
        #expect(known.map { $0["account"] as? String } == [account])
        let unknown = String(repeating: "0", count: 64)
        answer = try await page.post("/api/account/sign-in", ["account": unknown])
        #expect(answer.status == 404)
        #expect(try await page.post("/api/account/sign-in", ["account": account]).status == 200)
        #expect(accounts.signedIn?.hex == account)
        answer = try await page.post("/api/account/sign-in", ["account": account])
        #expect(answer.status == 409)
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

    @Test func `six streams kept a browser from all else: four are open at once`() async throws {
      try await withPage { page, _ in
        let path = "/api/events?store=default"
        let (opened, open) = AsyncStream<Int>.makeStream()
        try await withThrowingTaskGroup(of: Void.self) { group in
          for number in 0..<4 {
            group.addTask {
              _ = try? await page.stream(path) { _ in
                open.yield(number)
                return false
              }
            }
          }
          var numbers: Set<Int> = []
          for await number in opened {
            numbers.insert(number)
            if numbers.count == 4 { break }
          }
          let refused = try await page.get(path)
          #expect(try refused.status == 429 && refused.code == "windows", "\(refused)")
          #expect(try await page.get("/api/status").status == 200)
          group.cancelAll()
        }
        // It tries again until one of those has ended.
        let text = try await page.stream(path) { $0.contains("event: status") }
        #expect(text.hasPrefix("HTTP/1.1 200"))
      }
    }

    @Test("beats come while the node answers, also before the store is there")
    func beats() async throws {
      try await withPage { page, _ in
        let text = try await page.stream("/api/events?store=later") { $0.contains("\n: beat\n") }
        #expect(text.contains("event: values") && !text.contains("event: away"))
      }
    }

    @Test("the head of a file is told without its body")
    func heads() async throws {
      try await withPage { page, _ in
        for path in ["/", "/page.js", "/none"] {
          let (whole, head) = (try await page.get(path), try await page.ask("HEAD", path))
          #expect(head.status == whole.status && head.body.isEmpty)
          #expect(head.headers["content-length"] == "\(whole.body.utf8.count)")
          #expect(head.headers["content-type"] == whole.headers["content-type"])
        }
      }
    }

    @Test("a path with another method names it", arguments: ["PUT", "DELETE", "PATCH", "OPTIONS"])
    func methods(method: String) async throws {
      try await withPage { page, _ in
        for (path, allowed) in [
          ("/", "GET, HEAD"), ("/page.js", "GET, HEAD"), ("/api/status", "GET"),
          ("/api/events?store=default", "GET"), ("/api/write", "POST"),
        ] {
          let answer = try await page.ask(method, path)
          #expect(answer.status == 405 && answer.headers["allow"] == allowed, "\(answer)")
        }
        #expect(try await page.ask("HEAD", "/api/write").status == 405)
        #expect(try await page.ask("POST", "/page.js").status == 405)
        let answer = try await page.ask(method, "/api/none")
        #expect(answer.status == 404 && answer.headers["allow"] == nil)
        var stranger = page
        stranger.key = nil
        #expect(try await stranger.ask(method, "/api/write").status == 401)
      }
    }

    @Test("a client that waits before it sends the body is told to go on")
    func expectations() async throws {
      try await withPage { page, _ in
        let json = #"{"store": "default", "writes": [{"key": "a", "json": "1"}]}"#
        let fields = ["Connection: close", "Expect: 100-Continue"]
        let goOn = "HTTP/1.1 100 Continue\r\n\r\n"
        // The body never comes.
        let early = try await page.text(
          "POST", "/api/write", version: "HTTP/1.1",
          fields: fields + ["Content-Type: application/json", "Content-Length: 9"]
        ) { $0 == goOn }
        #expect(early == goOn)
        let text = try await page.text(
          "POST", "/api/write", version: "HTTP/1.1", fields: fields, body: Data(json.utf8))
        #expect(text.hasPrefix("\(goOn)HTTP/1.1 200 "), "\(text)")
        let old = try await page.text(
          "POST", "/api/write", version: "HTTP/1.0", fields: fields, body: Data(json.utf8))
        #expect(old.hasPrefix("HTTP/1.0 200 "), "\(old)")
      }
    }

    @Test("a client of HTTP/1.0 gets no chunks, and the connection ends with the answer")
    func oldClients() async throws {
      try await withPage { page, _ in
        for fields in [[], ["Connection: keep-alive"]] {
          let file = try await page.text("GET", "/page.css", version: "HTTP/1.0", fields: fields)
          #expect(file.hasPrefix("HTTP/1.0 200 ") && file.contains("Connection: close"))
          #expect(file.hasSuffix(try await page.get("/page.css").body))
        }
        let stream = try await page.text(
          "GET", "/api/events?store=default", version: "HTTP/1.0", fields: []
        ) { $0.contains("event: values") }
        #expect(!stream.lowercased().contains("transfer-encoding"))
        #expect(stream.contains("\r\n\r\nevent: "), "\(stream)")
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

    @Test("the server ends beside an open stream, which ends too")
    func ends() async throws {
      let (streams, stream) = AsyncStream<Task<String, any Error>>.makeStream()
      try await withPage { page, _ in
        let (opened, open) = AsyncStream<Void>.makeStream()
        stream.yield(
          Task {
            try await page.stream("/api/events?store=default") { text in
              if text.contains("event: status") { open.finish() }
              return false
            }
          })
        for await _ in opened {}
      }
      // The client throws if the stream is still open after 20 s.
      for await stream in streams {
        #expect(try await stream.value.hasPrefix("HTTP/1.1 200"))
        break
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

    @Test("an invitation is shown until it is cancelled, and there is one at a time")
    func invitation() async throws {
      try await withPage { page, _ in
        var answer = try await page.post("/api/invite")
        #expect(answer.status == 200)
        let text = try await page.stream("/api/events?store=default") {
          $0.contains("\"state\":\"waiting\"")
        }
        #expect(text.contains("\"code\":\"") && text.contains("\"triesLeft\":3"))
        answer = try await page.post("/api/invite")
        #expect(answer.status == 422)
        #expect(try await page.get("/api/events?store=").status == 400)
        answer = try await page.post(
          "/api/join", ["code": "0000-0000", "name": "desktop"])
        #expect(answer.status == 409)
        // One that begins before the last has wound down, and one that is cancelled before it begins.
        for _ in 0..<3 {
          _ = try await page.post("/api/pairing/cancel")
          _ = try await page.stream("/api/events?store=default") {
            $0.contains("event: pairing\ndata: null")
          }
          #expect(try await page.post("/api/invite").status == 200)
        }
        _ = try await page.stream("/api/events?store=default") {
          $0.contains("\"state\":\"waiting\"")
        }
        _ = try await page.post("/api/pairing/cancel")
      }
    }

    @Test("two devices pair through their pages: both show both fingerprints, and both must agree")
    func pairing() async throws {
      try await withPage { inviter, _ in
        let other = PageServerTests(sharing: try TestDirectory())
        try await other.withPage(signedInAs: nil) { joiner, accounts in
          _ = try await inviter.post("/api/invite")
          let waiting = try await inviter.stream("/api/events?store=default") {
            $0.contains("\"state\":\"waiting\"")
          }
          let token = try #require(waiting.firstMatch(of: /"token":"([^"]+)"/)).output.1
          _ = try await joiner.post(
            "/api/join", ["code": String(token), "name": "desktop"])
          func asking(_ page: PageClient) async throws -> (prints: Set<String>, device: String) {
            let text = try await page.stream("/api/events?store=default") {
              $0.contains("\"state\":\"asking\"")
            }
            let prints = text.matches(of: /[fF]ingerprint":"([^"]+)"/).map { String($0.output.1) }
            let device = try #require(text.matches(of: /"id":"([0-9a-f]{64})","name"/).last)
            return (Set(prints), String(device.output.1))
          }
          let joinerShows = try await asking(joiner)
          func answer(_ page: PageClient, about device: String) async throws {
            let answer = try await page.post(
              "/api/pairing/answer", ["accept": true, "device": device])
            #expect(answer.status == 200)
          }
          try await answer(joiner, about: joinerShows.device)
          let inviterShows = try await asking(inviter)
          #expect(joinerShows.prints.isSubset(of: inviterShows.prints))
          #expect(joinerShows.prints.count == 2)
          // An answer about another device, whose fingerprint somebody compared before, changes nothing.
          try await answer(inviter, about: joinerShows.device)
          #expect(try await asking(inviter).device == inviterShows.device)
          try await answer(inviter, about: inviterShows.device)
          for page in [inviter, joiner] {
            _ = try await page.stream("/api/events?store=default") {
              $0.contains("\"state\":\"done\"")
            }
          }
          #expect(accounts.signedIn != nil)
        }
      }
    }

    private init(sharing directory: TestDirectory) { self.directory = directory }

    @Test("an account is created, and its recovery key told once")
    func creation() async throws {
      try await withPage(signedInAs: nil) { page, accounts in
        var answer = try await page.post("/api/account/create", ["name": "laptop"])
        #expect(try answer.members["recoveryKey"] as? String != nil)
        #expect(accounts.signedIn != nil)
        answer = try await page.post("/api/account/create", ["name": "laptop"])
        #expect(answer.status == 409)
        answer = try await page.get("/api/status")
        #expect(!answer.body.contains("recoveryKey"))
      }
    }

    @Test("each answer keeps the browser from using it elsewhere")
    func headers() async throws {
      try await withPage { page, _ in
        for path in ["/", "/app.js", "/api/status", "/none"] {
          let headers = try await page.get(path).headers
          #expect(headers["content-security-policy"]?.hasPrefix("default-src 'none'") == true)
          #expect(headers["x-content-type-options"] == "nosniff")
          #expect(headers["cache-control"] == "no-store")
          #expect(headers["cross-origin-resource-policy"] == "same-origin")
          #expect(headers["access-control-allow-origin"] == nil)
        }
        var stranger = page
        stranger.key = nil
        #expect(try await stranger.get("/api/status").status == 401)
        #expect(try await stranger.get("/api/events?store=default").status == 401)
      }
    }
  }
#endif
