internal import CKith
internal import FoundationEssentials
internal import Kith
internal import KithCore
internal import KithValues
internal import Synchronization

/// A value of the interface, with all that a program reads of it in place.
final class HeldValue: Handled {
  /// Of a value that a program makes. Also bounds the work of printing one that holds itself twice, again
  /// and again.
  static let largestBytes = 64 << 20
  static let depthLimit = PropertyListValue.maximumDepth

  /// A dictionary may be the values of a store, whose keys are more than a Swift dictionary tells
  /// apart: two that are canonically equivalent.
  enum Content {
    case value(PropertyListValue)
    case members([(key: Key, value: PropertyListValue)])
  }

  private struct State: ~Copyable {
    var content: Content
    /// Members in order, as soon as somebody asks.
    var sorted: [(key: Key, value: PropertyListValue)]?
    var extent: Extent?
    var borrowed = Borrowed()
    var names: [Int: CText] = [:]
    var text, json, plist: CText?
  }

  private let state: Mutex<State>
  private let isBorrowed: Bool

  init(_ content: Content, isBorrowed: Bool = false) {
    state = Mutex(State(content: content))
    self.isBorrowed = isBorrowed
  }

  convenience init(_ value: PropertyListValue, isBorrowed: Bool = false) {
    self.init(.value(value), isBorrowed: isBorrowed)
  }

  convenience init(_ members: [Key: PropertyListValue]) {
    self.init(.members(members.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }))
  }

  var content: Content { state.withLock { $0.content } }

  /// Throws for a dictionary that no store can hold.
  var value: PropertyListValue {
    get throws(KithError) {
      switch content {
      case .value(let value): return value
      case .members(let members):
        do throws(NotAValue) {
          return .dictionary(
            try .distinct(members.map { ($0.key.text, $0.value) }) { value throws(NotAValue) in
              value
            })
        } catch {
          throw KithError(.unsupportedValue, "The value cannot be stored: \(error).")
        }
      }
    }
  }

  var copy: HeldValue { HeldValue(content) }

  var type: kith_type {
    switch content {
    case .members, .value(.dictionary): KITH_DICTIONARY
    case .value(.bool): KITH_BOOL
    case .value(.integer): KITH_INTEGER
    case .value(.double): KITH_DOUBLE
    case .value(.string): KITH_STRING
    case .value(.date): KITH_DATE
    case .value(.data): KITH_DATA
    case .value(.array): KITH_ARRAY
    }
  }

  // MARK: Looking into

  var count: Int {
    switch content {
    case .value(.array(let elements)): elements.count
    case .value(.dictionary(let members)): members.count
    case .members(let members): members.count
    default: 0
    }
  }

  func element(at place: Int) -> OpaquePointer? {
    guard place >= 0 else { return nil }
    let handle = state.withLock { state -> Handle? in
      let element: PropertyListValue? =
        if case .value(.array(let elements)) = state.content {
          place < elements.count ? elements[place] : nil
        } else if let members = Self.sorted(&state), place < members.count {
          members[place].value
        } else {
          nil
        }
      return element.flatMap { state.borrowed.handle(place, of: HeldValue($0, isBorrowed: true)) }
    }
    return handle?.pointer
  }

  func member(_ name: String) -> OpaquePointer? {
    let name = Key(name)
    let place = state.withLock { state -> Int? in
      guard let members = Self.sorted(&state) else { return nil }
      var (low, high) = (0, members.count)
      while low < high {
        let middle = (low + high) / 2
        if members[middle].key < name { low = middle + 1 } else { high = middle }
      }
      return low < members.count && members[low].key == name ? low : nil
    }
    return place.flatMap { element(at: $0) }
  }

  func name(at place: Int) -> CText? {
    state.withLock { state in
      if let known = state.names[place] { return known }
      guard let members = Self.sorted(&state), members.indices.contains(place) else { return nil }
      let name = CText(members[place].key.text)
      state.names[place] = name
      return name
    }
  }

  /// Text with a string's characters, or the bytes of data.
  var text: CText? {
    state.withLock { state in
      if let known = state.text { return known }
      switch state.content {
      case .value(.string(let text)): state.text = CText(text)
      case .value(.data(let data)): state.text = CText(data)
      default: return nil
      }
      return state.text
    }
  }

  private static func sorted(_ state: inout State) -> [(key: Key, value: PropertyListValue)]? {
    if let sorted = state.sorted { return sorted }
    switch state.content {
    case .members(let members): state.sorted = members
    case .value(.dictionary(let members)):
      state.sorted = members.map { (Key($0.key), $0.value) }.sorted { $0.key < $1.key }
    default: return nil
    }
    return state.sorted
  }

  // MARK: Writing

  var json: CText {
    state.withLock { state in
      if let known = state.json { return known }
      let text: String =
        switch state.content {
        case .value(let value): ValueJSON.text(value)
        case .members(let members): ValueJSON.text(members)
        }
      let made = CText(text)
      state.json = made
      return made
    }
  }

  var plist: CText {
    state.withLock { state in
      if let known = state.plist { return known }
      let bytes =
        switch state.content {
        case .value(let value): BinaryPropertyListWriter().bytes(of: value)
        case .members(let members): BinaryPropertyListWriter().bytes(of: members)
        }
      let made = CText(bytes)
      state.plist = made
      return made
    }
  }

  // MARK: Changing

  func append(_ element: HeldValue) throws(KithError) {
    let (value, added) = (try element.value, element.extent)
    try change { state throws(KithError) in
      guard case .value(.array(var elements)) = state.content else {
        throw .invalid("The argument array is no array.")
      }
      let extent = try Self.extent(&state).adding(added)
      // So that the elements are not copied.
      state.content = .value(.bool(false))
      elements.append(value)
      state.content = .value(.array(elements))
      state.extent = extent
    }
  }

  func put(_ element: HeldValue?, _ name: String) throws(KithError) {
    let value = try element?.value
    let added = element?.extent.named(name)
    try change { state throws(KithError) in
      guard case .value(.dictionary(var members)) = state.content else {
        throw .invalid("The argument dictionary is no dictionary that can be changed.")
      }
      var extent = Self.extent(&state)
      if let index = members.index(forKey: name) {
        guard members[index].key.utf8.elementsEqual(name.utf8) else {
          throw KithError(
            .unsupportedValue,
            "The dictionary has a canonically equivalent name, and holds only one of the two.")
        }
        extent = extent.removing(Extent(of: members[index].value).named(name))
      }
      if let added { extent = try extent.adding(added) }
      state.content = .value(.bool(false))
      members[name] = value
      state.content = .value(.dictionary(members))
      state.extent = extent
    }
  }

  private func change(_ body: (inout sending State) throws(KithError) -> Void) throws(KithError) {
    guard !isBorrowed else {
      throw .invalid("The value is borrowed, and cannot be changed. Copy it: kith_value_copy().")
    }
    try state.withLock { state throws(KithError) in
      try body(&state)
      state.borrowed.endAll()
      (state.sorted, state.names, state.json, state.plist) = (nil, [:], nil, nil)
    }
  }

  // MARK: Extent

  private var extent: Extent { state.withLock { Self.extent(&$0) } }

  private static func extent(_ state: inout State) -> Extent {
    if let known = state.extent { return known }
    let extent: Extent =
      switch state.content {
      case .value(let value): Extent(of: value)
      case .members(let members):
        members.reduce(Extent()) { $0.including(Extent(of: $1.value).named($1.key.text)) }
      }
    state.extent = extent
    return extent
  }
}

