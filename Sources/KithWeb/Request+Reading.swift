#if Web
  import Foundation
  import Hummingbird
  import Kith
  import KithCore

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
#endif
