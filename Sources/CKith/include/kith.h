/* kith.h: Kith for C and all languages that call C.
 *
 * The devices of a person's account share small key-value stores, without a server. A program opens
 * the accounts of a directory, takes a store, reads, writes, and hears of the other devices'
 * changes:
 *
 *   kith_error *error;
 *   kith_accounts *accounts = kith_accounts_open(NULL, &error);
 *   kith_store *store = kith_accounts_store(accounts, "com.example.Editor", NULL, &error);
 *   kith_store_set_string(store, "theme", "dark", &error);
 *
 * Handles. Every `kith_… *` is a handle: a number in the form of a pointer, never to be
 * dereferenced.
 *   - A function that returns a handle without `const` gives it to the caller, who ends it with
 *     kith_free(). A `const` one is borrowed: it ends with the handle that it was asked of.
 *   - NULL, a freed handle and a handle of another kind are found out: the call fails with
 *     KITH_INVALID_ARGUMENT, or returns what it returns for nothing. A handle's number is not used
 *     again.
 *   - A handle keeps what it needs: a store can be read after its accounts are freed, which closes
 *     them; see kith_accounts_close().
 *   - A process holds at most 16 million handles. With so many, functions return NULL for a new one,
 *     also for an error.
 *
 * Text is UTF-8. Text with a length may hold zero bytes; KITH_TERMINATED as its length means up to
 * the first zero byte. Text without a length ends there. A key may hold zero bytes, so functions
 * take a length with it; only the short ones for a bool, an integer, a double or a string, such as
 * kith_store_set_string(), take none. Returned text always ends with a zero byte that its length
 * does not count. Returned text and bytes belong to the handle that they were asked of, until that
 * is freed or changed. A function that returns none stores no length.
 *
 * Errors. A function that can fail returns false or NULL, and has a last argument `error`. If that
 * is not NULL, each call stores there: NULL if it succeeds, otherwise an error, which the caller
 * frees. A failed call has changed nothing, unless its code's text says so. Each function may fail
 * with KITH_INVALID_ARGUMENT, also where that is not named.
 *
 * Threads. Any thread may call any function with any handle, also at the same time. A call on a
 * handle that another thread frees ends as if it had come first. Kith never calls back on a thread
 * of its own. It has threads of its own from the first kith_accounts_open() on: after fork(), the
 * child must call nothing here, except through exec().
 *
 * Waiting. Functions that wait for disk or another program say so. Changes, and work that takes
 * long (a kith_task), tell of themselves by a file descriptor that any event loop can poll: it is
 * readable while there is something to take. Never read, write or close it; stop polling before
 * the free. If the process has no descriptor left, the function that needs one fails with
 * KITH_INPUT_OUTPUT.
 *
 * The interface only grows: structs begin with their size, and functions and constants keep their
 * meaning as long as the library is libkith.so.0.
 */
#ifndef KITH_H
#define KITH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The accounts of a directory, and the node that syncs them. */
typedef struct kith_accounts kith_accounts;
/* A key-value space of the account, shared by all its devices. */
typedef struct kith_store kith_store;
/* A property-list value. */
typedef struct kith_value kith_value;
/* Reads and writes that are accepted together, or not at all. */
typedef struct kith_transaction kith_transaction;
/* The changes of a store for one consumer. */
typedef struct kith_changes kith_changes;
/* One change of a store. */
typedef struct kith_change kith_change;
/* Work that takes long, with its events. */
typedef struct kith_task kith_task;
/* Why a call failed. */
typedef struct kith_error kith_error;

/* As a length: the text ends at its first zero byte. */
#define KITH_TERMINATED ((size_t)-1)

/* Returns the library's version, such as "1.0.0". It is valid for ever. */
const char *kith_version(void);

/* Ends a handle of any kind, and all that was borrowed of it.
 *
 * Accounts are closed as by kith_accounts_close(), without its error. A task is cancelled. A
 * transaction writes nothing. Returns whether the handle was there: false for NULL, and for one
 * that is borrowed or was freed before; then nothing has happened. */
bool kith_free(void *handle);

/* ---------------------------------------------------------------------------------------- Errors
 * */

