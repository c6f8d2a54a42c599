#if Web
  import Kith
  import KithCore
  import KithTestSupport
  import Synchronization
  import Testing

  /// Accounts that the page makes and signs in to, and devices that it pairs.
  @Suite(.timeLimit(.minutes(2))) struct PageAccountsTests {
    /// It was in one answer alone: a page that was loaded again meanwhile had an account without it.
    @Test func `an account exists once a person has its recovery key, shown until then`()
      async throws
    {
      try await withPage(signedInAs: nil) { page, accounts in
        func begin() async throws -> Int {
          try await page.post("/api/account/create", ["name": "laptop"]).status
        }
        func answer(about device: String) async throws {
          let answer = try await page.post(
            "/api/pairing/answer", ["accept": true, "device": device])
          #expect(answer.status == 200)
        }
        #expect(try await begin() == 200)
        let first = try await Self.recoveryKey(at: page)
        #expect(try await begin() == 422)
        #expect(try await Self.recoveryKey(at: page).key == first.key, "as after a reload")
        #expect(try await !page.get("/api/status").body.contains(first.key))
        _ = try await page.post("/api/pairing/cancel")
        #expect(try await begin() == 200)
        let second = try await Self.recoveryKey(at: page)
        #expect(second.key != first.key)
        // A page that still shows the first key.
        try await answer(about: first.device)
        #expect(try await Self.recoveryKey(at: page).key == second.key)
        #expect(accounts.signedIn == nil)
        #expect(try accounts.known.isEmpty)
        try await answer(about: second.device)
        try await eventually { accounts.signedIn != nil }
        let text = try await page.stream("/api/events?store=default") {
          $0.contains("event: pairing\ndata: null")
        }
        #expect(!text.contains(second.key))
        #expect(try await page.get("/api/status").body.contains(second.device))
        #expect(try await begin() == 409)
      }
    }

    @Test func `a page that ends before a person has the recovery key leaves no account`()
      async throws
    {
      let opened = Mutex<Accounts?>(nil)
      try await withPage(signedInAs: nil) { page, accounts in
        opened.withLock { $0 = accounts }
        _ = try await page.post("/api/account/create", ["name": "laptop"])
        _ = try await Self.recoveryKey(at: page)
      }
      let accounts = try #require(opened.withLock { $0 })
      #expect(accounts.signedIn == nil)
    }

    /// The recovery key that the page shows, and the new account's device.
    private static func recoveryKey(
      at page: PageClient
    ) async throws -> (key: String, device: String) {
      let text = try await page.stream("/api/events?store=default") {
        $0.contains(/"recoveryKey":"[^"]+"/)
      }
      let key = try #require(text.firstMatch(of: /"recoveryKey":"([^"]+)"/)).output.1
      let device = try #require(text.matches(of: /"id":"([0-9a-f]{64})"/).last).output.1
      return (String(key), String(device))
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
        try await withPage(signedInAs: nil) { joiner, accounts in
          try await Self.join(joiner, invitedBy: inviter)
          let joinerShows = try await Self.asking(joiner)
          try await Self.accept(joinerShows.device, at: joiner)
          let inviterShows = try await Self.asking(inviter)
          #expect(joinerShows.prints.isSubset(of: inviterShows.prints))
          #expect(joinerShows.prints.count == 2)
          // An answer about another device, whose fingerprint somebody compared before, changes nothing.
          try await Self.accept(joinerShows.device, at: inviter)
          #expect(try await Self.asking(inviter).device == inviterShows.device)
          try await Self.accept(inviterShows.device, at: inviter)
          for page in [inviter, joiner] {
            _ = try await page.stream("/api/events?store=default") {
              $0.contains("\"state\":\"done\"")
            }
          }
          #expect(accounts.signedIn != nil)
        }
      }
    }

    /// The page said that the device did not join.
    @Test func `a device has joined also if the account does not take its local writes`()
      async throws
    {
      try await withPage { inviter, full in
        for number in 0..<Limits.stores {
          try full.store("com.example.store\(number)").set(1, forKey: "k")
        }
        try await withPage(signedInAs: nil) { joiner, accounts in
          try accounts.store("com.example.excess").set(1, forKey: "k")
          try await Self.join(joiner, invitedBy: inviter)
          for page in [joiner, inviter] {
            try await Self.accept(Self.asking(page).device, at: page)
          }
          try await eventually { accounts.signedIn == full.signedIn }
          let text = try await joiner.stream("/api/events?store=default") {
            $0.contains("\"state\":\"done\"") || $0.contains("\"state\":\"failed\"")
          }
          let end = text.split(separator: "\n").last { $0.contains("\"role\":\"joiner\"") } ?? ""
          #expect(end.contains("\"state\":\"done\""), "\(end)")
          #expect(end.contains("did not take the writes"), "\(end)")
        }
      }
    }

    /// Has one page show an invitation, and the other join by it.
    private static func join(_ joiner: PageClient, invitedBy inviter: PageClient) async throws {
      _ = try await inviter.post("/api/invite")
      let waiting = try await inviter.stream("/api/events?store=default") {
        $0.contains("\"state\":\"waiting\"")
      }
      let token = try #require(waiting.firstMatch(of: /"token":"([^"]+)"/)).output.1
      _ = try await joiner.post("/api/join", ["code": String(token), "name": "desktop"])
    }

    /// The fingerprints that a page asks to compare, and the other device.
    private static func asking(
      _ page: PageClient
    ) async throws -> (prints: Set<String>, device: String) {
      let text = try await page.stream("/api/events?store=default") {
        $0.contains("\"state\":\"asking\"")
      }
      let prints = text.matches(of: /[fF]ingerprint":"([^"]+)"/).map { String($0.output.1) }
      let device = try #require(text.matches(of: /"id":"([0-9a-f]{64})","name"/).last)
      return (Set(prints), String(device.output.1))
    }

    private static func accept(_ device: String, at page: PageClient) async throws {
      let answer = try await page.post("/api/pairing/answer", ["accept": true, "device": device])
      #expect(answer.status == 200)
    }
  }
#endif
