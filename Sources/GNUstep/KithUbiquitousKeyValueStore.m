#import "KithUbiquitousKeyValueStore.h"
#import "KithPropertyList.h"

NSString *const NSUbiquitousKeyValueStoreChangedKeysKey = @"NSUbiquitousKeyValueStoreChangedKeysKey";

/* Changes are gathered for so long, from the first on. */
static const NSTimeInterval gatheringTime = 0.05;
/* Further refused keys are only logged. */
static const NSUInteger refusedKeysLimit = 1024;
/* Before syncing that failed begins again: at first, and at most. */
static const NSTimeInterval firstWait = 1, longestWait = 60;

/* The store of the program, which all objects share; `store` is NULL if it cannot be used. */
static kith_accounts *accounts;
static kith_store *store;
static BOOL isConfigured;
/* Has the values if `store` is NULL. */
static NSMutableDictionary *memory;
/* The last logged failure: programs synchronize after every write, and a failing disk is logged once. */
static kith_code lastFailure;
static NSLock *lock;

// ------------------------------------------------------------------------------------- opening

static NSString *
setting(const char *variable, NSString *key)
{
  const char *text = getenv(variable);

  return text != NULL && *text != 0 ? [NSString stringWithUTF8String: text]
    : [[NSUserDefaults standardUserDefaults] stringForKey: key];
}

/* Ends with NULL, and lasts as long as the texts; NULL if there are none. */
static const char *const *
textsOfSetting(NSString *key)
{
  NSArray *texts = [[NSUserDefaults standardUserDefaults] stringArrayForKey: key];
  NSUInteger index, count = [texts count];
  const char **all = [[NSMutableData dataWithLength: (count + 1) * sizeof(char *)] mutableBytes];

  for (index = 0; index < count; index++)
    {
      all[index] = [[texts objectAtIndex: index] UTF8String];
    }
  return count > 0 ? all : NULL;
}

/* That of a program that did not name its store. */
static NSString *
ownDirectory(NSString *program)
{
  const char *home = getenv("XDG_DATA_HOME");
  NSString *data = home != NULL && *home == '/' ? [NSString stringWithUTF8String: home]
    : [NSHomeDirectory() stringByAppendingPathComponent: @".local/share"];

  return [[data stringByAppendingPathComponent: program] stringByAppendingPathComponent: @"kith"];
}

/* Logs and frees an error. */
static void
report(NSString *what, kith_error *error)
{
  const char *path = kith_error_path(error);

  NSLog(@"%@: %s%s%s", what, path ?: "", path ? ": " : "", kith_error_message(error));
  kith_free(error);
}

static void
openStore(void)
{
  NSUserDefaults *defaults = [NSUserDefaults standardUserDefaults];
  NSString *program = [[NSProcessInfo processInfo] processName];
  NSString *identifier = setting("KITH_STORE_IDENTIFIER", @"KithStoreIdentifier")
    ?: [[NSBundle mainBundle] bundleIdentifier];
  NSString *directory = setting("KITH_DIRECTORY", @"KithDirectory");
  kith_options options = {sizeof options};
  kith_error *error = NULL;

  isConfigured = [identifier length] > 0;
  if (!isConfigured)
    {
      identifier = program;
      directory = directory ?: ownDirectory(program);
      NSLog(@"The program did not say which store it means. It gets one of its own, and synchronize is "
        @"NO. Set the default KithStoreIdentifier, or KITH_STORE_IDENTIFIER, or give it a bundle "
        @"identifier.");
    }
  options.directory = [[directory stringByExpandingTildeInPath] fileSystemRepresentation];
  options.hosts = textsOfSetting(@"KithHosts");
  options.peers = textsOfSetting(@"KithPeers");
  if ([defaults objectForKey: @"KithPort"] != nil)
    {
      options.port = [defaults integerForKey: @"KithPort"] ?: KITH_ANY_PORT;
    }
  if ([defaults objectForKey: @"KithDiscovery"] != nil && ![defaults boolForKey: @"KithDiscovery"])
    {
      options.flags |= KITH_NO_DISCOVERY;
    }
  if ([defaults boolForKey: @"KithLog"])
    {
      options.flags |= KITH_LOG;
    }
  options.passphrase = getenv("KITH_PASSPHRASE");
  accounts = kith_accounts_open(&options, &error);
  if (accounts != NULL)
    {
      store = kith_accounts_store(accounts, [identifier UTF8String], NULL, &error);
    }
  if (store == NULL)
    {
      report(@"The store cannot be used; new values last until the program ends", error);
      memory = [[NSMutableDictionary alloc] init];
    }
}

