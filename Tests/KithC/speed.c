// Calls per second of one thread: speed DIRECTORY. The directory must be new.
#define _POSIX_C_SOURCE 200809L
#include "test.h"

#include <time.h>

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

#define MEASURE(what, count, call)                                     \
  do {                                                                 \
    double began = now();                                              \
    for (int i = 0; i < count; i++) call;                              \
    printf("%-28s %10.0f /s\n", what, count / (now() - began));        \
  } while (0)

int main(int count, char **arguments) {
  kith_error *error = NULL;
  kith_options options = {.size = sizeof options, .directory = count > 1 ? arguments[1] : NULL};
  double began = now();
  kith_accounts *accounts = kith_accounts_open(&options, &error);
  CHECK(accounts);
  kith_store *store = kith_accounts_store(accounts, "com.example.speed", NULL, &error);
  CHECK(store);
  printf("%-28s %10.1f ms\n", "open", (now() - began) * 1000);
  // While it runs, writes coalesce; otherwise each waits for the disk.
  MEASURE("set, each durable", 500, kith_store_set_integer(store, "n", i, &error));
  kith_task *node = kith_accounts_run(accounts, &error);
  CHECK(node);
  MEASURE("set", 20000, kith_store_set_integer(store, "n", i, &error));
  MEASURE("get an integer", 1000000, kith_store_get_integer(store, "n", 0));
  CHECK(kith_store_set_string(store, "theme", "dark", &error));
  MEASURE("get a string by a value", 300000, {
    kith_value *value = kith_store_get(store, KEY("theme"), NULL);
    if (!IS(kith_value_get_string(value, NULL), "dark")) abort();
    kith_free(value);
  });
  CHECK(kith_accounts_close(accounts, &error));
  kith_free(node), kith_free(store), kith_free(accounts);
  return 0;
}