/* The kinds of error. kith_error_name() gives the same as a text, such as "quotaExceeded". */
typedef enum kith_code {
  /* No error. */
  KITH_OK = 0,
  /* An argument is NULL, freed, of the wrong kind or not UTF-8, a struct's size or a flag is
   * unknown, or the call is not possible at this time. */
  KITH_INVALID_ARGUMENT = 1,

  /* Reading and writing. */

  /* The key is empty, not UTF-8, or longer than the policy allows. */
  KITH_INVALID_KEY = 10,
  /* The value is larger than the policy allows. */
  KITH_VALUE_TOO_LARGE = 11,
  /* The values would not all be shown. */
  KITH_QUOTA_EXCEEDED = 12,
  /* Stores cannot hold the value, it is nested too deeply, or the text is not one of a value. */
  KITH_UNSUPPORTED_VALUE = 13,
  /* The store identifier is empty, too long, holds control characters, or begins with "kith.". */
  KITH_INVALID_STORE_IDENTIFIER = 14,
  /* A limit of the policy is negative or too high, or the store is open with other limits. */
  KITH_INVALID_POLICY = 15,
  /* The account has as many stores as a node allows. */
  KITH_TOO_MANY_STORES = 16,
  /* A key does not show the value that the transaction expects. */
  KITH_UNEXPECTED_VALUE = 17,
  /* Others changed what the transaction read. Begin a new one. */
  KITH_CONFLICT = 18,
  /* The key shows a value that its type cannot read. */
  KITH_UNREADABLE = 19,
  /* The store was not opened. */
  KITH_UNKNOWN_STORE = 20,
  /* The accounts were closed. Or another program had the directory open and has ended, and within
   * 10 seconds none took its place. */
  KITH_CLOSED = 21,
  /* The node runs already. */
  KITH_ALREADY_RUNNING = 22,
  /* The call needs a running node. */
  KITH_NOT_RUNNING = 23,
  /* The time is over. The call may have had its effect. */
  KITH_TIMED_OUT = 24,
  /* The task was cancelled, or a transaction's body returned false. */
  KITH_CANCELLED = 25,

  /* Storage. */

  /* The disk is full. */
  KITH_DISK_FULL = 40,
  /* The file system or directory cannot be written. */
  KITH_READ_ONLY = 41,
  /* A file is damaged; it is never recreated silently. */
  KITH_DAMAGED = 42,
  /* The file was written by a newer version. */
  KITH_NEWER_SCHEMA = 43,
  /* The file was written by a version before the first release. */
  KITH_OLDER_SCHEMA = 44,
  /* A file is where a directory belongs, or the reverse, or it is a link. */
  KITH_WRONG_FILE_TYPE = 45,
  /* Another process has the directory open. */
  KITH_IN_USE = 46,
  /* The directory holds no device, or nobody is signed in. */
  KITH_MISSING = 47,
  /* The directory already holds a device. */
  KITH_ALREADY_EXISTS = 48,
  /* Modes or owner let others read secrets. */
  KITH_UNSAFE_PERMISSIONS = 49,
  /* A passphrase is needed or wrong. */
  KITH_PASSPHRASE = 50,
  /* Another error of the operating system. */
  KITH_INPUT_OUTPUT = 51,

  /* Account and network. */

  /* A device is not a member of the account. */
  KITH_NOT_A_MEMBER = 60,
  /* This device was revoked: it can read, but not write. */
  KITH_REVOKED = 61,
  /* The account has no such device, or this device cannot be changed in this way. */
  KITH_INVALID_DEVICE = 62,
  /* The recovery key belongs to another account, or is mistyped. */
  KITH_RECOVERY_KEY = 63,
  /* The pairing code is wrong, mistyped, used up or too old. */
  KITH_PAIRING_CODE = 64,
  /* The other side, or the person asked, declined. */
  KITH_DECLINED = 65,
  /* This device runs twice: its directory was copied. */
  KITH_CLONED = 66,
  /* This device was copied or restored too often to publish. */
  KITH_TOO_MANY_INCARNATIONS = 67,
  /* Two devices with equal vectors hold different states: a defect. */
  KITH_DIVERGED = 68,
  /* Removals were forgotten, or soon will be, that a device has not seen. */
  KITH_REMOVALS_UNSEEN = 69,
  /* Another device's clock differs too much from the time here. */
  KITH_CLOCKS_DIFFER = 70,
  /* The device stamps writes ahead of the time, so peers refuse them. */
  KITH_DATA_AHEAD = 71,
  /* An address cannot be listened on, or a peer cannot be reached. */
  KITH_NETWORK = 72,
  /* The other side of the control socket has the wrong identity, or broke the protocol. */
  KITH_CONTROL = 73,
  /* A name is empty, too long, or mistakable. */
  KITH_INVALID_NAME = 74,

  /* An error that this version of the header has no number for; see its name. */
  KITH_OTHER = 127
} kith_code;

/* Returns the kind of error; KITH_OK for NULL. */
kith_code kith_error_code(const kith_error *error);
/* Returns the code's name, such as "quotaExceeded"; "ok" for NULL. */
const char *kith_error_name(const kith_error *error);
/* Returns the reason and the remedy, for people, in one or more sentences; "" for NULL. It never
 * holds a value, and only names a key in kith_error_key(), which is private: do not log that. */
