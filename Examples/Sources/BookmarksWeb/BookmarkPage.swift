#if Web
  import Foundation
  import Hummingbird
  import Kith
  import ServiceLifecycle

  /// The page, its requests, and its events.
  struct BookmarkPage {
    let bookmarks: BookmarkList

    private struct Adding: Decodable {
      var url: URL
      var title: String
    }
    private struct Removing: Decodable {
      var url: URL
    }
    private struct Moving: Decodable {
      var url: URL
      var before: URL?
    }

    var router: Router<BasicRequestContext> {
      let router = Router()
      router.add(middleware: OwnPageOnly())
      for (path, type, bytes) in [
        ("/", "text/html", PackageResources.index_html),
        ("/bookmarks.css", "text/css", PackageResources.bookmarks_css),
        ("/bookmarks.js", "text/javascript", PackageResources.bookmarks_js),
        ("/icon.svg", "image/svg+xml", PackageResources.icon_svg),
      ] {
        router.get("\(path)") { _, _ in
          Response(
            status: .ok, headers: [.contentType: "\(type); charset=utf-8"],
            body: .init(byteBuffer: ByteBuffer(bytes: bytes)))
        }
      }
      router.get("events", use: events)
      router.post("add") { request, context in
        let page = try await request.decode(as: Adding.self, context: context)
        guard ["http", "https"].contains(page.url.scheme?.lowercased()), page.url.host() != nil
        else {
          throw HTTPError(
            .unprocessableContent, message: "The address must begin with http:// or https://.")
        }
        try await bookmarks.add(
          page.url, title: page.title.isEmpty ? page.url.absoluteString : page.title)
        return HTTPResponse.Status.noContent
      }
      router.post("remove") { request, context in
        try await bookmarks.remove(request.decode(as: Removing.self, context: context).url)
        return HTTPResponse.Status.noContent
      }
      router.post("move") { request, context in
        let move = try await request.decode(as: Moving.self, context: context)
        try await bookmarks.move(move.url, before: move.before)
        return HTTPResponse.Status.noContent
      }
      return router
    }

    /// Server-sent events: what to show now, and again after each change of any device.
    @Sendable private func events(
      _ request: Request, _ context: BasicRequestContext
    ) async throws -> Response {
      Response(
        status: .ok, headers: [.contentType: "text/event-stream"],
        body: .init { writer in
          // Cancelled when the browser closes the connection, which only reading notices.
          try await request.body.consumeWithCancellationOnInboundClose { _ in
            // Made before the content is read, so that no change is missed. Ends at shutdown, because
            // the server waits for its open connections.
            let changes = bookmarks.changes.cancelOnGracefulShutdown()
            try await writer.write(event(bookmarks.content()))
            for try await change in changes {
              try await writer.write(event(bookmarks.content(after: change)))
            }
          }
          try await writer.finish(nil)
        })
    }

    private func event(_ content: BookmarkList.Content) throws -> ByteBuffer {
      let encoder = JSONEncoder()
      encoder.dateEncodingStrategy = .iso8601
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
      let data = String(decoding: try encoder.encode(content), as: UTF8.self)
      // If the connection ends, the browser connects again after a second.
      return ByteBuffer(string: "retry: 1000\ndata: \(data)\n\n")
    }
  }
#endif
