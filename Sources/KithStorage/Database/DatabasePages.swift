import KithCore

/// The sealed rows in a database's pages, also where the trees of pages are damaged.
///
/// A page that is no longer in use keeps its old rows. So rows are taken from pages in use only: all
/// that are not in the list of free pages, or, if that list is damaged, those that a tree leads to.
struct DatabasePages {
  struct Row {
    let page: Int
    /// Nil if the row cannot be read.
    let sealed: [UInt8]?
  }

  /// A table's pages, from its root.
  struct Tree {
    var pages: Set<Int> = []
    /// Whether each page is sound, in no other tree, and not free.
    var isSound = true
  }

  private let image: DatabaseImage
  /// Nil if the list is damaged.
  private let free: Set<Int>?
  private var pages: [Int: Page] = [:]
  private(set) var trees: [String: Tree] = [:]
  /// Of all pages in use.
  private(set) var rows: [Row] = []

  /// The names and roots of tables come from page 1; `roots` has those of tables that it lacks.
  init(_ image: DatabaseImage, roots: [String: Int]) {
    self.image = image
    free = Self.freePages(image)
    for number in 1...max(1, image.count) where free?.contains(number) != true {
      let page = Page(image.page(number), isFirst: number == 1)
      if let page { pages[number] = page }
    }
    var roots = roots
    // Its rows have type, name, table, root and text.
    for columns in pages[1].map({ records(in: $0) }) ?? [] {
      if columns.count == 5, columns[0].string == "table", let name = columns[1].string,
        let root = columns[3].number.flatMap({ Int(exactly: $0) })
      {
        roots[name] = root
      }
    }
    var seen: [Int: Int] = [1: 1]
    for (name, root) in roots.sorted(by: { $0.key < $1.key }) {
      var tree = Tree()
      walk(root, &tree, &seen)
      trees[name] = tree
    }
    for name in trees.keys
    where trees[name]?.pages.contains(where: { seen[$0] != 1 }) == true {
      trees[name]?.isSound = false
    }
    let isOfTree = { (number: Int) in seen[number] != nil }
    for (number, page) in pages.sorted(by: { $0.key < $1.key }) where number != 1 {
      guard free != nil || isOfTree(number) else { continue }
      // The row id, which is no bytes in a record, and the sealed bytes.
      rows += records(in: page).map { columns in
        Row(page: number, sealed: columns.count == 2 ? columns[1].bytes : nil)
      }
    }
  }

  /// Follows a tree from a page, and counts in `seen` how many trees lead to each.
  private mutating func walk(_ number: Int, _ tree: inout Tree, _ seen: inout [Int: Int]) {
    seen[number, default: 0] += 1
    tree.pages.insert(number)
    guard seen[number] == 1, number != 1 else { return tree.isSound = false }
    let page = pages[number]
    if page?.isSound != true, !wasAlwaysEmpty(number) { tree.isSound = false }
    for child in page?.children ?? [] { walk(child, &tree, &seen) }
  }

  /// Whether a page is an empty leaf, but for one bit, that never had a row: no row can be missing.
  private func wasAlwaysEmpty(_ number: Int) -> Bool {
    let page = image.page(number)
    guard free?.contains(number) != true, page.dropFirst(8).allSatisfy({ $0 == 0 }) else {
      return false
    }
    let head = [Page.leaf, 0, 0, 0, 0, UInt8(image.pageBytes >> 8), 0, 0]
    return zip(head, page).reduce(0) { $0 + ($1.0 ^ $1.1).nonzeroBitCount } <= 1
  }