// -------------------------------------------------------------------------------------- reasons

static NSNumber *
reasonOfChange(kith_reason reason)
{
  switch (reason)
    {
      case KITH_INITIAL_SYNC_CHANGE:
        return [NSNumber numberWithInt: NSUbiquitousKeyValueStoreInitialSyncChange];
      case KITH_QUOTA_VIOLATION_CHANGE:
        return [NSNumber numberWithInt: NSUbiquitousKeyValueStoreQuotaViolationChange];
      case KITH_ACCOUNT_CHANGE:
        return [NSNumber numberWithInt: NSUbiquitousKeyValueStoreAccountChange];
      default:
        return [NSNumber numberWithInt: NSUbiquitousKeyValueStoreServerChange];
    }
}

/* The keys of all writes of a refusal. */
static NSArray *
keysOfRefusal(NSDictionary *refusal)
{
  return [[refusal objectForKey: @"writes"] valueForKey: @"key"];
}

static NSArray *
refusals(void)
{
  kith_value *value = kith_store_refusals(store, NULL);
  NSArray *all = KithObject(value);

  kith_free(value);
  return all;
}

/* Removes the refusals that were told. Apple's class cannot ask for them. */
static void
takeRefusals(NSDictionary *last)
{
  unsigned long long number = [[last objectForKey: @"number"] unsignedLongLongValue];

  if (number > 0)
    {
      kith_free(kith_store_take_refusals(store, number, NULL));
    }
}

@interface KithUbiquitousKeyValueStore (Private)
- (void) forModes: (SEL)selector descriptor: (int)descriptor;
- (void) sync;
- (void) gather;
- (void) post;
- (void) postOldRefusals;
- (void) postRefused;
- (void) post: (NSNumber *)reason keys: (NSArray *)keys;
- (void) refuse: (NSString *)key;
@end

/* Syncs for as long as the process lives, on the run loop of the thread that opened the store. */
@interface KithSyncing : NSObject <RunLoopEvents>
{
  kith_task *_task;
  NSTimeInterval _wait;
}
- (void) begin;
- (void) beginAgainAfter: (kith_error *)error;
@end

static NSArray *
modes(void)
{
  return [NSArray arrayWithObjects: NSDefaultRunLoopMode, @"NSModalPanelRunLoopMode",
    @"NSEventTrackingRunLoopMode", nil];
}

static void
watch(NSRunLoop *loop, int descriptor, id <RunLoopEvents> watcher)
{
  for (NSString *mode in modes())
    {
      [loop addEvent: (void *)(intptr_t)descriptor type: ET_RDESC watcher: watcher forMode: mode];
    }
}

static void
unwatch(NSRunLoop *loop, int descriptor)
{
  for (NSString *mode in modes())
    {
      [loop removeEvent: (void *)(intptr_t)descriptor type: ET_RDESC forMode: mode all: YES];
    }
}

@implementation KithSyncing

- (void) begin
{
  kith_error *error = NULL;

  _task = kith_accounts_run(accounts, &error);
  if (_task == NULL)
    {
      [self beginAgainAfter: error];
      return;
    }
  watch([NSRunLoop currentRunLoop], kith_task_fd(_task), self);
}

/* An address may become free: begins again after a wait, unless the accounts were closed. Frees the
   error. */
- (void) beginAgainAfter: (kith_error *)error
{
  if (kith_error_code(error) == KITH_CLOSED)
    {
      kith_free(error);
      return;
    }
  report(@"The store does not reach other devices now", error);
  _wait = _wait > 0 ? MIN(2 * _wait, longestWait) : firstWait;
  [self performSelector: @selector(begin) withObject: nil afterDelay: _wait inModes: modes()];
}

