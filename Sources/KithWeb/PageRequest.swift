#if Web
  import FoundationEssentials
  import Hummingbird
  import Kith
  import KithCore
  import NIOCore
  import NIOHTTP1

  /// The query and the body.
  extension Request {
    func text(_ name: String) throws -> String {
      guard let text = uri.queryParameters[name[...]] else {
        throw PageFailure(.usage, "the parameter \"\(name)\" is missing")
      }
      return String(text)
    }

    func store() throws -> String { try PageStore(text("store")).name }

    func number(_ name: String) -> Int? { (try? text(name)).flatMap { Int($0) } }

    /// Whether also large values are sent.
    var isWhole: Bool { (try? text("whole")) == "true" }

    func decoded<Body: Decodable>(upTo limit: Int = Page.smallBodyBytes) async throws -> Body {
      let bytes = try await body.collect(upTo: limit)
      do {
        return try JSONDecoder().decode(Body.self, from: Data(bytes.readableBytesView))
      } catch let failure as PageFailure {
        throw failure
      } catch {
        throw PageFailure(.usage, "the request cannot be read: \(error)")
      }
    }
  }

  /// The name of a store as all requests give it; not one of the account's own.
  struct PageStore: Decodable {
    let name: String

    init(_ text: String) throws(PageFailure) {
      guard let store = StoreIdentifier(text) else {
        throw PageFailure(.usage, "this is no store's name")
      }
      guard !store.isReserved else {
        throw PageFailure(.usage, "stores whose names begin with kith. are the account's own")
      }
      name = store.rawValue
    }

    init(from decoder: any Decoder) throws {
      try self.init(decoder.singleValueContainer().decode(String.self))
    }
  }

  /// Lets an absolute target (`GET http://host/… HTTP/1.1`) replace the field `Host` (RFC 9112, section
  /// 3.2.2), so that ``PageGuard`` judges the host that it names. Of such a target the server's own
  /// handlers pass on the path alone.
  final class TargetHostHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(var head) = unwrapInboundIn(data), let host = Self.host(of: head.uri) else {
        return context.fireChannelRead(data)
      }
      head.headers.replaceOrAdd(name: "Host", value: host)
      context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    /// The host that a target names, with its port; nil if it is a path. Any other target counts as a
    /// host.
    static func host(of target: String) -> String? {
      guard !target.utf8.starts(with: "/".utf8) else { return nil }
      let parts = target.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
      guard parts.count >= 3, parts[0].lowercased() == "http:", parts[1].isEmpty else {
        return target
      }
      return String(parts[2].prefix { $0 != "?" && $0 != "#" })
    }
  }

  /// Follows two rules of HTTP that SwiftNIO leaves to servers:
  ///
  /// - A client that waits for `100 Continue` before it sends a body gets it (RFC 9110, section 10.1.1).
  /// - The answer to a client of HTTP/1.0 is not chunked, and the connection ends with it (RFC 9112,
  ///   sections 6.1 and 9.3).
  final class ClientVersionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    /// Whether the newest request is of HTTP/1.0.
    private var isOld = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(var head) = unwrapInboundIn(data) else {
        return context.fireChannelRead(data)
      }
      isOld = head.version == .http1_0
      if isOld {
        // The server closes the connection for that.
        head.headers.replaceOrAdd(name: "Connection", value: "close")
      } else if head.headers["Expect"].contains(where: { $0.lowercased() == "100-continue" }) {
        let head = HTTPResponseHead(version: .http1_1, status: .continue)
        context.writeAndFlush(wrapOutboundOut(.head(head)), promise: nil)
      }
      context.fireChannelRead(wrapInboundOut(.head(head)))
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
      guard isOld, case .head(var head) = unwrapOutboundIn(data) else {
        return context.write(data, promise: promise)
      }
      head.version = .http1_0
      head.headers.replaceOrAdd(name: "Connection", value: "close")
      context.write(wrapOutboundOut(.head(head)), promise: promise)
    }
  }

  /// Puts the handlers of heads right after the decoder: the server adds handlers of others only
  /// after its own.
  final class RequestHeadInstaller: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = NIOAny

    func handlerAdded(context: ChannelHandlerContext) {
      do {
        let pipeline = context.pipeline.syncOperations
        let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPRequestDecoder>.self)
        try pipeline.addHandlers(
          TargetHostHandler(), ClientVersionHandler(), position: .after(decoder))
      } catch {
        context.close(promise: nil)
      }
    }
  }
#endif
