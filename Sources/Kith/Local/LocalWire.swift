internal import KithCore
internal import NIOCore

/// A message on the control socket, framed by a 4-byte length, most significant byte first. It is
/// an ``EncodedValue``, so bytes stay bytes, and one decoder reads programs' values and messages.
///
/// The length is checked first; time and memory are proportional to the bytes that came.
protocol LocalMessage: Codable, Sendable {
  static var limit: Int { get }
}

extension LocalMessage {
  /// Throws `valueTooLarge` if the message is too long.
  func frame() throws(KithError) -> ByteBuffer {
    let bytes: [UInt8]
    do {
      bytes = try EncodedValue(PropertyListValue(encoding: self)).bytes
    } catch {
      throw KithError(.control, "The message cannot be encoded: \(error)", cause: error)
    }
    guard bytes.count <= Self.limit else {
      throw KithError(
        .valueTooLarge,
        "This takes \(bytes.count) bytes on its way to the node; at most \(Self.limit) are possible. "
          + "Split it.")
    }
    var frame = ByteBuffer()
    frame.reserveCapacity(bytes.count + 4)
    frame.writeInteger(UInt32(bytes.count))
    frame.writeBytes(bytes)
    return frame
  }

  /// Decodes a frame's bytes after the length; nil if they are malformed.
  init?(_ bytes: ByteBuffer) {
    guard let value = try? EncodedValue(trusting: Array(bytes.readableBytesView)).decoded(),
      let message = try? value.decoded(as: Self.self)
    else { return nil }
    self = message
  }
}

struct LocalRequest: LocalMessage {
  static let limit = LocalLimits.requestBytes
  var id: Int
  var call: NodeCall
}

struct LocalReply: LocalMessage {
  enum Content: Codable, Sendable {
    case answer(NodeAnswer)
    case failure(KithError)
    case event(NodeEvent)
    /// The changes of whole steps of the core, to show at once. A write's changes come before its
    /// answer.
    case changes(StoreIdentifier, [LocalChange])
    /// The status may have changed.
    case progress
    /// The node ends. All that it accepted is durable; it did not perform unanswered requests. If
    /// it yields, another process opens the directory next.
    case goodbye(isYielding: Bool)
  }

  static let limit = LocalLimits.replyBytes
  /// The request's id; 0 for `changes`, `progress` and `goodbye`.
  var id: Int
  var content: Content
}

/// Splits the stream into frames, without their lengths.
struct FrameDecoder: NIOSingleStepByteToMessageDecoder {
  typealias InboundOut = ByteBuffer

  let limit: Int

  func decode(buffer: inout ByteBuffer) throws -> ByteBuffer? {
    guard let length = buffer.getInteger(at: buffer.readerIndex, as: UInt32.self) else {
      return nil
    }
    guard length <= limit else { throw KithError.malformedControl }
    guard buffer.readableBytes >= 4 + Int(length) else { return nil }
    buffer.moveReaderIndex(forwardBy: 4)
    return buffer.readSlice(length: Int(length))
  }

  func decodeLast(buffer: inout ByteBuffer, seenEOF: Bool) throws -> ByteBuffer? {
    try decode(buffer: &buffer)
  }
}
