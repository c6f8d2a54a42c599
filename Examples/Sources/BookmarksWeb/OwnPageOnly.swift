#if Web
  import Hummingbird
  import Kith

  /// Answers only programs of this computer, of any user, and this server's own page. Any site that a person visits
  /// can make the browser send requests to this server:
  ///
  /// - Under a name of the site that leads to 127.0.0.1 (DNS rebinding): so `Host` must be local.
  /// - From the site's page: so `Origin`, which browsers add, must be this server. Programs such as
  ///   `curl` send none.
  /// - From a form of the site: so a request that changes something must be JSON, which a form cannot send.
  struct OwnPageOnly<Context: RequestContext>: RouterMiddleware {
    private static var headers: HTTPFields {
      [
        // Only the files of this server: no script in the page's text, no other server, no frame.
        .contentSecurityPolicy:
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
          + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
          + "require-trusted-types-for 'script'",
        .xContentTypeOptions: "nosniff",
        .cacheControl: "no-store",
      ]
    }

    func handle(
      _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
      var response: Response
      do {
        try check(request)
        response = try await next(request, context)
      } catch {
        response = try answer(to: error).response(from: request, context: context)
      }
      response.headers.append(contentsOf: Self.headers)
      return response
    }

    private func check(_ request: Request) throws {
      let host = request.head.authority ?? ""
      guard ["127.0.0.1", "localhost"].contains(host.prefix { $0 != ":" }) else {
        throw HTTPError(.misdirectedRequest, message: "This server is only for this computer.")
      }
      if let origin = request.headers[.origin], origin != "http://\(host)" {
        throw HTTPError(.forbidden, message: "This server is only for its own page.")
      }
      guard request.method != .get else { return }
      guard request.headers[.contentType]?.hasPrefix("application/json") == true else {
        throw HTTPError(.unsupportedMediaType, message: "The content must be application/json.")
      }
    }

    /// The page shows the message.
    private func answer(to error: any Error) -> any HTTPResponseError {
      switch error {
      case let error as any HTTPResponseError: error
      case is BookmarkIsGone:
        HTTPError(.notFound, message: "This bookmark was removed, perhaps on another device.")
      case let error as KithError where [.quotaExceeded, .valueTooLarge].contains(error.code):
        HTTPError(.contentTooLarge, message: error.message)
      case let error as KithError: HTTPError(.serviceUnavailable, message: error.message)
      default: HTTPError(.internalServerError, message: "\(error)")
      }
    }
  }
#endif
