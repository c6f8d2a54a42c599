/* Sets a value of the account, and reads it: cc shortest.c $(pkg-config --cflags --libs kith) */
#include <kith.h>
#include <stdio.h>

int main(int count, char **arguments) {
  kith_error *error;
  kith_options options = {.size = sizeof options, .directory = count > 1 ? arguments[1] : NULL};
  kith_accounts *accounts = kith_accounts_open(&options, &error);
  kith_store *store = NULL;
  if (accounts) store = kith_accounts_store(accounts, "com.example.Editor", NULL, &error);
  if (!store || !kith_store_set_string(store, "theme", "dark", &error)) {
    fprintf(stderr, "%s: %s\n", kith_error_name(error), kith_error_message(error));
    kith_free(error);
    kith_free(accounts);
    return 1;
  }
  kith_value *theme = kith_store_get(store, "theme", KITH_TERMINATED, NULL);
  printf("theme: %s\n", kith_value_get_string(theme, NULL));
  kith_free(theme);
  kith_free(store);
  kith_free(accounts); /* All is durable now. */
  return 0;
}
