/* Keeps a device in sync, and prints what other devices write, out of an event loop of its own: here
 * poll(), with standard input as another source. Each line KEY=TEXT that is typed is written.
 *
 *   poll DIRECTORY [PEER…]
 */
#include <kith.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

static int failed(kith_error *error) {
  fprintf(stderr, "%s: %s\n", kith_error_name(error), kith_error_message(error));
  kith_free(error);
  return 1;
}

static void print(const kith_change *change) {
  for (size_t i = 0; i < kith_change_count(change); i++) {
    kith_value *now = kith_value_copy(kith_change_new(change, i));
    printf("%s: %s\n", kith_change_key(change, i, NULL), now ? kith_value_json(now, NULL) : "removed");
    kith_free(now);
  }
  fflush(stdout);
}

int main(int count, char **arguments) {
  if (count < 2) return fprintf(stderr, "usage: poll DIRECTORY [PEER...]\n"), 64;
  kith_error *error;
  kith_options options = {.size = sizeof options, .directory = arguments[1]};
  if (count > 2) options.peers = (const char *const *)arguments + 2;
  kith_accounts *accounts = kith_accounts_open(&options, &error);
  if (!accounts) return failed(error);
  kith_store *store = kith_accounts_store(accounts, "com.example.Editor", NULL, &error);
  kith_changes *changes = store ? kith_store_changes(store, 0, &error) : NULL;
  kith_task *node = changes ? kith_accounts_run(accounts, &error) : NULL;
  if (!node) return failed(error);

  enum { CHANGES, NODE, INPUT };
  struct pollfd polled[] = {
      {kith_changes_fd(changes), POLLIN, 0}, {kith_task_fd(node), POLLIN, 0}, {0, POLLIN, 0}};
  while (poll(polled, 3, -1) > 0) {
    if (polled[CHANGES].revents) {
      kith_change *change;
      while ((change = kith_changes_next(changes, 0))) {
        print(change);
        kith_free(change);
      }
    }
    if (polled[NODE].revents && kith_task_is_done(node)) break;
    if (polled[INPUT].revents) {
      char line[256], *text;
      if (!fgets(line, sizeof line, stdin)) break;
      line[strcspn(line, "\n")] = 0;
      if (!(text = strchr(line, '='))) continue;
      *text++ = 0;
      if (!kith_store_set_string(store, line, text, &error)) failed(error);
    }
  }
  kith_free(changes);
  kith_free(store);
  if (!kith_accounts_close(accounts, &error)) return failed(error);
  kith_value *end = kith_task_finish(node, &error);
  int status = end ? 0 : failed(error);
  kith_free(end);
  kith_free(node);
  kith_free(accounts);
  return status;
}
