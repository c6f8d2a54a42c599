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
      require(
        (try? Array(request.frame().readableBytesView.dropFirst(4))).flatMap {
          LocalRequest(ByteBuffer(bytes: $0))
        } != nil, "a request is not read back")
      requests.append(request)
    }
    guard !requests.isEmpty else { return }
    ControlNode.shared.answer(requests)
  } seeds: {
    var seeds: [(name: String, bytes: [UInt8])] = []
    var stream: [UInt8] = []
    for (number, (name, call)) in try calls().enumerated() {
      let frame = Array(try LocalRequest(id: number, call: call).frame().readableBytesView)
      seeds.append((name, [7] + frame))
      stream += frame
    }
    // More than the 16 requests that one input performs: the last ones have only their own seeds.
    seeds.append(("all", [3] + stream))
    return seeds
  }

  /// Each request of the protocol.
  private static func calls() throws -> [(name: String, call: NodeCall)] {
    let device = FuzzAccount.shared.devices[1].id
    let name = "com.example.App"
    guard let store = StoreIdentifier(name) else { fatalError("no identifier: \(name)") }
    let write = [KithCore.Operation(key: "theme", value: try EncodedValue(.string("dark")))]
    let carrier = CarrierSettings(
      kind: "webdav", location: "https://cloud.example/kith", credentials: "me\nsecret")
    let removal = [KithCore.Operation(key: "theme", value: nil)]
    return [
      ("hello", .hello(version: LocalLimits.version, attaches: true)),
      ("commit", .commit(store: name, operations: write)),
      (
        "commit-expecting",
        .commit(store: name, operations: removal, expecting: ExpectedValues(values: write))
      ),
      ("commit-each", .commitEach(store: name, [write, removal])),
      ("values", .values(store: name)),
      ("open", .open(store, .standard)),
      ("write", .write(store, write, expecting: .none)),
      ("write-each", .writeEach(store, [write, removal])),
      ("adopt", .adopt(store, .standard, [LocalWrite(clock: .zero, operations: write)])),
      ("usage", .usage(store: name)),
      ("hidden", .hidden(store: name)),
      ("refusals", .refusals(store: name, takingThrough: 3)),
      ("history", .history(store: name, key: "theme", limit: 3)),
      ("undo", .undo(store: name, .key("theme", to: 1))),
      ("sync-report", .syncReport(store)),
      ("status", .status),
      ("dependents", .dependents(device)),
      ("rename", .rename(device, name: "laptop")),
      ("revoke", .revoke(device, keeping: [device])),
      ("accept-loss", .acceptLoss(store: name)),
      ("accept-time", .acceptTime),
      ("carriers", .carriers),
      ("keep-carrier", .keepCarrier(carrier)),
      ("remove-carrier", .removeCarrier(carrier)),
      ("look-at-carriers", .lookAtCarriers),
      ("flush", .flush),
      ("meet", .meet(address: "192.0.2.1:4114")),
      ("follow-progress", .followProgress),
      ("wait-until-synced", .waitUntilSynced(store: name, seconds: 0)),
      ("watch", .watch(store: name)),
      ("invite", .invite(addresses: ["192.0.2.1"], hasCode: true)),
      ("yield", .yield),
      ("decide", .decide(isAccepted: true)),
    ]
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