const char *kith_error_message(const kith_error *error);
/* Returns what to do: the message's sentences after the first, which may be none. */
const char *kith_error_remedy(const kith_error *error);
/* Returns the key concerned and, if `length` is not NULL, its bytes there; NULL if there is none. */
const char *kith_error_key(const kith_error *error, size_t *length);
/* Returns the file, directory or address concerned, or NULL. */
const char *kith_error_path(const kith_error *error);
/* Returns how many codes may still be tried, with KITH_PAIRING_CODE; otherwise, or if unknown, -1.
 * */
int kith_error_tries_left(const kith_error *error);

/* ---------------------------------------------------------------------------------------- Values
 * */

/* The types of values. */
typedef enum kith_type {
  /* No value: of NULL, or of a handle that is none of a value. */
  KITH_NONE = 0,
  KITH_BOOL = 1,
  /* A signed number of 64 bits. */
  KITH_INTEGER = 2,
  /* A floating-point number of 64 bits, infinities and NaN included. */
  KITH_DOUBLE = 3,
  KITH_STRING = 4,
  /* A point in time. */
  KITH_DATE = 5,
  KITH_DATA = 6,
  KITH_ARRAY = 7,
  /* Values by name, in order of the names' bytes. */
  KITH_DICTIONARY = 8
} kith_type;

/* Dates count seconds from the beginning of 2001 in UTC, as Apple's do; this is that moment in
 * Unix time: kith_value_new_date((double)time(NULL) - KITH_UNIX_2001). */
#define KITH_UNIX_2001 978307200

/* Make values. They return NULL only if a text is not UTF-8, a text or data is NULL and its length
 * is not 0, or `value` is no value. */
kith_value *kith_value_new_bool(bool value);
kith_value *kith_value_new_integer(int64_t value);
kith_value *kith_value_new_double(double value);
kith_value *kith_value_new_date(double seconds_since_2001);
kith_value *kith_value_new_string(const char *text, size_t length);
kith_value *kith_value_new_data(const void *bytes, size_t length);
/* Empty, to be filled with kith_value_append(). */
kith_value *kith_value_new_array(void);
/* Empty, to be filled with kith_value_put(). */
kith_value *kith_value_new_dictionary(void);
/* An equal value with a life of its own, such as of a borrowed one. A snapshot and its copies
 * cannot be changed. */
kith_value *kith_value_copy(const kith_value *value);

/* Adds a copy of an element at the end of an array. This ends what was borrowed of the array.
 * Fails with KITH_INVALID_ARGUMENT (a borrowed value cannot be changed), KITH_UNSUPPORTED_VALUE (the
 * containers would be nested too deep) or KITH_VALUE_TOO_LARGE (more than 64 MiB). */
bool kith_value_append(kith_value *array, const kith_value *element, kith_error **error);
/* Sets a dictionary's member to a copy of a value; NULL removes it. This ends what was borrowed of
 * the dictionary. Fails as kith_value_append() does, and with KITH_UNSUPPORTED_VALUE if the dictionary
 * has a canonically equivalent name. */
bool kith_value_put(kith_value *dictionary, const char *name, size_t length,
                    const kith_value *value, kith_error **error);

/* Returns the type; KITH_NONE for NULL. */
kith_type kith_value_type(const kith_value *value);
/* Return the content, or `otherwise` if the value is NULL or has another type. Numbers are read as
 * the other kind of number if that is exact. */
bool kith_value_get_bool(const kith_value *value, bool otherwise);
int64_t kith_value_get_integer(const kith_value *value, int64_t otherwise);
double kith_value_get_double(const kith_value *value, double otherwise);
/* In seconds since 2001; see KITH_UNIX_2001. */
double kith_value_get_date(const kith_value *value, double otherwise);
/* Return the content and, if `length` is not NULL, its bytes there; NULL if the value is NULL or
 * has another type. */
const char *kith_value_get_string(const kith_value *value, size_t *length);
const void *kith_value_get_data(const kith_value *value, size_t *length);

/* Returns the number of elements or members; 0 for other types. */
size_t kith_value_count(const kith_value *value);
/* Returns an element of an array, or the value of a dictionary's member in order of the names;
 * NULL if there is none. Borrowed. */
const kith_value *kith_value_at(const kith_value *value, size_t index);
/* Returns the name of a dictionary's member by its place; NULL if there is none. */
const char *kith_value_name_at(const kith_value *dictionary, size_t index, size_t *length);
/* Returns the value of a dictionary's member by its name, which ends at its first zero byte; NULL if
 * there is none. Borrowed. A name that holds a zero byte is found by kith_value_name_at(). */
const kith_value *kith_value_member(const kith_value *dictionary, const char *name);

/* Returns whether both are values and equal: of the same type, with the same bits and bytes. */
bool kith_value_equal(const kith_value *one, const kith_value *other);

/* Returns the value as compact JSON that restores each bit, as `kith get --json` prints it: dates
 * are {"$date":"2026-11-21T10:00:00Z"}, data {"$data":"base64"}; NULL if there is no value. The
 * text belongs to the value. */
