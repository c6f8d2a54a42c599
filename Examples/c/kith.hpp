// Handles of kith.h that free themselves, and errors as exceptions, for C++17. Copy it, and change it as
// you like.
#pragma once

#include <kith.h>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

namespace kith {

struct Free {
  void operator()(void *handle) const { kith_free(handle); }
};
template <typename Handle> using Owned = std::unique_ptr<Handle, Free>;
using Value = Owned<kith_value>;
using Change = Owned<kith_change>;

class Error : public std::runtime_error {
public:
  explicit Error(kith_error *error)
      : runtime_error(kith_error_message(error)), code(kith_error_code(error)) {
    kith_free(error);
  }
  const kith_code code;
};

// Calls a function whose last argument is the error: check(kith_store_set_bool, store, "on", true).
template <typename Function, typename... Arguments>
auto check(Function *function, Arguments... arguments) {
  kith_error *error = nullptr;
  auto result = function(arguments..., &error);
  if (error) throw Error(error);
  return result;
}

inline Value value(bool content) { return Value(kith_value_new_bool(content)); }
inline Value value(int content) { return Value(kith_value_new_integer(content)); }
inline Value value(int64_t content) { return Value(kith_value_new_integer(content)); }
inline Value value(double content) { return Value(kith_value_new_double(content)); }
inline Value value(std::string_view content) {
  return Value(kith_value_new_string(content.data(), content.size()));
}
inline Value value(const char *content) { return value(std::string_view(content)); }

// In a transaction.
inline Value get(kith_transaction *transaction, std::string_view key) {
  return Value(check(kith_transaction_get, transaction, key.data(), key.size()));
}
template <typename Content>
void set(kith_transaction *transaction, std::string_view key, Content content) {
  check(kith_transaction_set, transaction, key.data(), key.size(),
        (const kith_value *)value(content).get());
}

class Store {
public:
  explicit Store(kith_store *store) : store(store) {}

  template <typename Content> void set(std::string_view key, Content content) {
    check(kith_store_set, store.get(), key.data(), key.size(),
          (const kith_value *)value(content).get());
  }
  void remove(std::string_view key) { check(kith_store_remove, store.get(), key.data(), key.size()); }
  Value get(std::string_view key) const {
    return Value(check(kith_store_get, store.get(), key.data(), key.size()));
  }
  std::optional<std::string> text(std::string_view key) const {
    size_t length = 0;
    Value shown = get(key);
    const char *text = kith_value_get_string(shown.get(), &length);
    return text ? std::optional<std::string>(std::string(text, length)) : std::nullopt;
  }
  int64_t integer(std::string_view key, int64_t otherwise) const {
    return kith_value_get_integer(get(key).get(), otherwise);
  }

  // Calls body(kith_transaction *) until its writes are accepted. Within it, commit() throws.
  template <typename Body> void commit(Body body) {
    struct Call {
      Body &body;
      std::exception_ptr thrown;
    } call{body, nullptr};
    kith_error *error = nullptr;
    kith_store_commit(
        store.get(),
        [](kith_transaction *transaction, void *context) {
          auto &call = *static_cast<Call *>(context);
          try {
            call.body(transaction);
            return true;
          } catch (...) { // No exception may pass through C.
            call.thrown = std::current_exception();
            return false;
          }
        },
        &call, &error);
    if (call.thrown) kith_free(error), std::rethrow_exception(call.thrown);
    if (error) throw Error(error);
  }

  Owned<kith_changes> changes(uint32_t flags = 0) const {
    return Owned<kith_changes>(check(kith_store_changes, store.get(), flags));
  }

private:
  Owned<kith_store> store;
};

class Accounts {
public:
  explicit Accounts(const char *directory = nullptr) {
    kith_options options{};
    options.size = sizeof options;
    options.directory = directory;
    accounts.reset(check(kith_accounts_open, (const kith_options *)&options));
  }
  Store store(const char *identifier) {
    return Store(check(kith_accounts_store, accounts.get(), identifier, (const kith_policy *)nullptr));
  }
  // Syncs until the task is freed. Throws if it cannot listen.
  Owned<kith_task> run() { return Owned<kith_task>(check(kith_accounts_run, accounts.get())); }
  void close() { check(kith_accounts_close, accounts.get()); }

private:
  Owned<kith_accounts> accounts;
};

} // namespace kith
