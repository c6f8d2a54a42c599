// Tests of kith.h: values, errors, a store, transactions, changes, and two devices on loopback.
//
//   suite DIRECTORY     makes its devices below the directory, which must be empty
#include "test.h"

#include <poll.h>
#include <pthread.h>
#include <unistd.h>

static kith_error *error;
static char directory[4096];

static const char *below(const char *name) {
  static char path[4200];
  snprintf(path, sizeof path, "%s/%s", directory, name);
  return path;
}

// ---------------------------------------------------------------------------------------- values

static void test_scalars(void) {
  kith_value *value = kith_value_new_bool(true);
  CHECK(kith_value_type(value) == KITH_BOOL && kith_value_get_bool(value, false));
  CHECK(kith_value_get_integer(value, -7) == -7);
  CHECK(kith_value_get_string(value, NULL) == NULL);
  CHECK(kith_free(value) && !kith_free(value));
  CHECK(kith_value_type(value) == KITH_NONE && !kith_value_get_bool(value, false));

  value = kith_value_new_integer(INT64_MIN);
  CHECK(kith_value_get_integer(value, 0) == INT64_MIN);
  CHECK(kith_value_get_double(value, 0) == (double)INT64_MIN);
  kith_free(value);
  value = kith_value_new_double(2.5);
  CHECK(kith_value_get_integer(value, 4) == 4 && kith_value_get_double(value, 0) == 2.5);
  kith_free(value);
  value = kith_value_new_date(-0.25);
  CHECK(kith_value_type(value) == KITH_DATE && kith_value_get_date(value, 0) == -0.25);
  CHECK(kith_value_get_double(value, 3) == 3);
  kith_free(value);

  size_t length = 99;
  value = kith_value_new_string("a\0b", 3);
  CHECK(memcmp(kith_value_get_string(value, &length), "a\0b", 4) == 0 && length == 3);
  kith_free(value);
  value = kith_value_new_string("gr\xc3\xbc\xc3\x9f", KITH_TERMINATED);
  CHECK(IS(kith_value_get_string(value, &length), "gr\xc3\xbc\xc3\x9f") && length == 6);
  kith_free(value);
  value = kith_value_new_data("\xff\0", 2);
  CHECK(memcmp(kith_value_get_data(value, &length), "\xff\0", 3) == 0 && length == 2);
  CHECK(kith_value_get_string(value, NULL) == NULL);
  kith_free(value);
  value = kith_value_new_data(NULL, 0);
  CHECK(kith_value_get_data(value, &length) && length == 0);
  kith_free(value);

  CHECK(!kith_value_new_string("\xff", KITH_TERMINATED));
  CHECK(!kith_value_new_string(NULL, KITH_TERMINATED) && !kith_value_new_string(NULL, 1));
  CHECK(!kith_value_new_data(NULL, 1) && !kith_value_copy(NULL));
}