const char *kith_value_json(const kith_value *value, size_t *length);
/* Reads JSON: that of kith_value_json(), or any other without null. A number without a fraction
 * and an exponent is an integer. Fails with KITH_UNSUPPORTED_VALUE, whose message has the place. */
kith_value *kith_value_from_json(const char *text, size_t length, kith_error **error);
/* Returns the value as a binary property list, as NSPropertyListSerialization and Python's plistlib
 * read it; NULL if there is no value. The bytes belong to the value. */
const void *kith_value_plist(const kith_value *value, size_t *length);
/* Reads a binary property list. Fails with KITH_UNSUPPORTED_VALUE. */
kith_value *kith_value_from_plist(const void *bytes, size_t length, kith_error **error);

/* -------------------------------------------------------------------------------------- Accounts
 * */

/* Bits of kith_options.flags. Others fail. */
enum {
  /* Look for no peers on the local network. */
  KITH_NO_DISCOVERY = 1 << 0,
  /* Keep, or do not keep, what keys showed before; without either, as the directory has it. Both
   * together fail. */
  KITH_KEEP_HISTORY = 1 << 1,
  KITH_NO_HISTORY = 1 << 2,
  /* Print a log to standard error; otherwise there is none. */
  KITH_LOG = 1 << 3
};

/* As kith_options.port: any port that is free. */
#define KITH_ANY_PORT (-1)

/* How to open accounts. Zero in any member but the first means the usual:
 *   kith_options options = {.size = sizeof options, .directory = "/srv/editor"}; */
typedef struct kith_options {
  /* sizeof(kith_options). */
  size_t size;
  /* The directory of the accounts, made if missing; NULL: that of `kith` and of all programs of
   * this user ($KITH_DIRECTORY, or kith below $XDG_DATA_HOME). */
  const char *directory;
  /* The addresses to listen on, ended by NULL; NULL: all; none before the end: it does not listen. */
  const char *const *hosts;
  /* Other devices to call, as host or host:port, ended by NULL; NULL: those that are known and
   * found. */
  const char *const *peers;
  /* The TCP port; 0: 4114. If it is taken, another one is used. */
  int32_t port;
  /* KITH_NO_DISCOVERY and others, joined by |. */
  uint32_t flags;
  /* The passphrase of the device's secrets; NULL: they have none. */
  const char *passphrase;
} kith_options;

/* A store's limits, the same in all programs of the account. 0 in a member: the usual limit. */
typedef struct kith_policy {
  /* sizeof(kith_policy). */
  size_t size;
  /* Of all values together; usually 1,048,576. */
  int64_t total_bytes;
  /* The number of keys; usually 1,024. */
  int64_t keys;
  /* The length of a key; usually 64. */
  int64_t key_bytes;
  /* The size of a value; usually 1,048,576. */
  int64_t value_bytes;
} kith_policy;

/* Opens the accounts of a directory; NULL as options: all usual.
 *
 * If another program has the directory open, such as `kith run`, this one is attached to it, and
 * its stores work alike. Blocks while the disk is read, up to 10 seconds while another program
 * starts or ends, and up to 30 more if its node must take writes that were made while nobody was
 * signed in. Fails with a storage code, KITH_NOT_A_MEMBER, KITH_NETWORK (a peer's address is
 * malformed, or there are more than 256), or KITH_TIMED_OUT or KITH_CONTROL (another program has the
 * directory open, and does not answer or is of another version). */
kith_accounts *kith_accounts_open(const kith_options *options, kith_error **error);

/* Syncs with other devices, on threads of the library, until the task is cancelled or freed or the
 * accounts are closed; then it is done. It is also done, with an error, if it cannot go on, such as
 * if it cannot listen after signing in. It has no events. A program without it reads and writes, but
 * exchanges nothing, unless another program does so for the directory.
 *
 * Blocks until it listens, or is attached to the program that does: usually some milliseconds, and
 * at most 10 seconds. If it is not so far then, the task goes on, and its error tells of a failure.
 * Fails with KITH_ALREADY_RUNNING, KITH_CLOSED, KITH_NETWORK (an address cannot be listened on) or a
 * storage code. */
kith_task *kith_accounts_run(kith_accounts *accounts, kith_error **error);

/* Makes all writes durable and closes the accounts: cancels the tasks of the accounts and their
 * stores, waits for them, and ends the sequences of changes. Blocks while the disk writes, and up to
 * 30 seconds for another program's node.
 *
 * From then on each function that takes the accounts or one of their stores fails with KITH_CLOSED,
 * but these: kith_store_get() and its like, kith_store_keys() and kith_store_snapshot() still read,
 * and a second kith_accounts_close() does nothing. A transaction that was begun still reads and
 * notes writes, but is not committed. What tasks and changes have can still be taken.
 *
 * Fails with a storage code or KITH_TIMED_OUT; the accounts are closed nevertheless. */
