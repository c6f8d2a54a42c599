import Foundation
import Synchronization
import Testing

@testable import UbiquitousKeyValueStorePorting

/// The calls that programs write around `NotificationCenter`. Each test posts to a center of its
/// own.
@Suite(.timeLimit(.minutes(2)), .serialized) struct PortingTests {
  private static let name = NSNotification.Name("changed")

  private class Observer: @unchecked Sendable {
    let calls = Mutex<[String]>([])
    fileprivate func told(_ call: String) { calls.withLock { $0.append(call) } }
    func changed(_ notification: Notification) { told("changed") }
    func changedObject(_ notification: NSNotification) { told("object") }
    func nothing() { told("nothing") }
    private func hidden(notification: Notification) { told("hidden") }

    func addAll(to center: NotificationCenter) {
      let selectors = [
        Selector(Observer.changed), Selector(Self.changedObject(_:)), Selector(Observer.nothing),
        Selector(Observer.hidden(notification:)),
      ]
      for selector in selectors {
        center.addObserver(self, selector: selector, name: name, object: nil)
      }
    }
    var name: NSNotification.Name { PortingTests.name }
  }

  private final class Special: Observer, @unchecked Sendable {
    override func changed(_ notification: Notification) { told("special") }
  }

  /// Removes itself, as most programs do.
  private final class Leaving: @unchecked Sendable {
    let center: NotificationCenter
    init(_ center: NotificationCenter) {
      self.center = center
      center.addObserver(
        self, selector: Selector(Leaving.changed(_:)), name: PortingTests.name, object: nil)
    }
    func changed(_ notification: Notification) {}
    deinit { center.removeObserver(self) }
  }

  @MainActor private final class View {
    var calls = 0
    func changed(_ notification: Notification) { count() }
    func nothing() { count() }
    private func count() {
      MainActor.preconditionIsolated()
      calls += 1
    }
  }

  @Test func `each shape of a method is called, and overrides are`() {
    let center = NotificationCenter()
    let observer = Special()
    observer.addAll(to: center)
    center.post(name: Self.name, object: nil)
    #expect(observer.calls.withLock { $0.sorted() } == ["hidden", "nothing", "object", "special"])
    center.removeObserver(observer)
    center.post(name: Self.name, object: nil)
    #expect(observer.calls.withLock { $0.count } == 4)
  }

  @Test func `names and objects are told apart, in adding and in removing`() {
    let center = NotificationCenter()
    let (one, two) = (NSObject(), NSObject())
    let observer = Observer()
    let selector = Selector(Observer.changed(_:))
    center.addObserver(observer, selector: selector, name: Self.name, object: one)
    center.addObserver(observer, selector: selector, name: Self.name, object: two)
    center.addObserver(observer, selector: selector, name: .init("other"), object: nil)
    func calls(_ post: () -> Void) -> Int {
      observer.calls.withLock { $0 = [] }
      post()
      return observer.calls.withLock { $0.count }
    }
    #expect(calls { center.post(name: Self.name, object: one) } == 1)
    #expect(calls { center.post(name: Self.name, object: nil) } == 0)
    center.removeObserver(observer, name: Self.name, object: one)
    #expect(calls { center.post(name: Self.name, object: one) } == 0)
    #expect(calls { center.post(name: Self.name, object: two) } == 1)
    center.removeObserver(observer, name: Self.name, object: nil)
    #expect(calls { center.post(name: Self.name, object: two) } == 0)
    #expect(calls { center.post(name: .init("other"), object: nil) } == 1)
    NotificationCenter().removeObserver(observer)
    #expect(calls { center.post(name: .init("other"), object: nil) } == 1)
    center.removeObserver(observer)
    #expect(calls { center.post(name: .init("other"), object: nil) } == 0)
  }

  @Test func `observers are not kept alive, and leave nothing behind`() {
    let center = NotificationCenter()
    weak var gone: Observer?
    do {
      let observer = Observer()
      observer.addAll(to: center)
      #expect(SelectorObservers.shared.count(in: center) == 4)
      gone = observer
    }
    #expect(gone == nil)
    center.post(name: Self.name, object: nil)
    #expect(SelectorObservers.shared.count(in: center) == 0)
    for _ in 0..<100 { _ = Leaving(center) }
    #expect(SelectorObservers.shared.count(in: center) == 0)
  }

  @Test func `tokens of blocks are removed as ever`() {
    let center = NotificationCenter()
    let calls = Atomic<Int>(0)
    let token = center.addObserver(forName: Self.name, object: nil, queue: nil) { _ in
      calls.add(1, ordering: .relaxed)
    }
    center.post(name: Self.name, object: nil)
    center.removeObserver(token)
    center.post(name: Self.name, object: nil)
    #expect(calls.load(ordering: .relaxed) == 1)
  }

  @Test func `methods of the main actor are called there`() async {
    let center = NotificationCenter()
    let view = View()
    center.addObserver(view, selector: Selector(View.changed), name: Self.name, object: nil)
    center.addObserver(view, selector: Selector(View.nothing), name: Self.name, object: nil)
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        center.post(name: Self.name, object: nil)
        continuation.resume()
      }
    }
    // Queued after what the posting queued.
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    #expect(await view.calls == 2)
    // From there at once.
    await MainActor.run {
      center.post(name: Self.name, object: nil)
      #expect(view.calls == 4)
    }
  }

  @Test func `a call that waits for the main queue is not made to a removed observer`() async {
    let center = NotificationCenter()
    let view = View()
    center.addObserver(view, selector: Selector(View.changed), name: Self.name, object: nil)
    await MainActor.run {
      let posted = DispatchSemaphore(value: 0)
      Thread.detachNewThread {
        center.post(name: Self.name, object: nil)
        posted.signal()
      }
      posted.wait()
      center.removeObserver(view)
    }
    // Queued after what the posting queued.
    await withCheckedContinuation { continuation in
      DispatchQueue.main.async { continuation.resume() }
    }
    #expect(await view.calls == 0)
  }

  /// Their `deinit` ran inside the lock that it takes.
  @Test func `observers may die while others look whether they live`() {
    let (center, other) = (NotificationCenter(), NotificationCenter())
    DispatchQueue.concurrentPerform(iterations: 2) { index in
      for _ in 0..<500 {
        if index == 0 {
          _ = (0..<10).map { _ in Leaving(center) }
        } else {
          Observer().addAll(to: other)
          other.post(name: Self.name, object: nil)
        }
      }
    }
    #expect(SelectorObservers.shared.count(in: center) == 0)
    #expect(SelectorObservers.shared.count(in: other) == 0)
  }

  @Test func `notifications come as a sequence, from its iterator on`() async {
    let center = NotificationCenter()
    let object = NSObject()
    var all = center.notifications(named: Self.name).makeAsyncIterator()
    var some = center.notifications(named: Self.name, object: object).makeAsyncIterator()
    for number in 1...3 {
      center.post(
        name: Self.name, object: number == 2 ? object : nil, userInfo: ["number": number])
    }
    center.post(name: .init("other"), object: nil)
    for number in 1...3 { #expect(await all.next()?.userInfo?["number"] as? Int == number) }
    #expect(await some.next()?.userInfo?["number"] as? Int == 2)
    let task = Task {
      for await _ in center.notifications(named: Self.name) {}
      return true
    }
    task.cancel()
    #expect(await task.value)
  }

  @Test func `of notifications that nobody takes the newest wait`() async {
    let center = NotificationCenter()
    var iterator = center.notifications(named: Self.name).makeAsyncIterator()
    let limit = NotificationCenter.Notifications.bufferLimit
    for number in 0..<limit + 5 {
      center.post(name: Self.name, object: nil, userInfo: ["number": number])
    }
    for number in 5..<limit + 5 {
      #expect(await iterator.next()?.userInfo?["number"] as? Int == number)
    }
  }
}
