import Testing

@testable import KithCarriers

struct XMLTests {
  private func events(_ text: String) throws -> [XMLScanner.Event] {
    var scanner = XMLScanner(Array(text.utf8))
    var events: [XMLScanner.Event] = []
    while let event = try scanner.next() { events.append(event) }
    return events
  }

  @Test func elementsAndText() throws {
    let text =
      "\u{FEFF}<?xml version='1.0'?> <!-- <x> --><D:a x='1' y=\"a>b\"><b/> t&amp;&#x41;&#66;"
      + "<![CDATA[<&]]></D:a>\n<!-- end -->"
    #expect(
      try events(text) == [
        .start("a"), .start("b"), .end("b"), .text(" t&AB"), .text("<&"), .end("a"),
      ])
  }

  @Test(arguments: [
    "", " ", "text", "<a>", "<a></b>", "<a/><b/>", "<a/>x", "<a", "<a b>", "<a b=c/>", "<a b='c>",
    "<a b='<'/>", "<></>", "</a>", "<a>&unknown;</a>", "<a>&#0;</a>", "<a>&#xD800;</a>",
    "<a>&lt</a>",
    "<a>&#99999999999;</a>", "<!DOCTYPE a><a/>", "<!DOCTYPE a [<!ENTITY b 'c'>]><a>&b;</a>",
    "<a><!ELEMENT x></a>", "<![CDATA[x]]>", "<a><!-- </a>", "<a><![CDATA[ </a>", "<?xml", "<a>&",
  ])
  func hostileTextIsRefused(_ text: String) {
    #expect(throws: XMLScanner.Malformed.self) { try events(text) }
  }

  @Test func invalidUTF8IsRefused() {
    var scanner = XMLScanner(Array("<a>".utf8) + [0xC0, 0x80] + Array("</a>".utf8))
    #expect(throws: XMLScanner.Malformed.self) { while try scanner.next() != nil {} }
  }

  @Test func limitsHold() {
    let deep = String(repeating: "<a>", count: 33) + String(repeating: "</a>", count: 33)
    let name = String(repeating: "a", count: 129)
    let text = String(repeating: "a", count: 4_097)
    for document in [deep, "<\(name)/>", "<a>\(text)</a>", "<a><![CDATA[\(text)]]></a>"] {
      #expect(throws: XMLScanner.Malformed.self) { try events(document) }
    }
    // Many short pieces are one text.
    let pieces = String(repeating: "<![CDATA[0123456789]]>", count: 1_000)
    #expect(throws: XMLScanner.Malformed.self) {
      try XMLScanner.forEachElement(of: Array("<a>\(pieces)</a>".utf8)) { _, _ in }
    }
  }

  /// Every document that is cut short is refused, and none makes the scanner run for ever or trap.
  @Test func everyPrefixIsRefused() throws {
    let document = Array(Self.apache.utf8)
    #expect(try Multistatus(document, limit: 3).members.count == 3)
    for count in 0..<document.count {
      #expect(throws: XMLScanner.Malformed.self) {
        try Multistatus(Array(document[..<count]), limit: 3)
      }
    }
  }

  @Test func changedBytesDoNotTrap() {
    let document = Array(Self.apache.utf8)
    for offset in document.indices {
      for byte: UInt8 in [0, 0x20, 0x22, 0x26, 0x2F, 0x3C, 0x3E, 0xFF] {
        var changed = document
        changed[offset] = byte
        _ = try? Multistatus(changed, limit: 3)
      }
    }
  }

  @Test func membersOfApache() throws {
    let members = try Multistatus(Array(Self.apache.utf8), limit: 3).members
    #expect(
      members == [
        .init(name: "place", isDirectory: true, bytes: nil),
        .init(name: "a b", isDirectory: false, bytes: 5),
        .init(name: "sub", isDirectory: true, bytes: nil),
      ])
  }

  @Test func propertiesThatWereNotFoundDoNotCount() throws {
    let document =
      "<multistatus xmlns='DAV:'><response><href>http://h/x/n</href><propstat><prop>"
      + "<getcontentlength>7</getcontentlength></prop><status>HTTP/1.1 404 Not Found</status>"
      + "</propstat></response></multistatus>"
    let members = try Multistatus(Array(document.utf8), limit: 3).members
    #expect(members == [.init(name: "n", isDirectory: false, bytes: nil)])
  }

  @Test(arguments: [
    "<multistatus><response><href>/x/</href><status>HTTP/1.1 507 Full</status></response></multistatus>",
    "<multistatus><response><status>HTTP/1.1 200 OK</status></response></multistatus>",
    "<multistatus><response><href>/%zz</href></response></multistatus>", "<html></html>",
  ])
  func listingsThatAreNotWholeAreRefused(_ document: String) {
    #expect(throws: XMLScanner.Malformed.self) { try Multistatus(Array(document.utf8), limit: 3) }
  }

  @Test func pagesOfBuckets() throws {
    let page = try S3Page(
      Array(
        """
        <ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><EncodingType>url</EncodingType>
        <IsTruncated>true</IsTruncated><NextContinuationToken>a/b=</NextContinuationToken>
        <Contents><Key>p+q%2B%2Fx</Key><Size>3</Size></Contents>
        <CommonPrefixes><Prefix>p/q/</Prefix></CommonPrefixes></ListBucketResult>
        """.utf8), limit: 1)
    #expect(page.objects.map(\.key) == ["p q+/x"])
    #expect(page.objects.map(\.bytes) == [3])
    #expect(page.next == "a/b=")
  }

  @Test(arguments: [
    "<ListBucketResult/>", "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
    "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>a</Key></Contents></ListBucketResult>",
    "<Error><IsTruncated>false</IsTruncated></Error>",
  ])
  func pagesThatAreNotWholeAreRefused(_ document: String) {
    #expect(throws: XMLScanner.Malformed.self) { try S3Page(Array(document.utf8), limit: 3) }
  }

  /// A listing with members that are no objects was read to its end, and never counted as too long.
  @Test func listingsAreReadToTheirLimit() {
    let members = "<response><href>~</href></response>"
    let directory =
      "<response><href>/d/</href><propstat><status>a 2</status><prop><resourcetype>"
      + "<collection/></resourcetype></prop></propstat></response>"
    func error(_ inner: String, limit: Int) -> XMLScanner.Malformed? {
      do throws(XMLScanner.Malformed) {
        _ = try Multistatus(Array("<multistatus>\(inner)</multistatus>".utf8), limit: limit)
        return nil
      } catch {
        return error
      }
    }
    let many = String(repeating: members, count: 99)
    #expect(error(directory + many, limit: 100) == nil)
    #expect(error(directory + many, limit: 99)?.isTooMuch == true)
    // It is not read beyond its limit: what follows need not be well-formed.
    #expect(error(directory + many + "<", limit: 99)?.isTooMuch == true)
    #expect(error(directory + many + "<", limit: 100)?.isTooMuch == false)
    // Elements that are no members count, too.
    let junk = String(repeating: "<a/>", count: 10_000)
    #expect(error(directory + junk, limit: 100)?.isTooMuch == true)
    let keys = String(
      repeating: "<Contents><Key>a</Key><Size>1</Size></Contents>", count: 4)
    let page = "<ListBucketResult><IsTruncated>false</IsTruncated>\(keys)</ListBucketResult>"
    #expect(throws: Never.self) { try S3Page(Array(page.utf8), limit: 4) }
    #expect(throws: XMLScanner.Malformed(offset: 0, isTooMuch: true)) {
      try S3Page(Array(page.utf8), limit: 3)
    }
  }

  /// As Apache writes it.
  private static let apache = """
    <?xml version="1.0" encoding="utf-8"?>
    <D:multistatus xmlns:D="DAV:" xmlns:ns0="DAV:">
    <D:response xmlns:lp1="DAV:" xmlns:lp2="http://apache.org/dav/props/">
    <D:href>/dav/place/</D:href>
    <D:propstat><D:prop><lp1:resourcetype><D:collection/></lp1:resourcetype></D:prop>
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
    <D:response><D:href>https://h/dav/place/a%20b</D:href>
    <D:propstat><D:prop><lp1:resourcetype/><lp1:getcontentlength>5</lp1:getcontentlength></D:prop>
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
    <D:response><D:href>/dav/place/sub/</D:href>
    <D:propstat><D:prop><lp1:resourcetype><D:collection/></lp1:resourcetype></D:prop>
    <D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
    </D:multistatus>
    """
}