bool kith_accounts_close(kith_accounts *accounts, kith_error **error);

/* Returns a store of the account, and creates it with the first write. The identifier has 1 to 255
 * bytes, such as "com.example.Editor". NULL as policy: the usual limits. Each call gives a new
 * handle. The first one for an identifier blocks if another program has the directory open: until
 * that answers, at most 10 seconds. Fails with KITH_INVALID_STORE_IDENTIFIER, KITH_INVALID_POLICY,
 * KITH_TOO_MANY_STORES, KITH_CLOSED, KITH_TIMED_OUT or a storage code. */
kith_store *kith_accounts_store(kith_accounts *accounts, const char *identifier,
                                const kith_policy *policy, kith_error **error);

/* Returns the id of the account that is signed in, as a string of hexadecimal digits; NULL,
 * without an error, if nobody is. It never waits. Fails with KITH_CLOSED. */
kith_value *kith_accounts_signed_in(kith_accounts *accounts, kith_error **error);

/* Returns the accounts that can be signed in here: an array of dictionaries with "account",
 * "directory" and "isSignedIn". Fails with KITH_CLOSED or a storage code. */
kith_value *kith_accounts_known(kith_accounts *accounts, kith_error **error);

/* Returns the state of the node, its devices, peers, stores and problems: a dictionary, which as
 * JSON is what `kith status --json` prints. Blocks up to 30 seconds for another program's node.
 * Fails with KITH_CLOSED, KITH_NOT_RUNNING, KITH_TIMED_OUT or KITH_CONTROL. */
kith_value *kith_accounts_status(kith_accounts *accounts, kith_error **error);

/* Begins to watch the state: the task has an event {"event": "status", "status": …} at once and
 * after each change, at most ten in a second; a slow consumer gets the newest. It is done when the
 * accounts are closed. Fails with KITH_CLOSED. */
kith_task *kith_accounts_watch_status(kith_accounts *accounts, kith_error **error);

/* The following tasks change who is signed in. The stores stay valid, and tell of changes with the
 * reason KITH_INITIAL_SYNC_CHANGE or KITH_ACCOUNT_CHANGE. The functions themselves fail with
 * KITH_CLOSED; the other codes are those of kith_task_finish(). */

/* Creates an account, and signs in to it; what was written here so far becomes its first data.
 * `name` is this device's name for people, of 1 to 64 bytes.
 *   question {"event": "recoveryKey", "recoveryKey": "…", "account": "…", "device": "…"}: show the
 *   key
 *     to a person, to be written down: it is stored nowhere. Yes creates the account.
 *   result {"account": "…", "device": "…", "name": "…", "recoveryKey": "…"}
 * Fails with KITH_DECLINED, KITH_INVALID_NAME, KITH_PASSPHRASE or a storage code. */
kith_task *kith_accounts_create_account(kith_accounts *accounts, const char *name,
                                        kith_error **error);

/* Joins an account with a new device by another device's short code or token, and signs in.
 * `address` is the inviting device's, as host or host:port; NULL: the token's, or found on the
 * local network.
 *   event {"event": "progress", "stores": n, "pulledStores": n, "changeSets": n}
 *   question {"event": "confirm", "inviter": {"id", "name", "fingerprint", "address"},
 *     "fingerprint": "…"}: have people compare both fingerprints on both devices. A token alone is
 *     proof enough for a program that trusts its source. Yes joins.
 *   result {"account": "…", "device": "…", "name": "…"}
 * When it is done the stores show all data of the account. Fails with KITH_PAIRING_CODE,
 * KITH_DECLINED, KITH_NETWORK, KITH_INVALID_NAME, KITH_TIMED_OUT, KITH_TOO_MANY_STORES or a storage
 * code. The device has joined nevertheless, and must not join again, if the inviting device or the
 * stores do not follow in time (KITH_TIMED_OUT), or if the account does not take the writes made here
 * while nobody was signed in. Then kith_accounts_signed_in() is the account, at the latest once the
 * stores follow. Otherwise nobody was signed in or out. */
kith_task *kith_accounts_sign_in(kith_accounts *accounts, const char *code, const char *name,
                                 const char *address, kith_error **error);

/* Signs in to an account of kith_accounts_known(), by its id. Fails with KITH_MISSING,
 * KITH_TIMED_OUT, KITH_TOO_MANY_STORES or a storage code. The account is signed in if it only does not
 * take the writes made here while nobody was. */
kith_task *kith_accounts_sign_in_to(kith_accounts *accounts, const char *account,
                                    kith_error **error);

/* Signs out: the stores show what is local to this host. The account's data stays on this host and
 * on the other devices. Fails with KITH_TIMED_OUT or a storage code. */
