internal import KithCore
internal import NIOCore

/// A message on the control socket. Each is sent in a frame: a length in 4 bytes, most significant
/// first, then the message as a property-list value in its one encoding (``EncodedValue``). So
/// bytes stay bytes, and one decoder reads the values that programs store and the messages that
/// they send.
///
/// The length is checked first; the bytes are collected as they come, then parsed in time and memory
/// in proportion to them.
protocol LocalMessage: Codable, Sendable {
  /// The maximum number of bytes of a message.
  static var limit: Int { get }
}

extension LocalMessage {
  /// The message as a frame.
  ///
  /// - Throws: ``KithError`` with `valueTooLarge` if it is too long.
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
          + "Split it.", actual: bytes.count, limit: Self.limit)
    }
    var frame = ByteBuffer()
    frame.reserveCapacity(bytes.count + 4)
    frame.writeInteger(UInt32(bytes.count))
    frame.writeBytes(bytes)
    return frame
  }

  /// The message of a frame's bytes after the length; nil if they are malformed.
  init?(_ bytes: ByteBuffer) {
    guard let value = try? EncodedValue(trusting: Array(bytes.readableBytesView)).decoded(),
      let message = try? value.decoded(as: Self.self)
    else { return nil }
    self = message
  }
}

/// A request of a program. The answer has the same id.
struct LocalRequest: LocalMessage {
  static let limit = LocalLimits.requestBytes
  var id: Int
  var call: NodeCall
}

/// News from the node.
struct LocalReply: LocalMessage {
  enum Content: Codable, Sendable {
    case answer(NodeAnswer)
    case failure(LocalFailure)
    case event(NodeEvent)
    /// The changes of one step of the core, to be shown at once. The changes up to the one that a
    /// write caused come before the write's answer.
    case changes(StoreIdentifier, [LocalChange])
    /// The status may have changed.
    case progress
    /// The node ends. All that it accepted is durable, and a request without an answer was not
    /// performed.
    case goodbye
  }

  static let limit = LocalLimits.replyBytes
  /// The id of the request; 0 for `changes`, `progress` and `goodbye`.
  var id: Int
  var content: Content
}

/// Cuts what arrives into frames, and drops their lengths.
struct FrameDecoder: NIOSingleStepByteToMessageDecoder {
  typealias InboundOut = ByteBuffer

  /// The maximum number of bytes after a length.
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