- (void) receivedEvent: (void *)data
                  type: (RunLoopEventType)type
                 extra: (void *)extra
               forMode: (NSString *)mode
{
  kith_error *error = NULL;

  if (!kith_task_is_done(_task))
    {
      return;
    }
  unwatch([NSRunLoop currentRunLoop], (int)(intptr_t)data);
  kith_free(kith_task_finish(_task, &error));
  kith_free(_task);
  _task = NULL;
  if (error != NULL)
    {
      [self beginAgainAfter: error];
    }
}

@end

@implementation KithUbiquitousKeyValueStore

+ (void) initialize
{
  if (lock == nil)
    {
      lock = [[NSLock alloc] init];
    }
}

- (id) init
{
  if ((self = [super init]) == nil)
    {
      return nil;
    }
  _thread = [[NSThread currentThread] retain];
  _loop = [[NSRunLoop currentRunLoop] retain];
  _keysByReason = [[NSMutableDictionary alloc] init];
  _reasons = [[NSMutableArray alloc] init];
  _refusedKeys = [[NSMutableArray alloc] init];
  [lock lock];
  if (store == NULL && memory == nil)
    {
      openStore();
      if (store != NULL)
        {
          // Kept for ever: the store syncs as long as the process lives.
          [[[KithSyncing alloc] init] begin];
        }
    }
  [lock unlock];
  // Before any read, so that no change is missed.
  _changes = kith_store_changes(store, 0, NULL);
  if (_changes != NULL)
    {
      watch(_loop, kith_changes_fd(_changes), self);
      [self performSelector: @selector(postOldRefusals)
                 withObject: nil
                 afterDelay: 0
                    inModes: modes()];
    }
  return self;
}

- (void) dealloc
{
  if (_changes != NULL)
    {
      unwatch(_loop, kith_changes_fd(_changes));
      kith_free(_changes);
    }
  [_refusedKeys release];
  [_reasons release];
  [_keysByReason release];
  [_loop release];
  [_thread release];
  [super dealloc];
}

// ------------------------------------------------------------------------------------- reading

/* The bytes of a key; nil if it is nil or holds half a surrogate pair, which no store's key does. */
static NSData *
keyBytes(NSString *aKey)
{
  return [aKey dataUsingEncoding: NSUTF8StringEncoding];
}

- (id) objectForKey: (NSString *)aKey
{
  NSData *key = keyBytes(aKey);
  kith_value *value;
  id object;

  if (store == NULL)
    {
      @synchronized(memory)
        {
          return [[[memory objectForKey: aKey] retain] autorelease];
        }
    }
  value = kith_store_get(store, [key bytes], [key length], NULL);
  object = KithObject(value);
  kith_free(value);
  return object;
}

- (NSDictionary *) dictionaryRepresentation
{
  kith_value *value;
  NSDictionary *all;

  if (store == NULL)
    {
      @synchronized(memory)
        {
          return [NSDictionary dictionaryWithDictionary: memory];
        }
    }
  value = kith_store_snapshot(store, NULL, 0, NULL);
  all = KithObject(value);
  kith_free(value);
  return all;
}

- (NSString *) stringForKey: (NSString *)aKey
{
  return KithString([self objectForKey: aKey]);
}

static id
ofClass(id object, Class class)
{
  return [object isKindOfClass: class] ? object : nil;
}

- (NSArray *) arrayForKey: (NSString *)aKey
{
  return ofClass([self objectForKey: aKey], [NSArray class]);
}

- (NSDictionary *) dictionaryForKey: (NSString *)aKey
{
  return ofClass([self objectForKey: aKey], [NSDictionary class]);
}

- (NSData *) dataForKey: (NSString *)aKey
{
  return ofClass([self objectForKey: aKey], [NSData class]);
}

- (long long) longLongForKey: (NSString *)aKey
{
  return KithLongLong([self objectForKey: aKey]);
}

- (double) doubleForKey: (NSString *)aKey
{
  return KithDouble([self objectForKey: aKey]);
}

- (BOOL) boolForKey: (NSString *)aKey
{
  return KithBool([self objectForKey: aKey]);
}

// ------------------------------------------------------------------------------------- writing