kith_task *kith_accounts_sign_out(kith_accounts *accounts, kith_error **error);

/* Invites one device into the account, for at most ten minutes. `addresses` are names or addresses
 * to name in the invitation, ended by NULL; NULL: this host's. The node must run, here or in
 * another program.
 *   event {"event": "invitation", "code": "…", "token": "…", "addresses": […]}: show the code or
 *   hand
 *     over the token.
 *   question {"event": "candidate", "device": {"id", "name", "fingerprint", "address"}}: yes lets
 *     it in. No ends the invitation (KITH_DECLINED). If the device goes meanwhile, the task fails
 *     once you answer.
 *   result {"device": "…"}: the id of the device that joined.
 * Fails with KITH_MISSING while nobody is signed in, KITH_NOT_RUNNING, KITH_PAIRING_CODE,
 * KITH_DECLINED, KITH_NETWORK, KITH_REVOKED, KITH_CONTROL or a storage code. */
kith_task *kith_accounts_invite(kith_accounts *accounts, const char *const *addresses,
                                kith_error **error);

/* ----------------------------------------------------------------------------------------- Tasks
 * */

/* Returns the descriptor that is readable while an event waits or the task is done; -1 if there is
 * no such task. See "Waiting" above. */
int kith_task_fd(const kith_task *task);
/* Returns the next event, a dictionary with "event" and what the function that began the task
 * names; NULL if none comes in time, or none can come any more. `timeout_milliseconds` is the
 * longest wait; 0: none, negative: no limit. At most 64 events wait; then the oldest that is no
 * question goes. */
kith_value *kith_task_next(kith_task *task, int timeout_milliseconds);
/* Answers the oldest question that has no answer yet. Fails with KITH_INVALID_ARGUMENT if there is
 * none. */
bool kith_task_answer(kith_task *task, bool yes, kith_error **error);
/* Asks the task to end soon with KITH_CANCELLED. Returns at once. */
void kith_task_cancel(kith_task *task);
/* Returns whether the task has its result or error. */
bool kith_task_is_done(const kith_task *task);
/* Answers no to the task's questions, blocks until it is done, and returns its result: a dictionary,
 * empty if it has nothing to say. Fails with the task's error: one that the function that began it
 * names, or KITH_CANCELLED if it was cancelled or the accounts were closed before its end. May be
 * called again. */
kith_value *kith_task_finish(kith_task *task, kith_error **error);

/* ---------------------------------------------------------------------------------------- Stores
 * */

/* Reading takes from memory and never waits. */

/* Returns the value that a key shows; NULL, without an error, if it shows none. Fails with
 * KITH_INVALID_KEY if the key is not UTF-8. */
kith_value *kith_store_get(kith_store *store, const char *key, size_t length, kith_error **error);
/* Return what a key shows, or `otherwise` if it shows nothing of that type, or the call is wrong.
 * Numbers are read as by kith_value_get_integer(). The key ends at its first zero byte. */
bool kith_store_get_bool(kith_store *store, const char *key, bool otherwise);
int64_t kith_store_get_integer(kith_store *store, const char *key, int64_t otherwise);
double kith_store_get_double(kith_store *store, const char *key, double otherwise);
/* Returns the keys that show a value, in order of their bytes: an array of strings. */
kith_value *kith_store_keys(kith_store *store, kith_error **error);
/* Returns what the keys with a prefix show at one moment: a dictionary by their whole keys; NULL
 * or "" as prefix: all keys. Fails with KITH_INVALID_KEY if the prefix is not UTF-8. */
kith_value *kith_store_snapshot(kith_store *store, const char *prefix, size_t length,
                                kith_error **error);

/* Writing shows at once. It is durable soon after, while the node runs, and otherwise on return;
 * kith_store_flush() waits for that. If another program has the directory open, a write blocks
 * until that accepts it: usually under a millisecond, at most 30 seconds (KITH_TIMED_OUT: it may
 * have been accepted), and 10 seconds for another program to take its place. Writes fail with
 * KITH_INVALID_KEY, KITH_VALUE_TOO_LARGE, KITH_QUOTA_EXCEEDED, KITH_UNSUPPORTED_VALUE,
 * KITH_REVOKED, KITH_CLOSED, KITH_TIMED_OUT or a storage code. */

/* Sets a key's value; NULL removes the key. */
bool kith_store_set(kith_store *store, const char *key, size_t length, const kith_value *value,
                    kith_error **error);
/* Set a key that ends at its first zero byte. */
bool kith_store_set_bool(kith_store *store, const char *key, bool value, kith_error **error);
bool kith_store_set_integer(kith_store *store, const char *key, int64_t value, kith_error **error);
bool kith_store_set_double(kith_store *store, const char *key, double value, kith_error **error);
/* The text, too, ends at its first zero byte; NULL fails. */
bool kith_store_set_string(kith_store *store, const char *key, const char *text,
                           kith_error **error);
