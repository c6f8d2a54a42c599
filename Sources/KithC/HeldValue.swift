internal import CKith
internal import FoundationEssentials
internal import Kith
internal import KithCore
internal import KithValues
internal import Synchronization

/// A value of the interface, with all that a program reads of it in place.
final class HeldValue: Handled {
  typealias Member = (key: Key, value: PropertyListValue)

  private struct State: ~Copyable {
    /// Empty if it is the values of a store.
    var value: GrowingValue
    /// In order: those of a store, or of a dictionary as soon as somebody asks.
    var members: [Member]?
    var lent = Lent()
  }

  /// The indices under which texts other than names are lent; the index of a name is its position.
  private enum LentIndex {
    static let content = -1
    static let json = -2
    static let plist = -3
  }

  private let state: Mutex<State>
  private let isBorrowed: Bool
  /// The values of a store have keys that a Swift dictionary does not tell apart: they are canonically
  /// equivalent.
  private let isStore: Bool

  init(_ value: PropertyListValue, isBorrowed: Bool = false) {
    state = Mutex(State(value: GrowingValue(value)))
    self.isBorrowed = isBorrowed
    isStore = false
  }

  /// The values of a store, in order.
  private init(_ members: [Member]) {
    state = Mutex(State(value: GrowingValue([:]), members: members))
    isBorrowed = false
    isStore = true
  }

  convenience init(_ values: [Key: PropertyListValue]) {
    self.init(values.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
  }

  var copy: HeldValue {
    state.withLock { state in
      isStore ? HeldValue(state.members ?? []) : HeldValue(state.value.value)
    }
  }

  /// Throws for the values of a store that no dictionary can hold.
  var value: PropertyListValue { get throws(KithError) { try growing.value } }

  private var growing: GrowingValue {
    get throws(KithError) {
      let (value, members) = state.withLock { ($0.value, $0.members) }
      guard isStore, let members else { return value }
      do throws(NotAValue) {
        let values = members.map { (key: $0.key.text, node: $0.value) }
        return GrowingValue(
          .dictionary(try .distinct(values) { value throws(NotAValue) in value }))
      } catch {
        throw KithError(.unsupportedValue, "The value cannot be stored: \(error).")
      }
    }
  }

  /// The value; an empty dictionary for the values of a store.
  var content: PropertyListValue { state.withLock { $0.value.value } }

  var type: kith_type {
    switch content {
    case .bool: KITH_BOOL
    case .integer: KITH_INTEGER
    case .double: KITH_DOUBLE
    case .string: KITH_STRING
    case .date: KITH_DATE
    case .data: KITH_DATA
    case .array: KITH_ARRAY
    case .dictionary: KITH_DICTIONARY
    }
  }

  // MARK: Looking into

  var count: Int {
    state.withLock { state in
      if let members = state.members { return members.count }
      switch state.value.value {
      case .array(let elements): return elements.count
      case .dictionary(let members): return members.count
      default: return 0
      }
    }
  }

  func element(at index: Int) -> OpaquePointer? {
    let handle = state.withLock { state -> Handle? in
      let element: PropertyListValue? =
        if case .array(let elements) = state.value.value {
          elements.indices.contains(index) ? elements[index] : nil
        } else {
          Self.member(at: index, &state)?.value
        }
      return element.flatMap { state.lent.handle(index, of: HeldValue($0, isBorrowed: true)) }
    }
    return handle?.pointer
  }

  func member(_ name: String) -> OpaquePointer? {
    let name = Key(name)
    let index = state.withLock { state -> Int? in
      let members = Self.members(&state)
      var (low, high) = (0, members.count)
      while low < high {
        let middle = (low + high) / 2
        if members[middle].key < name { low = middle + 1 } else { high = middle }
      }
      return low < members.count && members[low].key == name ? low : nil
    }
    return index.flatMap { element(at: $0) }
  }

  func name(at index: Int) -> CText? {
    state.withLock { state in
      Self.member(at: index, &state).map { member in
        state.lent.text(index, of: CText(member.key.text))
      }
    }
  }

  private static func member(at index: Int, _ state: inout State) -> Member? {
    let members = members(&state)
    return members.indices.contains(index) ? members[index] : nil
  }

  private static func members(_ state: inout State) -> [Member] {
    if let members = state.members { return members }
    guard case .dictionary(let members) = state.value.value else { return [] }
    let sorted = members.map { (key: Key($0.key), value: $0.value) }.sorted { $0.key < $1.key }
    state.members = sorted
    return sorted
  }

  /// A string's characters, or the bytes of data.
  var text: CText? {
    state.withLock { state in
      switch state.value.value {
      case .string(let text): state.lent.text(LentIndex.content, of: CText(text))
      case .data(let data): state.lent.text(LentIndex.content, of: CText(data))
      default: nil
      }
    }
  }

  var json: CText {
    state.withLock { state in
      let (value, members) = (state.value.value, isStore ? state.members : nil)
      return state.lent.text(
        LentIndex.json, of: CText(members.map { ValueJSON.text($0) } ?? ValueJSON.text(value)))
    }
  }

  var plist: CText {
    state.withLock { state in
      let (value, members) = (state.value.value, isStore ? state.members : nil)
      let writer = BinaryPropertyListWriter()
      return state.lent.text(
        LentIndex.plist, of: CText(members.map { writer.bytes(of: $0) } ?? writer.bytes(of: value)))
    }
  }

  // MARK: Changing

  func append(_ element: HeldValue) throws(KithError) {
    let element = try element.growing
    try change { array throws(GrowingValue.Refusal) in try array.append(element) }
  }

  func put(_ member: HeldValue?, _ name: String) throws(KithError) {
    let member = try member?.growing
    try change { dictionary throws(GrowingValue.Refusal) in try dictionary.put(member, name) }
  }

  private func change(
    _ body: (inout GrowingValue) throws(GrowingValue.Refusal) -> Void
  ) throws(KithError) {
    guard !isBorrowed else {
      throw .invalid("The value is borrowed, and cannot be changed. Copy it: kith_value_copy().")
    }
    guard !isStore else { throw .invalid("The values of a store cannot be changed here.") }
    try state.withLock { state throws(KithError) in
      do throws(GrowingValue.Refusal) {
        try body(&state.value)
      } catch {
        throw KithError(error)
      }
      state.lent.endAll()
      state.members = nil
    }
  }
}

extension KithError {
  fileprivate init(_ refusal: GrowingValue.Refusal) {
    switch refusal {
    case .notAnArray: self = .invalid("The argument array is no array.")
    case .notADictionary: self = .invalid("The argument dictionary is no dictionary.")
    case .equivalentName:
      self.init(
        .unsupportedValue,
        "The dictionary has a canonically equivalent name, and holds only one of the two.")
    case .tooDeep:
      self.init(
        .unsupportedValue,
        "The value would be nested deeper than \(PropertyListValue.maximumDepth) arrays and "
          + "dictionaries.")
    case .tooLarge:
      self.init(
        .valueTooLarge, "The value would take more than \(GrowingValue.largestBytes >> 20) MiB.")
    }
  }
}