- (void) reportFailure: (kith_error *)error
{
  kith_code code = kith_error_code(error);

  if (code == lastFailure)
    {
      kith_free(error);
      return;
    }
  lastFailure = code;
  report(@"The store cannot write", error);
}

/* As in Apple's class, a refusal is announced, not returned. */
- (void) report: (kith_error *)error ofKey: (NSString *)aKey isRemoval: (BOOL)isRemoval
{
  kith_code code = kith_error_code(error);

  switch (code)
    {
      case KITH_INVALID_KEY:
        // There is nothing to remove.
        if (isRemoval)
          {
            kith_free(error);
            return;
          }
      case KITH_VALUE_TOO_LARGE:
      case KITH_QUOTA_EXCEEDED:
        report(@"A write was refused", error);
        [self refuse: aKey];
        return;
      case KITH_UNSUPPORTED_VALUE:
        report(@"A value that property lists cannot hold was ignored", error);
        return;
      default:
        [self reportFailure: error];
    }
}

- (void) setObject: (id)anObject forKey: (NSString *)aKey
{
  NSString *problem = nil;
  NSData *key = keyBytes(aKey);
  kith_value *value = NULL;
  kith_error *error = NULL;

  if (anObject != nil && (value = KithValue(anObject, &problem)) == NULL)
    {
      NSLog(@"A value that property lists cannot hold was ignored: %@", problem);
      return;
    }
  if (store == NULL)
    {
      @synchronized(memory)
        {
          if (anObject == nil)
            {
              [memory removeObjectForKey: aKey];
            }
          else if ([key length] > 0)
            {
              [memory setObject: KithObject(value) forKey: aKey];
            }
        }
    }
  else if (!kith_store_set(store, [key bytes], [key length], value, &error))
    {
      [self report: error ofKey: aKey isRemoval: anObject == nil];
    }
  kith_free(value);
}

- (void) removeObjectForKey: (NSString *)aKey
{
  [self setObject: nil forKey: aKey];
}

- (BOOL) synchronize
{
  kith_error *error = NULL;

  if (store == NULL)
    {
      return NO;
    }
  if (!kith_store_flush(store, &error))
    {
      [self reportFailure: error];
      return NO;
    }
  lastFailure = KITH_OK;
  return isConfigured;
}

// -------------------------------------------------------------------------------- notifications

- (void) receivedEvent: (void *)data
                  type: (RunLoopEventType)type
                 extra: (void *)extra
               forMode: (NSString *)mode
{
  BOOL isFirst = [_reasons count] == 0;

  [self gather];
  if (kith_changes_have_ended(_changes))
    {
      unwatch(_loop, (int)(intptr_t)data);
    }
  if (isFirst && [_reasons count] > 0)
    {
      [self performSelector: @selector(post)
                 withObject: nil
                 afterDelay: gatheringTime
                    inModes: modes()];
    }
}

/* Takes the changes that wait, by reason in order of first occurrence. */
- (void) gather
{
  kith_change *change;

  while ((change = kith_changes_next(_changes, 0)) != NULL)
    {
      NSNumber *reason = reasonOfChange(kith_change_reason(change));
      NSMutableSet *keys = [_keysByReason objectForKey: reason];
      size_t index, length, count = kith_change_count(change);

      if (keys == nil)
        {
          keys = [NSMutableSet set];
          [_keysByReason setObject: keys forKey: reason];
          [_reasons addObject: reason];
        }
      for (index = 0; index < count; index++)
        {
          const char *key = kith_change_key(change, index, &length);

          [keys addObject: AUTORELEASE([[NSString alloc] initWithBytes: key
                                                                length: length
                                                              encoding: NSUTF8StringEncoding])];
        }
      [keys addObjectsFromArray: KithObject(kith_change_superseded(change)) ?: [NSArray array]];
      kith_free(change);
    }
}

/* Posts one notification for each reason, but a first sync before a change of the account: programs
   unite their values with the store's at the one, and read the store again at the other. */