/* Sets keys, each by itself; a NULL among the values removes its key. NULL as `lengths`: all keys
 * end at their first zero byte. If an argument is wrong or no store can hold a value, nothing is
 * written. If the store refuses some keys, the others are written, and it fails with the error of
 * the first. kith_store_commit() writes all or none. It may wait up to 20 ms for other writes before
 * it is published; kith_store_flush() ends that. */
bool kith_store_set_each(kith_store *store, size_t count, const char *const *keys,
                         const size_t *lengths, const kith_value *const *values,
                         kith_error **error);
/* Removes a key, if it is there; the quota never refuses this. */
bool kith_store_remove(kith_store *store, const char *key, size_t length, kith_error **error);
/* Blocks until all writes so far are durable: for the disk, or up to 30 seconds for another
 * program's node. Fails with KITH_CLOSED, KITH_TIMED_OUT, or a storage code if a write to a store of
 * the directory could not be made durable, now or since the last call. */
bool kith_store_flush(kith_store *store, kith_error **error);

/* The following ask the node; if that is another program's, they block up to 5 seconds
 * (KITH_TIMED_OUT). They fail with KITH_CLOSED, too. Devices are named by their ids, which
 * kith_accounts_status() has as well. */

/* Returns what the store uses: {"bytes", "keys", "policy": {"totalBytes", "keys", "keyBytes",
 * "valueBytes"}}. */
kith_value *kith_store_usage(kith_store *store, kith_error **error);
/* Returns the newest writes that the quota hides: an array of {"key", "value", "bytes", "device",
 * "written": date}. */
kith_value *kith_store_hidden_entries(kith_store *store, kith_error **error);
/* Returns the transactions that were accepted while offline and did not fit later, oldest first: an
 * array of {"number", "reason": "quota" or "initialSync", "written": date, "writes": [{"key", and
 * "value" unless the write removed the key}]}. They are kept until they are taken; beyond a
 * limit, only the newest. */
kith_value *kith_store_refusals(kith_store *store, kith_error **error);
/* Removes the refusals up to a number (0: all), and returns them. Fails with a storage code, too.
 * After KITH_TIMED_OUT they may be removed or not. */
kith_value *kith_store_take_refusals(kith_store *store, uint64_t through, kith_error **error);
/* Returns what a key (NULL: every key) showed before on this device, newest first, at most `limit`
 * (0: all): an array of {"number", "transaction": the number of the first value that ended with it,
 * "key", "value" unless it was missing, "ended": date, "endedBy": device, unless it was the quota}. */
kith_value *kith_store_history(kith_store *store, const char *key, size_t length, size_t limit,
                               kith_error **error);
/* Makes a key show a past value again: that of a number (0: the newest). Blocks until that is
 * durable. Returns the past value as kith_store_history() has it; NULL, without an error, if there
 * is none. Fails as a write. */
kith_value *kith_store_undo(kith_store *store, const char *key, size_t length, uint64_t number,
                            kith_error **error);
/* Makes all keys whose values ended together show those values again, in one transaction: the values
 * with this "transaction". Otherwise as kith_store_undo(). Returns an array of the past values; it is
 * empty if none are kept. */
kith_value *kith_store_undo_transaction(kith_store *store, uint64_t transaction,
                                        kith_error **error);
/* Returns who has what: {"complete": [devices that have all of this device's writes], "incomplete":
 * [the other devices], "hasUnpublishedWrites", "isComplete"}. */
kith_value *kith_store_sync_report(kith_store *store, kith_error **error);
/* Begins to wait until all other devices have this device's writes, or so many of them
 * (`devices`; 0: all). `timeout_milliseconds` is the longest wait; negative: no limit. The result is
 * as of kith_store_sync_report(), also after the time is over. The task fails as kith_store_flush().
 * */
kith_task *kith_store_wait_until_synced(kith_store *store, int timeout_milliseconds,
                                        unsigned devices, kith_error **error);

/* ---------------------------------------------------------------------------------- Transactions
 * */

/* A transaction reads the store as it was when it began, with its own writes applied, and notes
 * what it reads. If anything of that has changed before its writes are accepted, it writes nothing
 * (KITH_CONFLICT). So no update is lost among the programs of this host. Between devices there is
 * no lock: if two write one key before either hears of the other, the later write wins.
 *
 * A transaction is for one thread at a time. */

/* Called with a transaction that is valid until it returns. Returns whether to commit. */
typedef bool (*kith_body)(kith_transaction *transaction, void *context);

