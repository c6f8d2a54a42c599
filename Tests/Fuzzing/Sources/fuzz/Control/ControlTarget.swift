import Foundation
import NIOCore

@testable import Kith

extension FuzzTarget {
  /// The control socket: bytes to lines, lines to requests, requests to answers of a node.
  ///
  /// The first byte says how the bytes are cut, which must not matter. What is asked is answered in
  /// one line, under the request's id; what was committed can be got; a request that is no JSON ends
  /// the connection.
  static let control = FuzzTarget(name: "control") { bytes in
    var input = FuzzInput(bytes)
    let width = Int(input.byte() & 0x3f) + 1
    let rest = input.rest()
    let lines = cut(rest, by: rest.count)
    require(lines == cut(rest, by: width), "the cut of the bytes matters")
    let taken = max(0, lines.reduce(-1) { $0 + $1.count + 1 })
    require(
      lines.joined(separator: [0x0a]).elementsEqual(rest.prefix(taken)), "a line was altered")
    var requests: [ControlRequest] = []
    for line in lines.prefix(16) {
      guard let request = ControlJSON.decode(ControlRequest.self, ByteBuffer(bytes: line)) else {
        break
      }
      requests.append(request)
    }
    guard !requests.isEmpty else { return }
    ControlNode.shared.answer(requests)
  } seeds: {
    let lines = [
      #"{"id":1,"version":1,"operation":"version"}"#,
      #"{"id":2,"version":1,"operation":"get","store":"com.example.App","key":"theme"}"#,
      #"{"id":3,"version":1,"operation":"list","store":"com.example.App"}"#,
      #"{"id":4,"version":1,"operation":"commit","store":"com.example.App","writes":"#
        + #"[{"key":"theme","value":"IgRkYXJr"},{"key":"old"}]}"#,
      #"{"id":5,"version":1,"operation":"status"}"#,
      #"{"id":6,"version":1,"operation":"usage","store":"com.example.App"}"#,
      #"{"id":7,"version":1,"operation":"hidden","store":"com.example.App"}"#,
      #"{"id":8,"version":1,"operation":"refusals","store":"com.example.App","takesThrough":3}"#,
      #"{"id":9,"version":1,"operation":"synchronize","store":"a","seconds":0}"#,
      #"{"id":10,"version":1,"operation":"watch","store":"a"}"#,
      #"{"id":11,"version":1,"operation":"invite","addresses":["192.0.2.1"]}"#,
      #"{"id":12,"version":2,"operation":"get"}"#, #"{"id":13,"version":1,"isAccepted":true}"#,
      #"{"id":14,"version":1,"operation":"attach","store":"a","policy":"#
        + #"{"totalBytes":1,"keys":1,"keyBytes":1,"valueBytes":1}}"#,
    ]
    var seeds = lines.enumerated().map { (name: "line \($0)", bytes: [7] + Array($1.utf8) + [10]) }
    seeds.append(("all", [3] + Array((lines.joined(separator: "\n") + "\n").utf8)))
    return seeds
  }

  /// The lines of a stream that comes in pieces of one width.
  private static func cut(_ bytes: [UInt8], by width: Int) -> [[UInt8]] {
    let processor = NIOSingleStepByteToMessageProcessor(
      LineDecoder(), maximumBufferSize: ControlLimits.lineBytes + 65_536)
    var lines: [[UInt8]] = []
    for start in stride(from: 0, to: bytes.count, by: max(1, width)) {
      let piece = ByteBuffer(bytes: bytes[start..<min(bytes.count, start + width)])
      do {
        try processor.process(buffer: piece) { lines.append(Array($0.readableBytesView)) }
      } catch {
        fatalError("lines are too long: \(error)")
      }
    }
    return lines
  }
}