- (void) post
{
  NSNumber *sync = reasonOfChange(KITH_INITIAL_SYNC_CHANGE);
  NSNumber *account = reasonOfChange(KITH_ACCOUNT_CHANGE);
  NSDictionary *keysByReason;
  NSArray *reasons;

  [self gather];
  if ([_reasons containsObject: sync] && [_reasons containsObject: account])
    {
      NSUInteger first = MIN([_reasons indexOfObject: sync], [_reasons indexOfObject: account]);

      [_reasons removeObject: sync];
      [_reasons insertObject: sync atIndex: first];
    }
  // Observers may run the loop, which begins to gather anew.
  keysByReason = [NSDictionary dictionaryWithDictionary: _keysByReason];
  reasons = [NSArray arrayWithArray: _reasons];
  [_keysByReason removeAllObjects];
  [_reasons removeAllObjects];
  for (NSNumber *reason in reasons)
    {
      NSSet *keys = [keysByReason objectForKey: reason];
      NSDictionary *told = nil;

      [self post: reason
            keys: [[keys allObjects] sortedArrayUsingSelector: @selector(compare:)]];
      if ([reason intValue] == NSUbiquitousKeyValueStoreServerChange)
        {
          continue;
        }
      for (NSDictionary *refusal in refusals())
        {
          if (![[NSSet setWithArray: keysOfRefusal(refusal)] isSubsetOfSet: keys])
            {
              break;
            }
          told = refusal;
        }
      takeRefusals(told);
    }
}

/* Those that were not told when the program ended. */
- (void) postOldRefusals
{
  NSArray *all = refusals();
  NSString *names[] = {@"initialSync", @"quota"};
  kith_reason reasons[] = {KITH_INITIAL_SYNC_CHANGE, KITH_QUOTA_VIOLATION_CHANGE};
  int index;

  for (index = 0; index < 2; index++)
    {
      NSMutableSet *keys = [NSMutableSet set];

      for (NSDictionary *refusal in all)
        {
          if ([[refusal objectForKey: @"reason"] isEqual: names[index]])
            {
              [keys addObjectsFromArray: keysOfRefusal(refusal)];
            }
        }
      if ([keys count] > 0)
        {
          [self post: reasonOfChange(reasons[index])
                keys: [[keys allObjects] sortedArrayUsingSelector: @selector(compare:)]];
        }
    }
  takeRefusals([all lastObject]);
}

- (void) post: (NSNumber *)reason keys: (NSArray *)keys
{
  [[NSNotificationCenter defaultCenter]
    postNotificationName: NSUbiquitousKeyValueStoreDidChangeExternallyNotification
                  object: self
                userInfo: [NSDictionary dictionaryWithObjectsAndKeys:
      reason, NSUbiquitousKeyValueStoreChangeReasonKey,
      keys, NSUbiquitousKeyValueStoreChangedKeysKey, nil]];
}

/* Posts soon that a write was refused, joined with others that wait. */
- (void) refuse: (NSString *)key
{
  BOOL isFirst;

  @synchronized(_refusedKeys)
    {
      isFirst = [_refusedKeys count] == 0;
      if (key != nil && [_refusedKeys count] < refusedKeysLimit && ![_refusedKeys containsObject: key])
        {
          [_refusedKeys addObject: [NSString stringWithString: key]];
        }
    }
  // A thread that has ended has no run loop.
  if (isFirst && ![_thread isFinished])
    {
      [self performSelector: @selector(postRefused)
                   onThread: _thread
                 withObject: nil
              waitUntilDone: NO
                      modes: modes()];
    }
}

- (void) postRefused
{
  NSArray *keys;

  @synchronized(_refusedKeys)
    {
      keys = [NSArray arrayWithArray: _refusedKeys];
      [_refusedKeys removeAllObjects];
    }
  if ([keys count] > 0)
    {
      [self post: reasonOfChange(KITH_QUOTA_VIOLATION_CHANGE) keys: keys];
    }
}

@end

@implementation NSFileManager (KithUbiquity)

- (id) ubiquityIdentityToken
{
  kith_value *account;
  id token;

  // Opens the accounts.
  [NSUbiquitousKeyValueStore defaultStore];
  account = kith_accounts_signed_in(accounts, NULL);
  token = [KithObject(account) dataUsingEncoding: NSUTF8StringEncoding];
  kith_free(account);
  return token;
}

@end
