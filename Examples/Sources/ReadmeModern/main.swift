import Kith

extension StoreKey where Value == String {
  static var theme: Self { .init("theme", default: "light") }  // the default is never written
}

let accounts = try Accounts()  // of the account that is signed in, or of this host alone
let store = try accounts.store("com.example.Editor")  // the same object after each sign-in
async let exchange: Void = accounts.run()  // or hand `accounts` to a ServiceGroup
try store.set("dark", for: .theme)  // shows at once, durable soon, then on the other devices
for await theme in store.values(for: .theme) { print(theme) }  // written on any device
try await exchange
