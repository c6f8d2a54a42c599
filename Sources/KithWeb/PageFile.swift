/// A file of the page. All are linked into the program.
struct PageFile {
  let type: String
  let bytes: [UInt8]

  /// Nil if the page has no such file.
  init?(path: String) {
    let name = path == "/" ? "/index.html" : path
    guard let bytes = Self.files[name],
      let type = name.split(separator: ".").last.flatMap({ Self.types[String($0)] })
    else { return nil }
    self.type = "\(type); charset=utf-8"
    self.bytes = bytes
  }

  private static let types = [
    "css": "text/css", "html": "text/html", "js": "text/javascript", "svg": "image/svg+xml",
  ]

  static let files: [String: [UInt8]] = [
    "/account.js": PackageResources.account_js,
    "/api.js": PackageResources.api_js,
    "/app.js": PackageResources.app_js,
    "/carriers.js": PackageResources.carriers_js,
    "/devices.js": PackageResources.devices_js,
    "/dom.js": PackageResources.dom_js,
    "/editor.js": PackageResources.editor_js,
    "/icon.svg": PackageResources.icon_svg,
    "/index.html": PackageResources.index_html,
    "/json.js": PackageResources.json_js,
    "/keys.js": PackageResources.keys_js,
    "/map.js": PackageResources.map_js,
    "/page.css": PackageResources.page_css,
    "/page.js": PackageResources.page_js,
    "/pairing.js": PackageResources.pairing_js,
    "/records.js": PackageResources.records_js,
    "/stores.js": PackageResources.stores_js,
    "/values.js": PackageResources.values_js,
    "/verdict.js": PackageResources.verdict_js,
    "/writes.js": PackageResources.writes_js,
  ]
}