/* Calls the body on this thread, and commits its writes, if it returns true. If others changed
 * what it read, it is called again, 1,000 times in all; so let it compute, and act afterwards. It
 * must return: no longjmp() and no C++ exception may leave it. Within it, kith_store_commit() fails
 * with KITH_INVALID_ARGUMENT for each store, and the body must not wait for another thread's: that
 * might wait for ever. Blocks until the writes are durable. Fails as a write, with KITH_CONFLICT, or
 * with KITH_CANCELLED if the body returned false. */
bool kith_store_commit(kith_store *store, kith_body body, void *context, kith_error **error);

/* Begins a transaction that the program commits itself, and repeats itself in a loop of its own.
 * Fails with KITH_CLOSED. */
kith_transaction *kith_store_begin(kith_store *store, kith_error **error);
/* Commits it and blocks until its writes are durable. Fails as a write, or with KITH_CONFLICT:
 * begin a new one. Either way the transaction is over, and only to be freed. */
bool kith_transaction_commit(kith_transaction *transaction, kith_error **error);

/* The following fail with KITH_INVALID_KEY if the key or prefix is not UTF-8, and with
 * KITH_INVALID_ARGUMENT once the transaction is over. */

/* Returns the value that a key shows in the transaction; NULL, without an error, if it shows none.
 * */
kith_value *kith_transaction_get(kith_transaction *transaction, const char *key, size_t length,
                                 kith_error **error);
/* As kith_store_snapshot(), in the transaction. It conflicts also if such a key comes or goes. */
kith_value *kith_transaction_snapshot(kith_transaction *transaction, const char *prefix,
                                      size_t length, kith_error **error);
/* Fails with KITH_UNEXPECTED_VALUE unless a key shows a value; NULL expects that it shows none. The
 * value counts as read. */
bool kith_transaction_expect(kith_transaction *transaction, const char *key, size_t length,
                             const kith_value *value, kith_error **error);
/* Sets a key's value; NULL removes the key. The commit checks the limits. */
bool kith_transaction_set(kith_transaction *transaction, const char *key, size_t length,
                          const kith_value *value, kith_error **error);

/* --------------------------------------------------------------------------------------- Changes
 * */

/* Why a store's values changed. */
typedef enum kith_reason {
  /* No change: of NULL. */
  KITH_NO_REASON = 0,
  /* This program wrote; only with KITH_OWN_WRITES. */
  KITH_OWN_WRITE = 1,
  /* Another device or program wrote, or a write of this one could not be made durable. */
  KITH_EXTERNAL_CHANGE = 2,
  /* Joining or signing in brought the account's data. */
  KITH_INITIAL_SYNC_CHANGE = 3,
  /* The quota changed the shown values, or refused a draft: see kith_store_refusals(). */
  KITH_QUOTA_VIOLATION_CHANGE = 4,
  /* The store belongs to another account now. */
  KITH_ACCOUNT_CHANGE = 5
} kith_reason;

/* Bits of the flags of kith_store_changes(). Others fail. */
enum {
  /* Tell of this program's own writes too. */
  KITH_OWN_WRITES = 1 << 0
};

/* Returns the changes from now on: of other devices and programs, by signing in, and by the quota.
 *
 * Take them before reading, to miss none: applied in order over what the store showed then,
 * together with the program's own writes, they give what it shows. At most 64 wait; then the
 * newest are joined, and nothing is lost. Fails with KITH_CLOSED. */
kith_changes *kith_store_changes(kith_store *store, uint32_t flags, kith_error **error);
/* Returns the descriptor that is readable while a change waits or the changes have ended; -1 if
 * there are no such changes. See "Waiting" above. */
int kith_changes_fd(const kith_changes *changes);
/* Returns the next change; NULL if none comes in time, or the changes have ended.
 * `timeout_milliseconds` is the longest wait; 0: none, negative: no limit. */
kith_change *kith_changes_next(kith_changes *changes, int timeout_milliseconds);
/* Returns whether the accounts are closed and every change was taken. */
bool kith_changes_have_ended(const kith_changes *changes);

/* Returns the cause; of joined changes, the one that kith_reason has last. */
kith_reason kith_change_reason(const kith_change *change);
/* Returns the number of changed keys. They are in order of their bytes. */
size_t kith_change_count(const kith_change *change);
/* Returns a changed key and, if `length` is not NULL, its bytes there; NULL if there is none. */
const char *kith_change_key(const kith_change *change, size_t index, size_t *length);
/* Return what the key showed before, and what it shows since; NULL if nothing. Borrowed. */
const kith_value *kith_change_old(const kith_change *change, size_t index);
const kith_value *kith_change_new(const kith_change *change, size_t index);
/* Returns the keys of this program's writes that lost: an array of strings. Borrowed. */
const kith_value *kith_change_superseded(const kith_change *change);
/* Returns whether changes were joined because the consumer was slow. */
bool kith_change_is_joined(const kith_change *change);

#ifdef __cplusplus
}
#endif

#endif
