import NIOCore
import Testing

@testable import KithWeb

/// A body that dripped kept its connection for as long as one liked.
@Suite struct RequestTimeTests {
  private let start = NIODeadline.uptimeNanoseconds(1_000_000_000_000)

  @Test func `a request has a time to arrive, however it drips`() {
    var time = RequestTime()
    let inTime = (0..<60).map { time.read(at: start + .seconds(Int64($0))) }
    #expect(!inTime.contains(false))
    let late = time.read(at: start + RequestTime.longest)
    #expect(!late)
  }

  @Test func `the rest of a body behind its answer has no more time`() {
    var time = RequestTime()
    var read = [time.read(at: start)]
    time.wrote()
    read += [59, 118, 119].map { time.read(at: start + .seconds($0)) }
    #expect(read == [true, true, true, false])
  }

  @Test func `requests that are answered go on for ever`() {
    var time = RequestTime()
    for minute in 0..<100 {
      let isInTime = time.read(at: start + .minutes(Int64(minute)))
      time.wrote()
      #expect(isInTime)
    }
  }
}
