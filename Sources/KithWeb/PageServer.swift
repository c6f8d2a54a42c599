#if Web
  import HTTPTypes
  import Hummingbird
  import HummingbirdCore
  package import KithCommands
  import KithCrypto
  import KithNetwork
  import KithTerminal
  import Logging
  import NIOCore
  import ServiceLifecycle
  import Synchronization

  /// The server of the page of `kith web`, on loopback.
  package struct PageServer: Service {
    /// A browser opens six; other programs of this host may connect too.
    private static let connections = 64

    private let web: WebPage

    package init(_ web: WebPage) { self.web = web }

    /// Serves until the task is cancelled or its service group shuts down.
    package func run() async throws {
      var entropy = SystemRandom()
      let (credentials, token) = PageCredentials.make(&entropy)
      let page = Page(accounts: web.accounts, usualStore: web.store)
      let responder = PageResponder(page: page, credentials: credentials, onUse: web.onUse)
      let application = Application(
        responder: responder,
        server: .http1(
          configuration: .init(
            additionalChannelHandlers: [RequestHeadInstaller(), RequestTimeHandler()],
            idleTimeout: RequestTime.longest)),
        configuration: .init(
          address: .hostname("127.0.0.1", port: Int(web.port)),
          availableConnectionsDelegate: MaximumAvailableConnections(Self.connections)),
        onServerRunning: { channel in
          guard let port = channel.localAddress?.port else { return }
          responder.open(port: port)
          web.onReady("http://127.0.0.1:\(port)/#\(token)")
        },
        logger: Logger(label: "kith web") { _ in SwiftLogNoOpLogHandler() })
      try await withThrowingTaskGroup(of: Void.self) { group in
        group.addTask { await page.pairing.run() }
        defer { group.cancelAll() }
        do {
          try await application.run()
        } catch let error as IOError {
          let failure = NetworkFailure(listeningOn: "127.0.0.1", port: Int(web.port), error)
          throw CommandFailure(.unreachable, "\(failure); choose another with --web-port")
        }
      }
    }
  }

  /// Answers requests: judges them by ``PageGuard`` first, and gives all answers the headers that keep
  /// a browser from doing anything else with them.
  final class PageResponder: HTTPResponder {
    typealias Context = BasicRequestContext

    /// Nothing but the page's own files and requests.
    private static let policy = [
      "default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self' data:",
      "connect-src 'self'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'",
    ].joined(separator: "; ")

    private let page: Page
    private let credentials: PageCredentials
    private let onUse: @Sendable () -> Void
    /// Nil until the port is known.
    private let guarding = Mutex<PageGuard?>(nil)

    init(page: Page, credentials: PageCredentials, onUse: @escaping @Sendable () -> Void) {
      self.page = page
      self.credentials = credentials
      self.onUse = onUse
    }

    func open(port: Int) {
      guarding.withLock { $0 = PageGuard(port: port, credentials: credentials) }
    }

    func respond(to request: Request, context: BasicRequestContext) async throws -> Response {
      var response: Response
      do {
        response = try await answer(request)
      } catch {
        let failure = PageFailure(error)
        response = Response(.object(["error": failure.document]), status: .init(code: failure.http))
        response.headers[.allow] = failure.allowedMethods
      }
      let headers: [(String, String)] = [
        ("Cache-Control", "no-store"), ("Content-Security-Policy", Self.policy),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cross-Origin-Resource-Policy", "same-origin"), ("Referrer-Policy", "no-referrer"),
        ("X-Content-Type-Options", "nosniff"), ("X-Frame-Options", "DENY"),
      ]
      for (name, value) in headers {
        if let name = HTTPField.Name(name) { response.headers[name] = value }
      }
      // As for GET, but without the body.
      return request.method == .head ? response.createHeadResponse() : response
    }

    private func answer(_ request: Request) async throws -> Response {
      guard let guarding = guarding.withLock({ $0 }) else { throw PageFailure.foreign }
      switch guarding.judge(.init(request, cookie: guarding.cookieName)) {
      case .ambiguous: throw PageFailure(.usage, "a request names one host, the page's")
      case .foreign: throw PageFailure.foreign
      case .wrongContentType:
        throw PageFailure(
          .usage, "a request that changes something has Content-Type application/json")
      case .noCredentials: throw PageFailure.noCredentials
      case .tradesToken: return try await tradeToken(request, cookie: guarding.cookieName)
      case .allowed: break
      }
      if let file = PageFile(path: request.uri.path) {
        guard [.get, .head].contains(request.method) else {
          throw PageFailure.wrongMethod(allowed: ["GET", "HEAD"])
        }
        return Response(
          status: .ok, headers: [.contentType: file.type],
          body: ResponseBody(byteBuffer: ByteBuffer(bytes: file.bytes)))
      }
      return try await page.answer(request)
    }

    private func tradeToken(_ request: Request, cookie: String) async throws -> Response {
      struct Body: Decodable { var token: String }
      guard request.method == .post else { throw PageFailure.noCredentials }
      let body: Body = try await request.decoded(upTo: 4_096)
      var entropy = SystemRandom()
      guard let secrets = credentials.trade(body.token, &entropy) else {
        throw PageFailure.noCredentials
      }
      onUse()
      var response = Response(.object(["key": .string(secrets.key)]))
      response.setCookie(
        Cookie(
          name: cookie, value: secrets.cookie, path: "/", httpOnly: true,
          sameSite: .strict))
      return response
    }
  }

  extension PageGuard.Request {
    init(_ request: Request, cookie: String) {
      func header(_ name: String) -> String? {
        HTTPField.Name(name).flatMap { request.headers[$0] }
      }
      self.init(
        method: request.method.rawValue, path: request.uri.path,
        // The first field became the authority; others are still fields.
        hosts: (request.head.authority.map { [$0] } ?? [])
          + (HTTPField.Name("Host").map { request.headers[values: $0] } ?? []),
        origin: header("Origin"), fetchSite: header("Sec-Fetch-Site"),
        contentType: request.headers[.contentType],
        cookie: request.cookies[cookie]?.value,
        key: header(PageGuard.keyHeader))
    }
  }

  extension Response {
    init(_ document: Document, status: HTTPResponse.Status = .ok) {
      self.init(
        status: status, headers: [.contentType: "application/json; charset=utf-8"],
        body: ResponseBody(byteBuffer: ByteBuffer(string: document.text(indented: false))))
    }
  }
#endif