  /// The numbers of the pages in the list of free ones; nil if it is damaged.
  private static func freePages(_ image: DatabaseImage) -> Set<Int>? {
    let header = image.bytes.prefix(DatabaseImage.headerBytes)
    var trunk = header.number(at: 32, bytes: 4)
    let stated = header.number(at: 36, bytes: 4)
    var free: Set<Int> = []
    while trunk != 0 {
      guard (2...max(2, image.count)).contains(trunk), free.insert(trunk).inserted else {
        return nil
      }
      let page = image.page(trunk)
      let count = page.number(at: 4, bytes: 4)
      guard count <= image.pageBytes / 4 - 2 else { return nil }
      for index in 0..<count {
        let number = page.number(at: 8 + 4 * index, bytes: 4)
        guard (2...max(2, image.count)).contains(number), free.insert(number).inserted else {
          return nil
        }
      }
      trunk = page.number(at: 0, bytes: 4)
    }
    return free.count == stated ? free : nil
  }

  /// The columns of a page's rows; none of a row that cannot be read.
  private func records(in page: Page) -> [[Column]] {
    page.cells.map { payload(of: $0).flatMap(Record.columns) ?? [] }
  }

  /// The bytes in the page, then those of the overflow pages; nil if these end early, or there would
  /// be more than in the file.
  private func payload(of cell: Page.Cell) -> [UInt8]? {
    guard cell.byteCount <= image.bytes.count else { return nil }
    var bytes = Array(cell.local)
    var next = cell.overflow
    while bytes.count < cell.byteCount {
      let page = image.page(next)
      guard !page.isEmpty else { return nil }
      bytes += page.dropFirst(4).prefix(cell.byteCount - bytes.count)
      next = page.number(at: 0, bytes: 4)
    }
    return bytes
  }
}

/// A page of a table's tree, as far as it can be read. There are no indexes.
private struct Page {
  static let leaf: UInt8 = 0x0D
  private static let interior: UInt8 = 0x05

  struct Cell {
    var byteCount: Int
    var local: ArraySlice<UInt8>
    /// 0: none.
    var overflow: Int
    var range: Range<Int>
  }

  private(set) var cells: [Cell] = []
  private(set) var children: [Int] = []
  /// Whether cells, free blocks and fragments fill the page exactly.
  private(set) var isSound: Bool

  /// Nil if the first byte names no kind of page.
  init?(_ bytes: ArraySlice<UInt8>, isFirst: Bool) {
    let head = isFirst ? DatabaseImage.headerBytes : 0
    let kind = UInt8(bytes.number(at: head, bytes: 1))
    guard [Self.leaf, Self.interior].contains(kind) else { return nil }
    let isLeaf = kind == Self.leaf
    let count = bytes.number(at: head + 3, bytes: 2)
    let array = head + (isLeaf ? 8 : 12)
    guard array + 2 * count <= bytes.count else {
      isSound = false
      return
    }
    var used: [Range<Int>] = []
    isSound = true
    for index in 0..<count {
      let offset = bytes.number(at: array + 2 * index, bytes: 2)
      guard offset >= array + 2 * count,
        let cell = Self.cell(bytes, at: offset, isLeaf: isLeaf)
      else {
        isSound = false
        continue
      }
      used.append(cell.range)
      if isLeaf { cells.append(cell) } else { children.append(bytes.number(at: offset, bytes: 4)) }
    }
    if !isLeaf { children.append(bytes.number(at: head + 8, bytes: 4)) }
    // The content begins here; 0 is 65,536.
    let content = bytes.number(at: head + 5, bytes: 2)
    let fragments = bytes.number(at: head + 7, bytes: 1)
    var block = bytes.number(at: head + 1, bytes: 2)
    while block != 0 {
      let size = bytes.number(at: block + 2, bytes: 2)
      guard block >= content, size >= 4, block + size <= bytes.count, used.count <= bytes.count
      else {
        isSound = false
        return
      }
      used.append(block..<block + size)
      block = bytes.number(at: block, bytes: 2)
    }
    used.sort { $0.lowerBound < $1.lowerBound }
    let isDisjoint = zip(used, used.dropFirst()).allSatisfy { $0.upperBound <= $1.lowerBound }
    isSound =
      isSound && isDisjoint && content >= array + 2 * count
      && used.first.map({ $0.lowerBound >= content }) ?? true
      && used.reduce(fragments) { $0 + $1.count } == bytes.count - content
  }

