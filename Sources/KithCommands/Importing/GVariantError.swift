/// The error for a text that is not in GVariant's text format, or that no store can hold.
struct GVariantError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
