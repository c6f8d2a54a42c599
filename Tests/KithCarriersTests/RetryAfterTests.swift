import Testing

@testable import KithCarriers

struct RetryAfterTests {
  /// 06 Nov 1994 08:49:37 GMT, the example of RFC 9110.
  private static let date = 784_111_777

  @Test(arguments: [
    ("0", 0), ("120", 120), ("86400", 86_400), ("86401", 86_400),
    ("99999999999999999999999", 86_400), ("Sun, 06 Nov 1994 08:49:37 GMT", 60),
    ("Sun, 06 Nov 1994 08:00:00 GMT", 0), ("Fri, 31 Dec 9999 23:59:59 GMT", 86_400),
  ])
  func waits(_ text: String, _ seconds: Int) {
    #expect(RetryAfter.parse(text, now: Self.date - 60) == .seconds(seconds))
  }

  @Test(arguments: [
    "", "-1", "1.5", "soon", "Sun, 06 Nov 1994 08:49:37", "Sun, 32 Nov 1994 08:49:37 GMT",
    "Sun, 06 Nov 1994 24:49:37 GMT", "Sun, 06 Nop 1994 08:49:37 GMT", "Sun, 06 Nov 1994 08:49 GMT",
    "Sun,  06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
  ])
  func otherTextIsIgnored(_ text: String) {
    #expect(RetryAfter.parse(text, now: Self.date) == nil)
  }
}