  /// Nil if it does not fit into the page.
  private static func cell(
    _ bytes: ArraySlice<UInt8>, at offset: Int, isLeaf: Bool
  ) -> Cell? {
    var position = offset + (isLeaf ? 0 : 4)
    guard position < bytes.count else { return nil }
    if !isLeaf {
      guard bytes.varint(at: &position) != nil else { return nil }
      return Cell(byteCount: 0, local: [], overflow: 0, range: offset..<position)
    }
    guard let size = bytes.varint(at: &position).flatMap({ Int(exactly: $0) }), size >= 0,
      bytes.varint(at: &position) != nil
    else { return nil }
    // The format's names: U, X, M, K.
    let usable = bytes.count
    let most = usable - 35
    let least = (usable - 12) * 32 / 255 - 23
    let surplus = least + (size - least) % (usable - 4)
    let local = size <= most ? size : surplus <= most ? surplus : least
    let end = position + local + (local < size ? 4 : 0)
    guard local >= 0, end <= usable else { return nil }
    let start = bytes.startIndex + position
    return Cell(
      byteCount: size, local: bytes[start..<start + local],
      overflow: local < size ? bytes.number(at: position + local, bytes: 4) : 0,
      // Smaller cells take 4 bytes.
      range: offset..<max(end, offset + 4))
  }
}

private enum Column {
  case integer(Int64)
  case blob([UInt8])
  case text(String)
  case null

  var number: Int64? { if case .integer(let number) = self { number } else { nil } }

  var bytes: [UInt8]? { if case .blob(let bytes) = self { bytes } else { nil } }

  var string: String? { if case .text(let text) = self { text } else { nil } }
}

/// SQLite's record format.
private enum Record {
  /// Nil if it is none.
  static func columns(_ payload: [UInt8]) -> [Column]? {
    let payload = payload[...]
    var position = 0
    guard let headerEnd = payload.varint(at: &position).flatMap({ Int(exactly: $0) }),
      headerEnd <= payload.count
    else { return nil }
    var types: [Int64] = []
    while position < headerEnd {
      guard let type = payload.varint(at: &position) else { return nil }
      types.append(type)
    }
    var columns: [Column] = []
    position = headerEnd
    for type in types {
      guard let (column, size) = column(type, payload, position) else { return nil }
      columns.append(column)
      position += size
    }
    return position == payload.count ? columns : nil
  }

  private static func column(
    _ type: Int64, _ payload: ArraySlice<UInt8>, _ position: Int
  ) -> (Column, Int)? {
    switch type {
    case 0: return (.null, 0)
    case 1...6:
      let size = [1, 2, 3, 4, 6, 8][Int(type) - 1]
      guard position + size <= payload.count else { return nil }
      let number = payload[position..<position + size].reduce(
        payload[position] >= 0x80 ? -1 : 0 as Int64
      ) { $0 << 8 | Int64($1) }
      return (.integer(number), size)
    case 8, 9: return (.integer(type - 8), 0)
    case 12...:
      guard let size = Int(exactly: (type - 12) / 2), size <= payload.count - position else {
        return nil
      }
      let bytes = payload[position..<position + size]
      if type.isMultiple(of: 2) { return (.blob(Array(bytes)), size) }
      return String(validating: bytes, as: UTF8.self).map { (.text($0), size) }
    default: return nil
    }
  }
}

extension ArraySlice<UInt8> {
  /// SQLite's: big-endian, 7 bits a byte, the ninth byte whole. Moves the position behind it; nil
  /// if it does not end.
  fileprivate func varint(at position: inout Int) -> Int64? {
    var number: UInt64 = 0
    for index in 0..<9 {
      guard position < count else { return nil }
      let byte = self[startIndex + position]
      position += 1
      if index == 8 { return Int64(bitPattern: number << 8 | UInt64(byte)) }
      number = number << 7 | UInt64(byte & 0x7F)
      if byte < 0x80 { return Int64(bitPattern: number) }
    }
    return nil
  }
}
