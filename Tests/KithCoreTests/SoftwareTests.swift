import Foundation
import Testing

@testable import KithCore

struct SoftwareTests {
  /// A host's clock before it is called wrong, so it may not be late; nor may a release forget it.
  @Test func theDayOfTheReleaseIsTheChangelogs() throws {
    let released = Date(timeIntervalSince1970: Double(Software.releasedMilliseconds) / 1_000)
    #expect(released <= Date(), "the release lies ahead, or this host's clock is wrong")
    let changelog = try String(
      contentsOf: URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../CHANGELOG.md"), encoding: .utf8)
    // Headings of releases: "## 1.2.3 - 2026-12-31".
    let days = changelog.split(separator: "\n").filter { $0.hasPrefix("## ") }
      .compactMap { $0.firstMatch(of: /[0-9]{4}-[0-9]{2}-[0-9]{2}/)?.0 }
    guard let latest = days.max() else { return }
    let day = released.ISO8601Format(.iso8601Date(timeZone: .gmt))
    #expect(day == latest, "Software.releasedMilliseconds is not the day of the latest release")
  }
}
