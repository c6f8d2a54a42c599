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

    func store() throws -> String {
      guard let store = StoreIdentifier(try text("store")) else {
        throw PageFailure(.usage, "this is no store's name")
      }
      return store.rawValue
    }

    func number(_ name: String) -> Int? { (try? text(name)).flatMap { Int($0) } }

    /// Whether also large values are sent.
    var isWhole: Bool { (try? text("whole")) == "true" }

    func decoded<Body: Decodable>(upTo limit: Int = Page.smallBodyBytes) async throws -> Body {
      let bytes = try await body.collect(upTo: limit)
      do {
        return try JSONDecoder().decode(Body.self, from: Data(bytes.readableBytesView))
      } catch {
        throw PageFailure(.usage, "the request cannot be read: \(error)")
      }
    }
  }
#endif
