// Calls kith.h at random: any function, with handles that live, were freed, are borrowed, of another
// kind or invented, and with odd texts. It must end without a crash, and within its time.
//
//   fuzz DIRECTORY SECONDS [SEED]
#include "test.h"

#include <poll.h>
#include <time.h>
#include <unistd.h>

static uint64_t state;
static char directory[4096];
static const char *hosts[] = {"127.0.0.1", NULL}, *addresses[] = {"127.0.0.1", "\xff", NULL};

// splitmix64
static uint64_t draw(void) {
  uint64_t z = (state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
static unsigned below(unsigned limit) { return (unsigned)(draw() % limit); }
static bool chance(unsigned percent) { return below(100) < percent; }

// Handles of all kinds, live, freed and borrowed.
enum { SLOTS = 400 };
static void *handles[SLOTS];
static unsigned used;

static void *keep(const void *handle) {
  if (!handle) return NULL;
  unsigned slot = used < SLOTS ? used++ : below(SLOTS);
  // The one that goes is freed or leaked on purpose; a leak is kept short.
  if (slot < used - 1 || used == SLOTS) (void)kith_free(handles[slot]);
  return handles[slot] = (void *)handle;
}
static void *any(void) {
  switch (below(20)) {
  case 0: return NULL;
  case 1: return (void *)(uintptr_t)draw();
  case 2: return (void *)(uintptr_t)(draw() & 0xffffffffff);
  default: return used ? handles[below(used)] : NULL;
  }
}
// One of the last few, which mostly live.
static void *fresh(void) {
  return used && chance(70) ? handles[used - 1 - below(used < 12 ? used : 12)] : any();
}

static const char *const texts[] = {
    "", "a", "theme", "tab.1", "tab.", "gr\xc3\xbc\xc3\x9f", "\xc3\xa9", "e\xcc\x81", "\xff", "\xed\xa0\x80",
    "\xf0\x9f\xa7\xad", "kith.own", "com.example.fuzz", "$date", "null", "[1,2.5,{\"a\":true}]",
    "{\"$data\":\"AA==\"}", "{\"$date\":1}", "[[[[[[[[", "1e999", "\"\\ud800\"", "\n\t\x01", "bplist00",
    "a text of more than sixty-four bytes, so that it cannot be the key of any value in a store"};
static const char *text(void) {
  return chance(4) ? NULL : texts[below(sizeof texts / sizeof *texts)];
}
// At most with the zero byte at the end.
static size_t length_of(const char *text) {
  return chance(60) || !text ? KITH_TERMINATED : below((unsigned)strlen(text) + 2);
}
static kith_error *last;
static kith_error **place(void) { return chance(20) ? NULL : (keep(last), last = NULL, &last); }

static bool body(kith_transaction *transaction, void *context) {
  unsigned calls = below(6);
  (void)context;
  while (calls--) {
    const char *key = text();
    switch (below(7)) {
    case 0: keep(kith_transaction_get(transaction, key, length_of(key), NULL)); break;
    case 1: (void)kith_transaction_set(transaction, key, length_of(key), any(), NULL); break;
    case 2: (void)kith_transaction_expect(transaction, key, length_of(key), any(), NULL); break;
    case 3: keep(kith_transaction_snapshot(transaction, key, length_of(key), NULL)); break;
    case 4: (void)kith_free(transaction); break;
    case 5: (void)kith_transaction_commit(transaction, place()); break;
    case 6: (void)kith_store_commit(any(), body, NULL, place()); break;
    }
  }
  keep(transaction);
  return chance(80);
}

static kith_accounts *open_accounts(void) {
  char path[4200];
  // Rarely one that is open: that waits for the other to serve it, for ten seconds.
  static unsigned made;
  snprintf(path, sizeof path, "%s/%u", directory, chance(2) ? below(made + 1) : made++);
  kith_options options = {.size = chance(95) ? sizeof options : below(200), .directory = path,
                          .hosts = hosts, .port = KITH_ANY_PORT, 
                          .flags = KITH_NO_DISCOVERY | (chance(95) ? below(2) * KITH_NO_HISTORY : below(64) & ~8u)};
  if (options.size > sizeof options) options.size = sizeof options;
  return keep(kith_accounts_open(&options, place()));
}

static void step(void) {
  size_t length = 0;
  const char *given = text();
  switch (below(64)) {
  case 0: case 1: case 2: (void)kith_free(any()); break;
  case 3: kith_error_code(any()), kith_error_name(any()), kith_error_message(any()); break;
  case 4: kith_error_remedy(any()), kith_error_key(any(), &length), kith_error_path(any()); break;
  case 5: kith_error_tries_left(any()), kith_version(); break;
  case 6: keep(kith_value_new_bool(chance(50))); break;
  case 7: keep(kith_value_new_integer((int64_t)draw())); break;
  case 8: { uint64_t bits = draw(); double number; memcpy(&number, &bits, 8);
            keep(chance(50) ? kith_value_new_double(number) : kith_value_new_date(number)); break; }
  case 9: case 10: keep(kith_value_new_string(given, length_of(given))); break;
  case 11: keep(kith_value_new_data(given, given ? below((unsigned)strlen(given) + 1) : below(2))); break;
  case 12: keep(kith_value_new_array()); break;
  case 13: keep(kith_value_new_dictionary()); break;
  case 14: keep(kith_value_copy(any())); break;
  case 15: case 16: (void)kith_value_append(fresh(), fresh(), place()); break;
  case 17: case 18: (void)kith_value_put(fresh(), given, length_of(given), fresh(), place()); break;
  case 19: kith_value_type(any()), kith_value_get_bool(any(), true), kith_value_get_integer(any(), 1); break;
  case 20: kith_value_get_double(any(), 0), kith_value_get_date(any(), 0); break;
  case 21: { const char *got = kith_value_get_string(any(), &length);
             if (got && got[length]) abort();
             break; }
  case 22: { const char *got = kith_value_get_data(any(), &length);
             if (got && got[length]) abort();
             break; }
  case 23: keep(kith_value_at(any(), below(4))), kith_value_count(any()); break;
  case 24: kith_value_name_at(any(), below(4), &length); break;
  case 25: keep(kith_value_member(any(), given)); break;
  case 26: { void *one = any(), *other = any(); kith_value_equal(one, other); break; }
  case 27: { void *value = any();
             const char *json = kith_value_json(value, &length);
             kith_value *again = json ? kith_value_from_json(json, length, NULL) : NULL;
             // What a value prints, it reads, except two names that a dictionary takes for one.
             if (again && !kith_value_equal(value, again)) abort();
             kith_free(again);
             break; }
  case 28: { void *value = any();
             const void *bytes = kith_value_plist(value, &length);
             kith_value *again = bytes ? kith_value_from_plist(bytes, length, NULL) : NULL;
             if (again && !kith_value_equal(value, again)) abort();
             if (bytes && length < 4096) {
               char copy[4096];
               memcpy(copy, bytes, length), copy[draw() % length] ^= (char)(1 + below(255));
               kith_free(kith_value_from_plist(copy, length, NULL));
             }
             kith_free(again);
             break; }
  case 29: keep(kith_value_from_json(given, length_of(given), place())); break;
  case 30: if (chance(20)) open_accounts(); break;
  case 31: if (chance(5)) (void)kith_accounts_close(any(), place()); break;
  case 32: if (chance(20)) keep(kith_accounts_run(any(), place())); break;
  case 33: case 34: { kith_policy policy = {.size = sizeof policy, .keys = below(4) - 1};
             keep(kith_accounts_store(any(), chance(70) ? "com.example.fuzz" : given,
                                      chance(80) ? NULL : &policy, place())); break; }
  case 35: keep(kith_accounts_signed_in(any(), place())), keep(kith_accounts_known(any(), NULL)); break;
  case 36: keep(kith_accounts_status(any(), place())); break;
  case 37: if (chance(10)) keep(kith_accounts_watch_status(any(), place())); break;
  case 38: if (chance(10)) keep(kith_accounts_create_account(any(), given, place())); break;
  case 39: if (chance(10)) keep(kith_accounts_sign_in(any(), given, text(), "127.0.0.1:9", place())); break;
  case 40: if (chance(10)) keep(kith_accounts_sign_in_to(any(), given, place())); break;
  case 41: if (chance(10)) keep(kith_accounts_sign_out(any(), place())); break;
  case 42: if (chance(10)) keep(kith_accounts_invite(any(), chance(50) ? NULL : addresses + below(3), place())); break;
  case 43: { struct pollfd polled = {kith_task_fd(any()), POLLIN, 0}; poll(&polled, 1, 0); break; }
  case 44: keep(kith_task_next(any(), (int)below(3))); break;
  case 45: (void)kith_task_answer(any(), chance(50), place()); break;
  case 46: { void *task = any(); kith_task_is_done(task);
             if (chance(50)) kith_task_cancel(task);
             break; }
  case 47: { void *task = any(); kith_task_cancel(task); keep(kith_task_finish(task, place())); break; }
  case 48: case 49: keep(kith_store_get(any(), given, length_of(given), place())); break;
  case 50: kith_store_get_bool(any(), given, true), kith_store_get_integer(any(), given, 1),
           kith_store_get_double(any(), given, 1); break;
  case 51: keep(kith_store_keys(any(), place())),
           keep(kith_store_snapshot(any(), given, length_of(given), NULL)); break;
  case 52: (void)kith_store_set(any(), given, length_of(given), any(), place()); break;
  case 53: { const char *keys[] = {given, text()};
             const size_t lengths[] = {length_of(given), length_of(keys[1])};
             const kith_value *values[] = {any(), any()};
             (void)kith_store_set_each(any(), below(3), chance(95) ? keys : NULL, chance(50) ? lengths : NULL,
                                       values, place());
             break; }
  case 54: (void)kith_store_set_string(any(), given, text(), place()),
           (void)kith_store_set_bool(any(), text(), true, NULL); break;
  case 55: (void)kith_store_set_integer(any(), given, -1, place()),
           (void)kith_store_set_double(any(), given, 0.5, NULL),
           (void)kith_store_remove(any(), given, length_of(given), NULL); break;
  case 56: keep(kith_store_usage(any(), place())), keep(kith_store_hidden_entries(any(), NULL)),
           (void)kith_store_flush(any(), NULL); break;
  case 57: keep(kith_store_refusals(any(), place())), keep(kith_store_take_refusals(any(), below(3), NULL)); break;
  case 58: keep(kith_store_history(any(), given, length_of(given), below(3), place())),
           keep(kith_store_undo(any(), given, length_of(given), below(3), NULL));
           keep(kith_store_undo_transaction(any(), below(3), NULL)); break;
  case 59: keep(kith_store_sync_report(any(), place())),
           keep(kith_store_wait_until_synced(any(), (int)below(20), below(3), NULL)); break;
  case 60: (void)kith_store_commit(any(), chance(95) ? body : NULL, NULL, place()); break;
  case 61: { kith_transaction *transaction = keep(kith_store_begin(any(), place()));
             if (transaction) body(transaction, NULL);
             (void)kith_transaction_commit(any(), place()); break; }
  case 62: keep(kith_store_changes(any(), below(3), place())), kith_changes_fd(any()),
           kith_changes_have_ended(any()); break;
  case 63: { void *changes = any(), *change = keep(kith_changes_next(changes, 0));
             if (!change) change = any();
             kith_change_reason(change), kith_change_is_joined(change);
             kith_change_key(change, below(2), &length);
             keep(kith_change_old(change, 0)), keep(kith_change_new(change, below(2)));
             keep(kith_change_superseded(change)), kith_change_count(change); break; }
  }
}

int main(int count, char **arguments) {
  if (count < 3) return fprintf(stderr, "usage: fuzz DIRECTORY SECONDS [SEED]\n"), 64;
  snprintf(directory, sizeof directory, "%s", arguments[1]);
  uint64_t seed = count > 3 ? strtoull(arguments[3], NULL, 10) : (uint64_t)time(NULL) * 1000003 + (uint64_t)getpid();
  state = seed;
  printf("fuzz: seed %llu\n", (unsigned long long)seed);
  fflush(stdout);
  time_t end = time(NULL) + atoi(arguments[2]);
  unsigned long long steps = 0;
  kith_accounts *first = open_accounts();
  keep(kith_accounts_store(first, "com.example.fuzz", NULL, NULL));
  do {
    step();
    steps++;
  } while (time(NULL) < end);
  for (unsigned i = 0; i < used; i++) (void)kith_free(handles[i]);
  printf("fuzz: %llu calls\n", steps);
  return 0;
}
