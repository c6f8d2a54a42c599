@testable import KithCommands
@testable import KithTerminal

/// How one cost grows with one number, as `kith-bench curves` measures it.
struct Curve: Sendable {
  enum Unit: String, Sendable {
    case seconds
    case bytes
  }

  struct Point: Sendable {
    var size: Int
    var value: Double
  }

  /// For documents.
  var name: String
  /// For people, such as `set to notified`.
  var title: String
  /// The size that grows, such as `keys in the store`.
  var axis: String
  var unit: Unit
  /// How the algorithm should grow with the axis, such as `O(1)`.
  var complexity: String
  var points: [Point] = []

  mutating func add(_ size: Int, _ value: Double) {
    points.append(Point(size: size, value: value))
  }

  var document: Document {
    .object([
      "axis": .string(axis),
      "complexity": .string(complexity),
      "name": .string(name),
      "points": .list(
        points.map { point in
          .object([
            "size": .int(point.size),
            "value": .double(point.value, places: unit == .seconds ? 9 : 0),
          ])
        }),
      "title": .string(title),
      "unit": .string(unit.rawValue),
    ])
  }

  /// `set to notified by keys in the store, O(1): 16 0.70 ms, 256 0.72 ms`.
  var text: String {
    let points = points.map { point in
      let value =
        unit == .seconds
        ? Format.duration(seconds: point.value) : Format.bytes(Int(point.value))
      return "\(Format.count(point.size)) \(value)"
    }
    return "\(title) by \(axis), \(complexity): \(points.joined(separator: ", "))"
  }
}
