// kith.hpp in use: c++ -std=c++17 editor.cpp $(pkg-config --cflags --libs kith)
#include "kith.hpp"
#include <iostream>

int main(int count, char **arguments) {
  try {
    kith::Accounts accounts(count > 1 ? arguments[1] : nullptr);
    kith::Store store = accounts.store("com.example.Editor");
    store.set("theme", "dark");
    for (int i = 0; i < 3; i++) {
      store.commit([](kith_transaction *transaction) {
        kith::Value windows = kith::get(transaction, "windows");
        kith::set(transaction, "windows", kith_value_get_integer(windows.get(), 0) + 1);
      });
    }
    std::cout << store.integer("windows", 0) << " windows, theme " << *store.text("theme") << "\n";
    accounts.close();
  } catch (const kith::Error &error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
