import Foundation
import NIOCore

@testable import Kith
@testable import KithCore

extension FuzzTarget {
  /// The control socket: bytes to frames, frames to requests, requests to answers of a node.
  ///
  /// The first byte says how the bytes are cut, which must not matter. A request is answered, and a
  /// committed value can be read; bytes that are no request end the connection.
  static let control = FuzzTarget(name: "control") { bytes in
    var input = FuzzInput(bytes)
    let width = Int(input.byte() & 0x3f) + 1
    let rest = input.rest()
    let frames = cut(rest, by: rest.count)
    require(frames == cut(rest, by: width), "the cut of the bytes matters")
    var requests: [LocalRequest] = []
    for frame in frames.prefix(16) {
      guard let request = LocalRequest(ByteBuffer(bytes: frame)) else { break }
      // One encoding each.
      require(
        (try? Array(request.frame().readableBytesView.dropFirst(4))).flatMap {
          LocalRequest(ByteBuffer(bytes: $0))
        } != nil, "a request is not read back")
      requests.append(request)
    }
    guard !requests.isEmpty else { return }
    ControlNode.shared.answer(requests)
  } seeds: {
    let write = [KithCore.Operation(key: "theme", value: try? EncodedValue(.string("dark")))]
    let store = StoreIdentifier("com.example.App")
    var calls: [NodeCall] = [
      .hello(version: LocalLimits.version, attaches: true), .values(store: "com.example.App"),
      .commit(store: "com.example.App", operations: write),
      .commit(store: "com.example.App", operations: write, expecting: write), .status,
      .usage(store: "com.example.App"), .hidden(store: "a"),
      .refusals(store: "a", takingThrough: 3), .acceptLoss(store: "a"), .flush,
      .meet(address: "192.0.2.1:4114"),
      .synchronize(store: "a", seconds: 0), .watch(store: "a"),
      .invite(addresses: ["192.0.2.1"], hasCode: true), .decide(isAccepted: true), .followProgress,
    ]
    if let store {
      calls += [
        .open(store, .standard), .write(store, write, gathers: true, isDurable: true),
        .report(store), .adopt(store, .standard, [LocalWrite(clock: .zero, operations: write)]),
      ]
    }
    let frames = calls.enumerated().compactMap { number, call in
      try? Array(LocalRequest(id: number, call: call).frame().readableBytesView)
    }
    var seeds = frames.enumerated().map { (name: "call \($0)", bytes: [7] + $1) }
    seeds.append(("all", [3] + frames.joined()))
    return seeds
  }

  /// The frames of a stream that comes in pieces of one width, up to one that is too long.
  private static func cut(_ bytes: [UInt8], by width: Int) -> [[UInt8]] {
    let processor = NIOSingleStepByteToMessageProcessor(FrameDecoder(limit: LocalRequest.limit))
    var frames: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: max(1, width)) {
      let piece = ByteBuffer(bytes: bytes[start..<min(bytes.count, start + width)])
      do {
        try processor.process(buffer: piece) { frames.append(Array($0.readableBytesView)) }
      } catch {
        break
      }
    }
    return frames
  }
}
