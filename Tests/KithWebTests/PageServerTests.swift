#if Web
  import Foundation
  import Testing

  @testable import KithWeb

  /// The answers to any request, by its host, method and version, and how streams end.
  @Suite(.timeLimit(.minutes(2))) struct PageServerTests {
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
  }
#endif
