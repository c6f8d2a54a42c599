import ExampleDevice
import Kith
import Logging
import Metrics
import ServiceLifecycle

extension StoreKey where Value == String {
  static var greeting: Self { .init("greeting", default: "hello") }
}

extension StoreKey where Value == Int {
  static var count: Self { .init("count", default: 1) }
}

/// Does as the settings say, from whichever device they were set.
struct Greeter: Service {
  let store: KeyValueStore
  let logger: Logger
  private let greetings = Counter(label: "greetings_total")

  init(store: KeyValueStore, logger: Logger) {
    self.store = store
    self.logger = logger
  }

  func run() async throws {
    await cancelWhenGracefulShutdown {
      for await (greeting, count) in store.values(for: .greeting, .count) {
        logger.info("the settings have changed", metadata: ["count": "\(count)"])
        for _ in 0..<min(count, 10) { say(greeting) }
        greetings.increment(by: min(count, 10))
      }
    }
    logger.info("the greeter has ended")
  }
}
