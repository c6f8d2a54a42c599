/// This code, as it calls itself.
public enum Software {
  /// The version of Kith.
  public static let version = "0.1.0"
}
