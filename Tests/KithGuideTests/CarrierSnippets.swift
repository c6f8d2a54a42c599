import Kith
import KithCarriers

// The code of Docs/Carriers.md; see `Snippets.swift`.

func useCarriers() throws {
  var configuration = Accounts.Configuration()
  configuration.carriers = openCarrier  // folder, webdav and s3
  let accounts = try Accounts(configuration)

  _ = accounts
}
