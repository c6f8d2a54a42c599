@testable import KithCommands
@testable import KithTerminal

/// Figures with their budgets (`Docs/Performance.md`, "Figures").
struct BenchReport: Equatable, Sendable {
  struct Figure: Equatable, Sendable {
    enum Unit: String, Sendable {
      case seconds
      case perSecond
      case ratio
      case bytes
    }

    enum Budget: Equatable, Sendable {
      case atMost(Double)
      case atLeast(Double)
    }

    /// For documents.
    var name: String
    /// For people.
    var title: String
    var value: Double
    var unit: Unit
    /// Yardsticks have none.
    var budget: Budget?
    /// Whether a missed budget fails the bench; others are goals.
    var isRequired = true

    var isKept: Bool {
      switch budget {
      case .atMost(let limit): value <= limit
      case .atLeast(let limit): value >= limit
      case nil: true
      }
    }
  }

  var figures: [Figure] = []
  var isQuick: Bool

  /// Whether every required budget is kept.
  var isKept: Bool { figures.allSatisfy { $0.isKept || !$0.isRequired } }

  mutating func add(
    _ name: String, _ title: String, _ value: Double, _ unit: Figure.Unit,
    _ budget: Figure.Budget? = nil, isRequired: Bool = true
  ) {
    figures.append(
      Figure(
        name: name, title: title, value: value, unit: unit, budget: budget, isRequired: isRequired))
  }

  func text(_ style: Style) -> String {
    var table = Table([("FIGURE", .left), ("MEASURED", .right), ("BUDGET", .right), ("", .left)])
    for figure in figures {
      table.add([
        Table.Cell(figure.title), Table.Cell(figure.text(figure.value), .strong),
        Table.Cell(figure.budgetText),
        figure.budget == nil
          ? Table.Cell("") : figure.isKept ? Table.Cell("ok", .good) : Table.Cell("miss", .bad),
      ])
    }
    return table.text(style)
  }

  var document: Document {
    .versioned([
      "figures": .list(
        figures.map { figure in
          .object([
            "budget": figure.budgetDocument,
            "name": .string(figure.name),
            "ok": figure.budget == nil ? nil : .bool(figure.isKept),
            "required": figure.budget == nil ? nil : .bool(figure.isRequired),
            "title": .string(figure.title),
            "unit": .string(figure.unit.rawValue),
            "value": .double(figure.value, places: figure.unit == .seconds ? 9 : 3),
          ])
        }),
      "ok": .bool(isKept),
      "quick": .bool(isQuick),
    ])
  }
}

extension BenchReport.Figure {
  func text(_ value: Double) -> String {
    switch unit {
    case .seconds: Format.duration(seconds: value)
    case .perSecond: Format.count(Int(value.rounded())) + "/s"
    case .ratio: Format.decimals(value, 2) + " ×"
    case .bytes: Format.bytes(Int(value))
    }
  }

  var budgetText: String {
    switch budget {
    case .atMost(let limit): "≤ " + text(limit)
    case .atLeast(let limit): "≥ " + text(limit)
    case nil: ""
    }
  }

  var budgetDocument: Document? {
    let places = unit == .seconds ? 9 : 3
    return switch budget {
    case .atMost(let limit): .object(["atMost": .double(limit, places: places)])
    case .atLeast(let limit): .object(["atLeast": .double(limit, places: places)])
    case nil: nil
    }
  }
}