static void test_containers(void) {
  kith_value *array = kith_value_new_array(), *dictionary = kith_value_new_dictionary();
  kith_value *one = kith_value_new_integer(1);
  CHECK(kith_value_append(array, one, &error) && kith_value_append(array, array, &error));
  CHECK(kith_value_count(array) == 2);
  const kith_value *inner = kith_value_at(array, 1);
  CHECK(kith_value_type(inner) == KITH_ARRAY && kith_value_at(array, 1) == inner);
  CHECK(kith_value_get_integer(kith_value_at(inner, 0), 0) == 1);
  CHECK(!kith_value_at(array, 2) && !kith_value_at(array, (size_t)-1) && !kith_value_at(one, 0));
  // A borrowed value is its owner's to free, cannot be changed, and ends with a change.
  CHECK(!kith_free((void *)inner));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_append((kith_value *)inner, one, &error));
  kith_value *copy = kith_value_copy(inner);
  CHECK(kith_value_append(copy, one, &error) && kith_value_append(array, one, &error));
  CHECK(kith_value_type(inner) == KITH_NONE && kith_value_count(copy) == 2);

  // Names count, too.
  kith_value *wide = kith_value_new_dictionary();
  char *name = malloc(40 << 20);
  memset(name, 'n', 40 << 20);
  CHECK(kith_value_put(wide, name, 40 << 20, one, &error));
  FAILS(KITH_VALUE_TOO_LARGE, kith_value_put(wide, name, (40 << 20) - 1, one, &error));
  CHECK(kith_value_put(wide, name, 40 << 20, NULL, &error));
  CHECK(kith_value_put(wide, name, (40 << 20) - 1, one, &error));
  free(name), kith_free(wide);

  CHECK(kith_value_put(dictionary, "b", 1, array, &error));
  CHECK(kith_value_put(dictionary, "a\0x", 3, one, &error));
  CHECK(kith_value_put(dictionary, "\xc3\xa9", KITH_TERMINATED, one, &error));
  // The same character in another form: a dictionary would mix the two up.
  FAILS(KITH_UNSUPPORTED_VALUE,
        kith_value_put(dictionary, "e\xcc\x81", KITH_TERMINATED, one, &error));
  size_t length;
  CHECK(kith_value_count(dictionary) == 3);
  CHECK(memcmp(kith_value_name_at(dictionary, 0, &length), "a\0x", 4) == 0 && length == 3);
  CHECK(IS(kith_value_name_at(dictionary, 1, NULL), "b") && !kith_value_name_at(dictionary, 3, NULL));
  CHECK(kith_value_equal(kith_value_member(dictionary, "b"), array));
  CHECK(kith_value_equal(kith_value_at(dictionary, 0), one));
  CHECK(!kith_value_member(dictionary, "c") && !kith_value_member(array, "b"));
  CHECK(!kith_value_member(dictionary, NULL) && !kith_value_member(dictionary, "\xff"));
  CHECK(kith_value_put(dictionary, "b", 1, NULL, &error) && kith_value_count(dictionary) == 2);
  FAILS(KITH_INVALID_ARGUMENT, kith_value_put(array, "b", 1, one, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_put(dictionary, "\xff", 1, one, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_append(dictionary, one, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_append(array, NULL, &error));

  // Nesting and doubling end before they hurt.
  kith_value *deep = kith_value_new_array();
  int depth = 1;
  while (kith_value_append(deep, deep, NULL) && depth < 1000) depth++;
  CHECK(depth < 64 && kith_value_json(deep, NULL));
  kith_free(deep), kith_free(copy), kith_free(one), kith_free(array), kith_free(dictionary);
}

static void test_json_and_plists(void) {
  const char *text =
      "{\"a\":[true,1,1.0,-0.5,\"x\\ny\",{\"$data\":\"AAEC\"},{\"$date\":\"2026-11-21T10:00:00Z\"}],"
      "\"b\":{},\"\xc3\xa9\":9223372036854775807}";
  kith_value *value = kith_value_from_json(text, KITH_TERMINATED, &error);
  CHECK(value);
  size_t length;
  CHECK(IS(kith_value_json(value, &length), text) && length == strlen(text));
  const void *bytes = kith_value_plist(value, &length);
  kith_value *again = kith_value_from_plist(bytes, length, &error);
  CHECK(again && kith_value_equal(value, again));
  CHECK(length > 40 && memcmp(bytes, "bplist00", 8) == 0);
  // Each cut and each flipped byte is refused or another value, and nothing worse.
  unsigned char *damaged = malloc(length);
  for (size_t i = 0; i < length; i++) {
    kith_free(kith_value_from_plist(bytes, i, NULL));
    memcpy(damaged, bytes, length);
    damaged[i] ^= (unsigned char)(1 << i % 8);
    kith_free(kith_value_from_plist(damaged, length, NULL));
  }
  free(damaged);
  FAILS(KITH_UNSUPPORTED_VALUE, kith_value_from_json("{\"a\":nul}", KITH_TERMINATED, &error));
  FAILS(KITH_UNSUPPORTED_VALUE, kith_value_from_json("null", KITH_TERMINATED, &error));
  FAILS(KITH_UNSUPPORTED_VALUE, kith_value_from_json("", 0, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_from_json("\"\xff\"", KITH_TERMINATED, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_from_json(NULL, KITH_TERMINATED, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_value_from_plist(NULL, 8, &error));
  FAILS(KITH_UNSUPPORTED_VALUE, kith_value_from_plist("bplist00", 8, &error));
  // 256 brackets are more than a value may have, but no danger.
  char brackets[513];
  memset(brackets, '[', 256), memset(brackets + 256, ']', 256), brackets[512] = 0;
  kith_free(kith_value_from_json(brackets, KITH_TERMINATED, NULL));
  kith_free(value), kith_free(again);
}

// ---------------------------------------------------------------------------------- a store alone

// Runs on several threads at once.
static bool increment(kith_transaction *transaction, void *context) {
  kith_error *error = NULL;
  kith_value *old = kith_transaction_get(transaction, KEY("n"), NULL);
  kith_value *new = kith_value_new_integer(kith_value_get_integer(old, 0) + 1);
  bool is_set = kith_transaction_set(transaction, KEY("n"), new, &error);
  CHECK(is_set && !kith_free(transaction));
  FAILS(KITH_INVALID_ARGUMENT, kith_transaction_commit(transaction, &error));
  *(kith_transaction **)context = transaction;
  kith_free(old), kith_free(new);
  return true;
}

static bool decline(kith_transaction *transaction, void *context) {
  (void)context;
  return kith_transaction_set(transaction, KEY("theme"), NULL, NULL) && false;
}

// Writes the key that it has read, so that it must run again.
static bool interfere(kith_transaction *transaction, void *context) {
  kith_store *store = ((void **)context)[0];
  int *runs = ((void **)context)[1];
  kith_value *shown = kith_transaction_get(transaction, KEY("race"), NULL);
  if ((*runs)++ < 3) kith_store_set_integer(store, "race", *runs, NULL);
  bool is_set = kith_transaction_set(transaction, KEY("seen"), shown, NULL);
  kith_free(shown);
  return is_set;
}

// A commit within a body waited for its turn for ever, if both had to run again.
static bool nest(kith_transaction *transaction, void *store) {
  kith_error *error = NULL;
  kith_transaction *lent = NULL;
  FAILS(KITH_INVALID_ARGUMENT, kith_store_commit(store, increment, &lent, &error));
  CHECK(!lent);
  kith_transaction *own = kith_store_begin(store, &error);
  kith_value *one = kith_value_new_integer(1);
  CHECK(own && kith_transaction_set(own, KEY("own"), one, &error) && kith_transaction_commit(own, &error));
  bool is_set = kith_transaction_set(transaction, KEY("nest"), one, &error);
  kith_free(own), kith_free(one);
  return is_set;
}

static void test_transactions(kith_store *store) {
  kith_transaction *lent = NULL;
  CHECK(kith_store_commit(store, increment, &lent, &error));
  CHECK(kith_store_commit(store, increment, &lent, &error));
  CHECK(kith_store_get_integer(store, "n", 0) == 2);
  FAILS(KITH_INVALID_ARGUMENT, kith_transaction_set(lent, KEY("n"), NULL, &error));
  FAILS(KITH_CANCELLED, kith_store_commit(store, decline, NULL, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_commit(store, NULL, NULL, &error));
  CHECK(kith_store_commit(store, nest, store, &error) && kith_store_get_integer(store, "n", 0) == 2);
  CHECK(kith_store_get_integer(store, "own", 0) == 1 && kith_store_get_integer(store, "nest", 0) == 1);
  int runs = 0;
  void *context[] = {store, &runs};
  CHECK(kith_store_commit(store, interfere, context, &error) && runs == 4);
  CHECK(kith_store_get_integer(store, "seen", 0) == 3);

  // One of the program's own: it sees its writes, and conflicts with those of others.
  kith_value *one = kith_value_new_integer(1);
  kith_transaction *transaction = kith_store_begin(store, &error);
  CHECK(transaction && kith_transaction_set(transaction, KEY("tab.1"), one, &error));
  kith_value *tabs = kith_transaction_snapshot(transaction, KEY("tab."), &error);
  CHECK(IS(kith_value_json(tabs, NULL), "{\"tab.1\":1}"));
  kith_free(tabs);
  CHECK(kith_store_set(store, KEY("tab.2"), one, &error));
  FAILS(KITH_CONFLICT, kith_transaction_commit(transaction, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_transaction_commit(transaction, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_transaction_get(transaction, KEY("n"), &error));
  CHECK(kith_free(transaction) && !kith_store_get_integer(store, "tab.1", 0));

  transaction = kith_store_begin(store, &error);
  CHECK(kith_transaction_expect(transaction, KEY("tab.2"), one, &error));
  CHECK(kith_transaction_expect(transaction, KEY("tab.1"), NULL, &error));
  FAILS(KITH_UNEXPECTED_VALUE, kith_transaction_expect(transaction, KEY("tab.1"), one, &error));
  CHECK(kith_transaction_set(transaction, KEY("tab.2"), NULL, &error));
  CHECK(!kith_transaction_get(transaction, KEY("tab.2"), &error) && !error);
  FAILS(KITH_INVALID_KEY, kith_transaction_set(transaction, KEY("\xff"), one, &error));
  CHECK(kith_transaction_commit(transaction, &error));
  CHECK(!kith_store_get(store, KEY("tab.2"), &error) && !error);
  kith_free(transaction), kith_free(one);
}

// Only its length tells such a key from what stands before the zero byte.
static void test_keys_with_zero_bytes(kith_store *store) {
  static const char key[] = "zero\0key";
  const size_t size = sizeof key - 1;
  size_t length = 0;
  kith_value *one = kith_value_new_integer(1), *two = kith_value_new_integer(2);
  CHECK(kith_store_set_integer(store, "zero", 7, &error) && kith_store_set(store, key, size, one, &error));
  kith_value *shown = kith_store_get(store, key, size, &error);
  CHECK(kith_value_equal(shown, one) && kith_store_get_integer(store, key, 0) == 7);
  kith_free(shown);
  shown = kith_store_snapshot(store, key, 5, &error);
  CHECK(kith_value_count(shown) == 1 && kith_value_equal(kith_value_at(shown, 0), one));
  CHECK(memcmp(kith_value_name_at(shown, 0, &length), key, size + 1) == 0 && length == size);
  kith_free(shown);

  CHECK(kith_store_set(store, key, size, two, &error));
  kith_value *history = kith_store_history(store, key, size, 1, &error);
  CHECK(kith_value_equal(kith_value_member(kith_value_at(history, 0), "value"), one));
  kith_free(history);
  kith_value *past = kith_store_undo(store, key, size, 0, &error);
  CHECK(past && memcmp(kith_value_get_string(kith_value_member(past, "key"), &length), key, size + 1) == 0);
  kith_free(past);

  kith_transaction *transaction = kith_store_begin(store, &error);
  shown = kith_transaction_get(transaction, key, size, &error);
  CHECK(kith_value_equal(shown, one) && kith_transaction_expect(transaction, key, size, one, &error));
  kith_free(shown);
  CHECK(kith_transaction_set(transaction, key, size, NULL, &error));
  shown = kith_transaction_snapshot(transaction, key, 5, &error);
  CHECK(kith_value_count(shown) == 0 && kith_transaction_commit(transaction, &error));
  kith_free(shown), kith_free(transaction);
  CHECK(!kith_store_get(store, key, size, &error) && !error);

  const char *keys[] = {key, key};
  const size_t lengths[] = {size, KITH_TERMINATED};
  const kith_value *values[] = {one, two};
  CHECK(kith_store_set_each(store, 2, keys, lengths, values, &error));
  shown = kith_store_snapshot(store, KEY("zero"), &error);
  CHECK(kith_value_count(shown) == 2 && kith_value_equal(kith_value_member(shown, "zero"), two));
  CHECK(kith_value_equal(kith_value_at(shown, 1), one));
  kith_free(shown);
  CHECK(kith_store_remove(store, key, size, &error) && kith_store_get_integer(store, "zero", 0) == 2);
  shown = kith_store_snapshot(store, KEY("zero"), &error);
  CHECK(kith_value_count(shown) == 1);

  char long_key[65] = "a";
  memset(long_key + 2, 'k', sizeof long_key - 2);
  CHECK(!kith_store_set(store, long_key, sizeof long_key, one, &error));
  CHECK(kith_error_code(error) == KITH_INVALID_KEY);
  CHECK(memcmp(kith_error_key(error, &length), long_key, sizeof long_key) == 0 && length == sizeof long_key);
  kith_free(error), error = NULL;
  FAILS(KITH_INVALID_ARGUMENT, kith_store_get(store, NULL, 1, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_get(store, KEY(NULL), &error));
  FAILS(KITH_INVALID_KEY, kith_store_get(store, "\xff", 1, &error));
  FAILS(KITH_INVALID_KEY, kith_store_snapshot(store, "\xff", 1, &error));
  kith_free(shown), kith_free(one), kith_free(two);
}

static void test_changes(kith_store *store) {
  kith_changes *own = kith_store_changes(store, KITH_OWN_WRITES, &error);
  kith_changes *others = kith_store_changes(store, 0, &error);
  CHECK(own && others);
  struct pollfd polled = {kith_changes_fd(own), POLLIN, 0};
  CHECK(poll(&polled, 1, 0) == 0 && !kith_changes_next(own, 0) && !kith_changes_next(own, 20));
  CHECK(kith_store_set_string(store, "colour", "blue", &error));
  CHECK(kith_store_set_string(store, "colour", "red", &error));
  CHECK(poll(&polled, 1, 0) == 1);
  kith_free(kith_changes_next(own, -1));
  CHECK(poll(&polled, 1, 0) == 1);
  kith_change *change = kith_changes_next(own, 1000);
  CHECK(poll(&polled, 1, 0) == 0 && !kith_changes_next(own, 0));
  size_t length = 0;
  CHECK(kith_change_reason(change) == KITH_OWN_WRITE && kith_change_count(change) == 1);
  CHECK(IS(kith_change_key(change, 0, &length), "colour") && length == 6);
  CHECK(IS(kith_value_get_string(kith_change_old(change, 0), NULL), "blue"));
  CHECK(IS(kith_value_get_string(kith_change_new(change, 0), NULL), "red"));
  CHECK(!kith_change_key(change, 1, NULL) && !kith_change_new(change, 1));
  CHECK(kith_value_count(kith_change_superseded(change)) == 0 && !kith_change_is_joined(change));
  const kith_value *borrowed = kith_change_new(change, 0);
  CHECK(kith_free(change) && kith_value_type(borrowed) == KITH_NONE);
  CHECK(kith_change_reason(change) == KITH_NO_REASON && !kith_change_count(change));
  CHECK(!kith_changes_next(others, 0) && !kith_changes_have_ended(others));
  for (int i = 0; i < 100; i++) CHECK(kith_store_set_integer(store, "colour", i, &error));
  int count = 0;
  bool is_joined = false;
  while ((change = kith_changes_next(own, 0))) {
    count++, is_joined = kith_change_is_joined(change);
    kith_free(change);
  }
  CHECK(count == 64 && is_joined);
  kith_free(own), kith_free(others);
  CHECK(kith_changes_fd(own) == -1 && kith_changes_have_ended(own));
}

static void test_history_and_quota(kith_store *store) {
  CHECK(kith_store_set_string(store, "word", "one", &error));
  CHECK(kith_store_set_string(store, "word", "two", &error));
  kith_value *history = kith_store_history(store, KEY("word"), 1, &error);
  CHECK(IS(kith_value_get_string(kith_value_member(kith_value_at(history, 0), "value"), NULL), "one"));
  kith_free(history);
  kith_value *past = kith_store_undo(store, KEY("word"), 0, &error);
  CHECK(past && IS(kith_value_get_string(kith_value_member(past, "key"), NULL), "word"));
  kith_free(past);
  kith_value *word = kith_store_get(store, KEY("word"), &error);
  CHECK(IS(kith_value_get_string(word, NULL), "one"));
  kith_free(word);
  CHECK(!kith_store_undo(store, KEY("never"), 0, &error) && !error);
  history = kith_store_history(store, KEY("word"), 1, &error);
  uint64_t number =
      (uint64_t)kith_value_get_integer(kith_value_member(kith_value_at(history, 0), "transaction"), 0);
  kith_free(history);
  past = kith_store_undo_transaction(store, number, &error);
  CHECK(kith_value_count(past) == 1);
  kith_free(past);
  word = kith_store_get(store, KEY("word"), &error);
  CHECK(IS(kith_value_get_string(word, NULL), "two"));
  kith_free(word);
  past = kith_store_undo_transaction(store, 999, &error);
  CHECK(past && !kith_value_count(past));
  kith_free(past);

  char *text = malloc((2 << 20) + 1);
  memset(text, 'x', 2 << 20), text[2 << 20] = 0;
  FAILS(KITH_VALUE_TOO_LARGE, kith_store_set_string(store, "large", text, &error));
  free(text);
  CHECK(!kith_store_set_integer(store, "a key of sixty-five bytes, which is one byte more than there may be", 1, &error));
  size_t length = 0;
  CHECK(kith_error_code(error) == KITH_INVALID_KEY && kith_error_key(error, &length) && length == 67);
  CHECK(IS(kith_error_name(error), "invalidKey") && IS(kith_error_remedy(error), "Shorten it."));
  CHECK(kith_error_tries_left(error) == -1 && !kith_error_path(error));
  kith_free(error), error = NULL;

  kith_value *documents[] = {
      kith_store_usage(store, &error), kith_store_hidden_entries(store, &error),
      kith_store_refusals(store, &error), kith_store_take_refusals(store, 0, &error),
      kith_store_sync_report(store, &error)};
  for (int i = 0; i < 5; i++) {
    CHECK(documents[i] && !error);
    kith_free(documents[i]);
  }
}

static void test_bad_arguments(kith_store *store) {
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set_string(NULL, "key", "text", &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set_string(store, NULL, "text", &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set_string(store, "key", NULL, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set_string(store, "key", "\xff", &error));
  FAILS(KITH_INVALID_KEY, kith_store_set_string(store, "\xff", "text", &error));
  FAILS(KITH_INVALID_KEY, kith_store_set_string(store, "", "text", &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set(store, KEY("key"), (kith_value *)store, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_get((kith_store *)(uintptr_t)0x123456789, KEY("key"), &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_get((kith_store *)&store, KEY("key"), &error));
  CHECK(kith_store_get_integer(NULL, "key", 5) == 5 && kith_store_get_bool(store, "\xff", true));
  CHECK(!kith_store_set_string(store, "\xff", "text", NULL));
  kith_options options = {.size = sizeof options - 1};
  FAILS(KITH_INVALID_ARGUMENT, kith_accounts_open(&options, &error));
  options.size = sizeof options, options.port = 70000, options.directory = below("never");
  FAILS(KITH_INVALID_ARGUMENT, kith_accounts_open(&options, &error));
  options.port = 0, options.directory = "\xff";
  FAILS(KITH_INVALID_ARGUMENT, kith_accounts_open(&options, &error));
  options.directory = below("never"), options.flags = 1 << 4;
  FAILS(KITH_INVALID_ARGUMENT, kith_accounts_open(&options, &error));
  options.flags = KITH_KEEP_HISTORY | KITH_NO_HISTORY;
  FAILS(KITH_INVALID_ARGUMENT, kith_accounts_open(&options, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_changes(store, 1 << 1, &error));
  // A struct of a later header is taken if nothing unknown is asked.
  struct { kith_options known; void *later; } later = {{.size = sizeof later}, &later};
  FAILS(KITH_INVALID_ARGUMENT, kith_accounts_open(&later.known, &error));
  CHECK(kith_error_code(NULL) == KITH_OK && IS(kith_error_name(NULL), "ok"));
  CHECK(!kith_free(NULL) && !kith_free(&options) && kith_version()[0]);
  CHECK(kith_task_fd(NULL) == -1 && !kith_task_next(NULL, -1) && !kith_task_is_done(NULL));
  kith_task_cancel(NULL);
  FAILS(KITH_INVALID_ARGUMENT, kith_task_finish(NULL, &error));
}

static void *write_much(void *store) {
  for (int i = 0; i < 40; i++) {
    kith_transaction *lent;
    kith_store_set_integer(store, "busy", i, NULL);
    kith_store_commit(store, increment, &lent, NULL);
    kith_free(kith_store_snapshot(store, NULL, 0, NULL));
  }
  return NULL;
}

static void test_threads(kith_store *store) {
  int64_t before = kith_store_get_integer(store, "n", 0);
  pthread_t threads[4];
  for (int i = 0; i < 4; i++) CHECK(pthread_create(&threads[i], NULL, write_much, store) == 0);
  for (int i = 0; i < 4; i++) CHECK(pthread_join(threads[i], NULL) == 0);
  CHECK(kith_store_get_integer(store, "n", 0) == before + 160);
}

// All but reading fails.
static void test_closed(kith_accounts *accounts, kith_store *store, kith_transaction *begun) {
  kith_transaction *lent = NULL;
  kith_value *one = kith_value_new_integer(1);
  FAILS(KITH_CLOSED, kith_store_set(store, KEY("theme"), one, &error));
  FAILS(KITH_CLOSED, kith_store_set_bool(store, "theme", true, &error));
  FAILS(KITH_CLOSED, kith_store_set_integer(store, "theme", 1, &error));
  FAILS(KITH_CLOSED, kith_store_set_double(store, "theme", 1, &error));
  FAILS(KITH_CLOSED, kith_store_set_string(store, "theme", "light", &error));
  FAILS(KITH_CLOSED, kith_store_set_each(store, 0, NULL, NULL, NULL, &error));
  FAILS(KITH_CLOSED, kith_store_remove(store, KEY("theme"), &error));
  FAILS(KITH_CLOSED, kith_store_flush(store, &error));
  FAILS(KITH_CLOSED, kith_store_usage(store, &error));
  FAILS(KITH_CLOSED, kith_store_hidden_entries(store, &error));
  FAILS(KITH_CLOSED, kith_store_refusals(store, &error));
  FAILS(KITH_CLOSED, kith_store_take_refusals(store, 0, &error));
  FAILS(KITH_CLOSED, kith_store_history(store, NULL, 0, 0, &error));
  FAILS(KITH_CLOSED, kith_store_undo(store, KEY("theme"), 0, &error));
  FAILS(KITH_CLOSED, kith_store_undo_transaction(store, 999, &error));
  FAILS(KITH_CLOSED, kith_store_sync_report(store, &error));
  FAILS(KITH_CLOSED, kith_store_wait_until_synced(store, 0, 0, &error));
  FAILS(KITH_CLOSED, kith_store_changes(store, 0, &error));
  FAILS(KITH_CLOSED, kith_store_begin(store, &error));
  FAILS(KITH_CLOSED, kith_store_commit(store, increment, &lent, &error));
  FAILS(KITH_CLOSED, kith_accounts_run(accounts, &error));
  FAILS(KITH_CLOSED, kith_accounts_store(accounts, "com.example.suite", NULL, &error));
  FAILS(KITH_CLOSED, kith_accounts_signed_in(accounts, &error));
  FAILS(KITH_CLOSED, kith_accounts_known(accounts, &error));
  FAILS(KITH_CLOSED, kith_accounts_status(accounts, &error));
  FAILS(KITH_CLOSED, kith_accounts_watch_status(accounts, &error));
  FAILS(KITH_CLOSED, kith_accounts_create_account(accounts, "laptop", &error));
  FAILS(KITH_CLOSED, kith_accounts_sign_in(accounts, "code", "laptop", NULL, &error));
  FAILS(KITH_CLOSED, kith_accounts_sign_in_to(accounts, "account", &error));
  FAILS(KITH_CLOSED, kith_accounts_sign_out(accounts, &error));
  FAILS(KITH_CLOSED, kith_accounts_invite(accounts, NULL, &error));
  CHECK(kith_accounts_close(accounts, &error));

  kith_value *theme = kith_store_get(store, KEY("theme"), &error);
  kith_value *keys = kith_store_keys(store, &error), *all = kith_store_snapshot(store, NULL, 0, &error);
  CHECK(IS(kith_value_get_string(theme, NULL), "dark") && kith_value_count(keys) == kith_value_count(all));
  kith_free(theme), kith_free(keys), kith_free(all);
  theme = kith_transaction_get(begun, KEY("theme"), &error);
  CHECK(theme && kith_transaction_expect(begun, KEY("theme"), theme, &error));
  CHECK(kith_transaction_set(begun, KEY("theme"), one, &error));
  FAILS(KITH_CLOSED, kith_transaction_commit(begun, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_transaction_commit(begun, &error));
  kith_free(theme), kith_free(one);
}

static void test_a_store(void) {
  kith_options options = {.size = sizeof options, .directory = below("alone")};
  kith_accounts *accounts = kith_accounts_open(&options, &error);
  CHECK(accounts);
  kith_store *store = kith_accounts_store(accounts, "com.example.suite", NULL, &error);
  CHECK(store);
  kith_policy policy = {.size = sizeof policy, .keys = 4};
  FAILS(KITH_INVALID_POLICY, kith_accounts_store(accounts, "com.example.suite", &policy, &error));
  FAILS(KITH_INVALID_STORE_IDENTIFIER, kith_accounts_store(accounts, "", NULL, &error));
  kith_store *small = kith_accounts_store(accounts, "com.example.small", &policy, &error);
  for (int i = 0; i < 4; i++) {
    char key[] = {(char)('a' + i), 0};
    CHECK(kith_store_set_bool(small, key, true, &error));
  }
  FAILS(KITH_QUOTA_EXCEEDED, kith_store_set_bool(small, "e", true, &error));
  CHECK(kith_store_remove(small, KEY("a"), &error) && kith_store_set_double(small, "e", 0.5, &error));
  kith_value *keys = kith_store_keys(small, &error);
  CHECK(IS(kith_value_json(keys, NULL), "[\"b\",\"c\",\"d\",\"e\"]"));
  kith_free(keys);
  // Each by itself: the refused one keeps neither the one before nor the one after.
  kith_value *one = kith_value_new_integer(1);
  const char *names[] = {"b", "f", "c", "d"};
  const kith_value *values[] = {one, one, NULL, one};
  FAILS(KITH_QUOTA_EXCEEDED, kith_store_set_each(small, 4, names, NULL, values, &error));
  kith_value *left = kith_store_snapshot(small, NULL, 0, &error);
  CHECK(IS(kith_value_json(left, NULL), "{\"b\":1,\"d\":1,\"e\":0.5}"));
  CHECK(kith_store_set_each(small, 0, NULL, NULL, NULL, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set_each(small, 1, NULL, NULL, NULL, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_store_set_each(small, (size_t)-1, names, NULL, values, &error));
  kith_free(left), kith_free(one), kith_free(small);

  CHECK(!kith_store_get(store, KEY("theme"), &error) && !error);
  CHECK(kith_store_set_string(store, "theme", "dark", &error));
  kith_value *shown = kith_store_snapshot(store, KEY("th"), &error);
  CHECK(IS(kith_value_json(shown, NULL), "{\"theme\":\"dark\"}"));
  // A snapshot is a dictionary like any other.
  CHECK(kith_store_set(store, KEY("copy"), shown, &error));
  kith_free(shown);
  // Keys that a Swift dictionary would take for the same.
  CHECK(kith_store_set_integer(store, "twin.\xc3\xa9", 1, &error));
  CHECK(kith_store_set_integer(store, "twin.e\xcc\x81", 2, &error));
  shown = kith_store_snapshot(store, KEY("twin."), &error);
  CHECK(kith_value_count(shown) == 2);
  CHECK(kith_value_get_integer(kith_value_member(shown, "twin.e\xcc\x81"), 0) == 2);
  FAILS(KITH_UNSUPPORTED_VALUE, kith_store_set(store, KEY("twins"), shown, &error));
  kith_free(shown);

  test_transactions(store);
  test_keys_with_zero_bytes(store);
  test_changes(store);
  test_history_and_quota(store);
  test_bad_arguments(store);
  test_threads(store);
  CHECK(kith_store_flush(store, &error));
  CHECK(!kith_accounts_signed_in(accounts, &error) && !error);

  kith_changes *changes = kith_store_changes(store, 0, &error);
  kith_transaction *begun = kith_store_begin(store, &error);
  kith_task *watch = kith_accounts_watch_status(accounts, &error);
  CHECK(begun && watch);
  CHECK(kith_accounts_close(accounts, &error) && kith_task_is_done(watch));
  CHECK(!kith_changes_next(changes, -1) && kith_changes_have_ended(changes));
  struct pollfd polled = {kith_changes_fd(changes), POLLIN, 0};
  CHECK(poll(&polled, 1, 0) == 1);
  test_closed(accounts, store, begun);
  CHECK(kith_free(accounts) && !kith_free(accounts));
  FAILS(KITH_CLOSED, kith_store_set_bool(store, "theme", true, &error));
  kith_free(changes), kith_free(store), kith_free(begun), kith_free(watch);
}

// ------------------------------------------------------------------------------------ two devices

// The next event of a name; others are dropped.
static kith_value *event(kith_task *task, const char *name) {
  kith_value *next;
  while ((next = kith_task_next(task, 60000))) {
    if (IS(kith_value_get_string(kith_value_member(next, "event"), NULL), name)) return next;
    kith_free(next);
  }
  kith_value *result = kith_task_finish(task, &error);
  CHECK(result && !"the task has ended without the event");
  return NULL;
}

static kith_accounts *opened(const char *name, const char *peer) {
  const char *hosts[] = {"127.0.0.1", NULL}, *peers[] = {peer, NULL};
  kith_options options = {.size = sizeof options, .directory = below(name), .hosts = hosts,
                          .peers = peers, .port = KITH_ANY_PORT, .flags = KITH_NO_DISCOVERY};
  kith_accounts *accounts = kith_accounts_open(&options, &error);
  CHECK(accounts);
  return accounts;
}

static void *close_accounts(void *accounts) {
  return kith_accounts_close(accounts, NULL) ? accounts : NULL;
}

static void test_two_devices(void) {
  kith_accounts *laptop = opened("laptop", NULL);
  // Without an answer no account is made.
  kith_task *task = kith_accounts_create_account(laptop, "laptop", &error);
  FAILS(KITH_DECLINED, kith_task_finish(task, &error));
  FAILS(KITH_INVALID_ARGUMENT, kith_task_answer(task, true, &error));
  kith_free(task);
  kith_store *here = kith_accounts_store(laptop, "com.example.suite", NULL, &error);
  CHECK(kith_store_set_string(here, "early", "bird", &error));
  task = kith_accounts_create_account(laptop, "laptop", &error);
  kith_value *question = event(task, "recoveryKey");
  CHECK(kith_value_get_string(kith_value_member(question, "recoveryKey"), NULL));
  CHECK(kith_task_answer(task, true, &error));
  kith_value *result = kith_task_finish(task, &error);
  CHECK(IS(kith_value_get_string(kith_value_member(result, "name"), NULL), "laptop"));
  kith_value *signed_in = kith_accounts_signed_in(laptop, &error);
  CHECK(kith_value_equal(signed_in, kith_value_member(result, "account")));
  kith_free(signed_in), kith_free(question), kith_free(result), kith_free(task);

  kith_task *node = kith_accounts_run(laptop, &error);
  CHECK(node && !kith_task_is_done(node));
  kith_task *watch = kith_accounts_watch_status(laptop, &error);
  const char *listening = NULL;
  char peer[64];
  while (!listening) {
    kith_value *told = event(watch, "status");
    const kith_value *status = kith_value_member(told, "status");
    listening = kith_value_get_string(kith_value_at(kith_value_member(status, "listening"), 0), NULL);
    if (listening) snprintf(peer, sizeof peer, "%s", listening);
    kith_free(told);
  }
  kith_free(watch);

  kith_accounts *desktop = opened("desktop", peer);
  kith_store *there = kith_accounts_store(desktop, "com.example.suite", NULL, &error);
  kith_changes *changes = kith_store_changes(there, 0, &error);
  task = kith_accounts_sign_in(desktop, "a wrong code", "desktop", "127.0.0.1:9", &error);
  FAILS(KITH_PAIRING_CODE, kith_task_finish(task, &error));
  kith_free(task);
  const char *addresses[] = {"127.0.0.1", NULL};
  kith_task *invite = kith_accounts_invite(laptop, addresses, &error);
  kith_value *invitation = event(invite, "invitation");
  const char *token = kith_value_get_string(kith_value_member(invitation, "token"), NULL);
  CHECK(token && kith_value_get_string(kith_value_member(invitation, "code"), NULL));
  task = kith_accounts_sign_in(desktop, token, "desktop", NULL, &error);
  kith_value *confirm = event(task, "confirm");
  const kith_value *inviter = kith_value_member(confirm, "inviter");
  CHECK(IS(kith_value_get_string(kith_value_member(inviter, "name"), NULL), "laptop"));
  CHECK(kith_task_answer(task, true, &error));
  kith_value *candidate = event(invite, "candidate");
  CHECK(kith_value_equal(kith_value_member(kith_value_member(candidate, "device"), "fingerprint"),
                         kith_value_member(confirm, "fingerprint")));
  CHECK(kith_task_answer(invite, true, &error));
  result = kith_task_finish(task, &error);
  CHECK(result);
  kith_value *joined = kith_task_finish(invite, &error);
  CHECK(kith_value_equal(kith_value_member(joined, "device"), kith_value_member(result, "device")));
  kith_free(joined), kith_free(result), kith_free(candidate), kith_free(confirm);
  kith_free(invitation), kith_free(invite), kith_free(task);

  // What was there before comes with the account.
  kith_change *change = kith_changes_next(changes, 10000);
  CHECK(kith_change_reason(change) == KITH_INITIAL_SYNC_CHANGE);
  CHECK(IS(kith_change_key(change, 0, NULL), "early"));
  kith_free(change);
  while ((change = kith_changes_next(changes, 0))) kith_free(change);

  kith_task *other = kith_accounts_run(desktop, &error);
  CHECK(other && kith_store_set_string(here, "theme", "dark", &error));
  // As a program with an event loop waits.
  struct pollfd polled = {kith_changes_fd(changes), POLLIN, 0};
  CHECK(poll(&polled, 1, 60000) == 1);
  change = kith_changes_next(changes, 0);
  CHECK(kith_change_reason(change) == KITH_EXTERNAL_CHANGE);
  CHECK(IS(kith_value_get_string(kith_change_new(change, 0), NULL), "dark"));
  kith_free(change);
  task = kith_store_wait_until_synced(here, 60000, 0, &error);
  kith_value *report = kith_task_finish(task, &error);
  CHECK(kith_value_get_bool(kith_value_member(report, "isComplete"), false));
  kith_free(report), kith_free(task);

  task = kith_accounts_sign_out(desktop, &error);
  result = kith_task_finish(task, &error);
  CHECK(result && !kith_accounts_signed_in(desktop, &error) && !kith_store_get(there, KEY("theme"), &error));
  kith_free(result), kith_free(task);
  kith_value *known = kith_accounts_known(desktop, &error);
  CHECK(kith_value_count(known) == 1);
  const char *id = kith_value_get_string(kith_value_member(kith_value_at(known, 0), "account"), NULL);
  task = kith_accounts_sign_in_to(desktop, id, &error);
  result = kith_task_finish(task, &error);
  kith_value *theme = kith_store_get(there, KEY("theme"), &error);
  CHECK(result && IS(kith_value_get_string(theme, NULL), "dark"));
  kith_free(theme), kith_free(result), kith_free(task), kith_free(known);

  // Closing ends the node and all else, also if two threads close.
  FAILS(KITH_ALREADY_RUNNING, kith_accounts_run(laptop, &error));
  task = kith_store_wait_until_synced(here, -1, 5, &error);
  pthread_t thread;
  void *closed = NULL;
  CHECK(task && pthread_create(&thread, NULL, close_accounts, laptop) == 0);
  CHECK(kith_accounts_close(laptop, &error) && kith_task_is_done(node) && kith_task_is_done(task));
  CHECK(pthread_join(thread, &closed) == 0 && closed == laptop);
  CHECK(kith_free(desktop) && kith_task_is_done(other));
  kith_free(laptop), kith_free(node), kith_free(other), kith_free(changes), kith_free(task);
  kith_free(here), kith_free(there);

  // A host that is none of this one's: the call says so, not only the task.
  const char *hosts[] = {"192.0.2.1", NULL};
  kith_options options = {.size = sizeof options, .directory = below("laptop"), .hosts = hosts,
                          .port = KITH_ANY_PORT, .flags = KITH_NO_DISCOVERY};
  laptop = kith_accounts_open(&options, &error);
  CHECK(laptop);
  FAILS(KITH_NETWORK, kith_accounts_run(laptop, &error));
  FAILS(KITH_NETWORK, kith_accounts_run(laptop, &error));
  kith_free(laptop);
}

int main(int count, char **arguments) {
  if (count != 2) return fprintf(stderr, "usage: suite DIRECTORY\n"), 64;
  snprintf(directory, sizeof directory, "%s", arguments[1]);
  test_scalars();
  test_containers();
  test_json_and_plists();
  test_a_store();
  test_two_devices();
  puts("suite: passed");
  return 0;
}