/// How much a value takes when it is written out.
private struct Extent: Sendable {
  var bytes = 16
  /// Of containers inside each other; a scalar has 0.
  var depth = 0

  init() {}

  init(of value: PropertyListValue) {
    switch value {
    case .string(let text): bytes += text.utf8.count
    case .data(let data): bytes += data.count
    case .array(let elements):
      depth = 1
      for element in elements { self = including(Extent(of: element)) }
    case .dictionary(let members):
      depth = 1
      for member in members { self = including(Extent(of: member.value).named(member.key)) }
    default: break
    }
  }

  /// As a member of a dictionary.
  func named(_ name: String) -> Extent {
    var member = self
    member.bytes += name.utf8.count
    return member
  }

  func including(_ element: Extent) -> Extent {
    var sum = self
    sum.bytes += element.bytes
    sum.depth = max(depth, element.depth + 1)
    return sum
  }

  func adding(_ element: Extent) throws(KithError) -> Extent {
    let sum = including(element)
    guard sum.depth <= HeldValue.depthLimit else {
      throw KithError(
        .unsupportedValue,
        "The value would be nested deeper than \(HeldValue.depthLimit) arrays and dictionaries.")
    }
    guard sum.bytes <= HeldValue.largestBytes else {
      throw KithError(
        .valueTooLarge, "The value would take more than \(HeldValue.largestBytes >> 20) MiB.")
    }
    return sum
  }

  /// The depth may stay too large, by as much as what was replaced.
  func removing(_ element: Extent) -> Extent {
    var rest = self
    rest.bytes -= element.bytes
    return rest
  }
}
