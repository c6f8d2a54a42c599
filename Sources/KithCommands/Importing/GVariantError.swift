/// The text is malformed, or no store can hold its value.
struct GVariantError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
