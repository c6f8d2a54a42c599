/// Why a text is no value in GVariant's text format, or none that a store can hold.
struct GVariantError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ description: String) { self.description = description }
}
