import CCurl
import Glibc
import Kith

/// The functions of libcurl that carriers use. It is loaded when the first request is sent, so Kith
/// builds, starts and keeps folders without it.
///
/// The numbers of options are part of libcurl's binary interface, which has been the same since
/// soname 4 (2006).
// Unchecked: it holds addresses of functions, which never change.
struct CurlLibrary: @unchecked Sendable {
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
      if let library = dlopen(name, RTLD_NOW | RTLD_LOCAL), let curl = try? CurlLibrary(library) {
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

  /// - Throws: If a function is missing.
  private init(_ library: Handle) throws {
    struct Missing: Error {}
    func find<Function>(_ name: String) throws(Missing) -> Function {
      guard let address = dlsym(library, name) else { throw Missing() }
      return unsafeBitCast(address, to: Function.self)
    }
    let start: @convention(c) (Int) -> Int32 = try find("curl_global_init")
    let everything = 3
    guard start(everything) == 0 else { throw Missing() }
    easyInit = try find("curl_easy_init")
    easyCleanup = try find("curl_easy_cleanup")
    setOption = try find("curl_easy_setopt")
    getInformation = try find("curl_easy_getinfo")
    multiInit = try find("curl_multi_init")
    multiCleanup = try find("curl_multi_cleanup")
    multiAdd = try find("curl_multi_add_handle")
    multiRemove = try find("curl_multi_remove_handle")
    multiPerform = try find("curl_multi_perform")
    multiPoll = try find("curl_multi_poll")
    multiWakeup = try find("curl_multi_wakeup")
    multiRead = try find("curl_multi_info_read")
    listAppend = try find("curl_slist_append")
    listFree = try find("curl_slist_free_all")
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

  /// Takes away the value that an option was built with. A libcurl without the option has none.
  func clear(_ handle: Handle, _ option: CurlOption) -> Bool {
    let code = kith_curl_set_pointer(setOption, handle, option.rawValue, nil)
    return code == 0 || code == CurlCode.notBuiltIn
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
  case authorityDirectory = 10_097
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

/// Results of libcurl (`CURLcode`).
enum CurlCode {
  static let notBuiltIn: Int32 = 4
  static let outOfMemory: Int32 = 27
  static let aborted: Int32 = 42

  /// The failure of a transfer; nil if its answer came whole.
  static func failure(
    _ code: Int32, _ transfer: HTTPTransfer, _ origin: String
  ) -> CarrierFailure? {
    if transfer.isTooMuch {
      return CarrierFailure(.tooMuch, "An answer of \(origin) is longer than expected.")
    }
    switch code {
    case 0: return nil
    case _ where transfer.isRefused:
      return CarrierFailure(
        .untrusted, "\(origin) leads to an address of this computer or its link.")
    case 51, 58, 59, 60, 66, 77, 80, 82, 83, 90, 91:
      return CarrierFailure(
        .untrusted,
        "The TLS certificate of \(origin) is not trusted (libcurl \(code)); see whether it has "
          + "expired, or is for another host. If its authority is your own: kith carrier add "
          + "--only-here --authority-file FILE.")
    case 35:
      return CarrierFailure(
        .unreachable,
        "No TLS connection to \(origin) could be made (libcurl 35). See whether it speaks https at "
          + "that port.")
    case 6:
      return CarrierFailure(.unreachable, "The host of \(origin) is not known to the resolver.")
    case 7, 28, 45:
      return CarrierFailure(
        .unreachable,
        "\(origin) cannot be reached (libcurl \(code)); see whether the address is right and the server runs."
      )
    case 16, 18, 42, 52, 55, 56, 92:
      return CarrierFailure(
        .unreachable, "The connection to \(origin) broke off (libcurl \(code)).")
    default:
      return CarrierFailure(
        .unexpected, "\(origin) gave an answer that is not HTTP (libcurl \(code)).")
    }
  }
}
