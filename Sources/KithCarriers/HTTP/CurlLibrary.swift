import CCurl
import Glibc
import Kith

/// The functions of libcurl that carriers use. It is loaded when the first request is sent, so Kith
/// builds, starts and keeps folders without it.
///
/// The numbers of options are part of libcurl's binary interface, which has been the same since
/// soname 4 (2006).
struct CurlLibrary: @unchecked Sendable {
  // Unchecked: addresses of functions, which never change.
  /// The Debian package to install.
  static let package = "libcurl4"
  private static let names = ["libcurl.so.4", "libcurl-gnutls.so.4"]

  typealias Handle = UnsafeMutableRawPointer

  let easyInit: @convention(c) () -> Handle?
  let easyCleanup: @convention(c) (Handle) -> Void
  let multiInit: @convention(c) () -> Handle?
  let multiCleanup: @convention(c) (Handle) -> Int32
  let multiAdd: @convention(c) (Handle, Handle) -> Int32
  let multiRemove: @convention(c) (Handle, Handle) -> Int32
  let multiPerform: @convention(c) (Handle, UnsafeMutablePointer<Int32>) -> Int32
  let multiPoll:
    @convention(c) (Handle, Handle?, UInt32, Int32, UnsafeMutablePointer<Int32>?) -> Int32
  let multiWakeup: @convention(c) (Handle) -> Int32
  let multiRead: @convention(c) (Handle, UnsafeMutablePointer<Int32>) -> UnsafeMutableRawPointer?
  let listAppend: @convention(c) (Handle?, UnsafePointer<CChar>) -> Handle?
  let listFree: @convention(c) (Handle?) -> Void
  private let setOption: Handle
  private let getInformation: Handle

  private static let loaded: CurlLibrary? = {
    for name in names {
      // It stays loaded: its threads and its TLS library cannot be unloaded.
      if let library = dlopen(name, RTLD_NOW | RTLD_LOCAL), let curl = CurlLibrary(library) {
        return curl
      }
    }
    return nil
  }()

  /// - Throws: ``CarrierFailure/Code/unexpected`` if libcurl is missing or older than 7.68.
  static func get() throws(CarrierFailure) -> CurlLibrary {
    guard let loaded else {
      throw CarrierFailure(
        .unexpected,
        "WebDAV and S3 need libcurl 7.68 or newer; install the package \(package).")
    }
    return loaded
  }

  private init?(_ library: Handle) {
    func find(_ name: String) -> Handle? { dlsym(library, name) }
    guard let globalInit = find("curl_global_init"), let easyInit = find("curl_easy_init"),
      let easyCleanup = find("curl_easy_cleanup"), let setOption = find("curl_easy_setopt"),
      let getInformation = find("curl_easy_getinfo"), let multiInit = find("curl_multi_init"),
      let multiCleanup = find("curl_multi_cleanup"), let multiAdd = find("curl_multi_add_handle"),
      let multiRemove = find("curl_multi_remove_handle"),
      let multiPerform = find("curl_multi_perform"), let multiPoll = find("curl_multi_poll"),
      let multiWakeup = find("curl_multi_wakeup"), let multiRead = find("curl_multi_info_read"),
      let listAppend = find("curl_slist_append"), let listFree = find("curl_slist_free_all")
    else { return nil }
    typealias Start = @convention(c) (Int) -> Int32
    let everything = 3
    guard unsafeBitCast(globalInit, to: Start.self)(everything) == 0 else { return nil }
    self.easyInit = unsafeBitCast(easyInit, to: (@convention(c) () -> Handle?).self)
    self.easyCleanup = unsafeBitCast(easyCleanup, to: (@convention(c) (Handle) -> Void).self)
    self.setOption = setOption
    self.getInformation = getInformation
    self.multiInit = unsafeBitCast(multiInit, to: (@convention(c) () -> Handle?).self)
    self.multiCleanup = unsafeBitCast(multiCleanup, to: (@convention(c) (Handle) -> Int32).self)
    self.multiAdd = unsafeBitCast(multiAdd, to: (@convention(c) (Handle, Handle) -> Int32).self)
    self.multiRemove = unsafeBitCast(
      multiRemove, to: (@convention(c) (Handle, Handle) -> Int32).self)
    self.multiPerform = unsafeBitCast(
      multiPerform,
      to: (@convention(c) (Handle, UnsafeMutablePointer<Int32>) -> Int32).self)
    self.multiPoll = unsafeBitCast(
      multiPoll,
      to: (@convention(c) (Handle, Handle?, UInt32, Int32, UnsafeMutablePointer<Int32>?) -> Int32)
        .self)
    self.multiWakeup = unsafeBitCast(multiWakeup, to: (@convention(c) (Handle) -> Int32).self)
    self.multiRead = unsafeBitCast(
      multiRead,
      to: (@convention(c) (Handle, UnsafeMutablePointer<Int32>) -> UnsafeMutableRawPointer?).self)
    self.listAppend = unsafeBitCast(
      listAppend, to: (@convention(c) (Handle?, UnsafePointer<CChar>) -> Handle?).self)
    self.listFree = unsafeBitCast(listFree, to: (@convention(c) (Handle?) -> Void).self)
  }

  // An option that this libcurl does not know fails the request: none of them may be left out.

  func set(_ handle: Handle, _ option: CurlOption, _ number: Int) -> Bool {
    kith_curl_set_long(setOption, handle, option.rawValue, number) == 0
  }

  func set(_ handle: Handle, _ option: CurlOption, offset: Int) -> Bool {
    kith_curl_set_offset(setOption, handle, option.rawValue, Int64(offset)) == 0
  }

  /// libcurl copies strings, but keeps other pointers.
  func set(_ handle: Handle, _ option: CurlOption, _ pointer: UnsafeRawPointer?) -> Bool {
    kith_curl_set_pointer(setOption, handle, option.rawValue, pointer) == 0
  }

  func set(_ handle: Handle, _ option: CurlOption, text: String) -> Bool {
    text.withCString { set(handle, option, UnsafeRawPointer($0)) }
  }

  func get(_ handle: Handle, _ information: CurlInformation) -> Int {
    var number = 0
    return kith_curl_get_long(getInformation, handle, information.rawValue, &number) == 0
      ? number : 0
  }
}

/// Options of `curl_easy_setopt`.
enum CurlOption: Int32 {
  case url = 10_002
  case proxy = 10_004
  case writeContext = 10_001
  case write = 20_011
  case body = 10_015
  case bodyBytes = 30_120
  case headers = 10_023
  case headerContext = 10_029
  case header = 20_079
  case tlsVersion = 32
  case method = 10_036
  case noProgress = 43
  case getMethod = 80
  case post = 47
  case followRedirects = 52
  case verifyPeer = 64
  case verifyHost = 81
  case authorityFile = 10_065
  case httpVersion = 84
  case noSignals = 99
  case authentication = 107
  case connectMilliseconds = 156
  case openSocket = 20_163
  case openSocketContext = 10_164
  case user = 10_173
  case password = 10_174
  case protocols = 181
  case progress = 20_219
  case progressContext = 10_057
  case pathAsIs = 234
}

/// Numbers that `curl_easy_getinfo` returns.
enum CurlInformation: Int32 {
  case status = 0x20_0002
  case offeredAuthentication = 0x20_0017
}

/// Bits of `CURLOPT_HTTPAUTH`.
struct HTTPAuthentication: OptionSet {
  var rawValue: Int

  static let basic = HTTPAuthentication(rawValue: 1)
  static let digest = HTTPAuthentication(rawValue: 2)
}
