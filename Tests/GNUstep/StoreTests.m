// The class over a store of its own directory (KITH_DIRECTORY), without an account. Prints a line for each
// failure, and ends with 1 if there is one.

#import <Foundation/Foundation.h>

static int failures;

#define CHECK(condition) \
  do { if (!(condition)) { failures++; \
    printf("%s:%d: %s\n", __FILE__, __LINE__, #condition); } } while (0)

@interface Observer : NSObject
{
@public
  NSMutableArray *notifications;
  NSThread *thread;
}
@end

@implementation Observer
- (id) initOn: (id)store
{
  if ((self = [super init]) != nil)
    {
      notifications = [[NSMutableArray alloc] init];
      [[NSNotificationCenter defaultCenter]
        addObserver: self
           selector: @selector(storeDidChange:)
               name: NSUbiquitousKeyValueStoreDidChangeExternallyNotification
             object: store];
    }
  return self;
}

- (void) storeDidChange: (NSNotification *)notification
{
  [notifications addObject: notification];
  thread = [NSThread currentThread];
}

// Runs the loop until there are so many notifications, for 10 s at most.
- (BOOL) waitFor: (NSUInteger)count
{
  NSDate *end = [NSDate dateWithTimeIntervalSinceNow: 10];

  while ([notifications count] < count && [end timeIntervalSinceNow] > 0)
    {
      [[NSRunLoop currentRunLoop] runMode: NSDefaultRunLoopMode
                               beforeDate: [NSDate dateWithTimeIntervalSinceNow: 0.05]];
    }
  return [notifications count] == count;
}
@end

static NSUbiquitousKeyValueStore *store;

static id
stored(id object)
{
  [store setObject: object forKey: @"value"];
  return [store objectForKey: @"value"];
}

static NSNumber *
number(double value)
{
  return [NSNumber numberWithDouble: value];
}

static void
testValues(void)
{
  NSDate *date = [NSDate dateWithTimeIntervalSinceReferenceDate: 123456789.25];
  NSData *data = [NSData dataWithBytes: "\0\xff" length: 2];
  unichar zero[] = {'a', 0, 'b'};
  NSString *withZero = [NSString stringWithCharacters: zero length: 3];
  NSArray *array = [NSArray arrayWithObjects: @"x", date, data, number(1.5), [NSArray array],
    [NSDictionary dictionaryWithObject: withZero forKey: @""], nil];
  id bool_;

  CHECK([stored(array) isEqual: array]);
  CHECK([stored(withZero) isEqual: withZero]);
  CHECK([stored(@"") isEqual: @""]);
  CHECK([stored([NSData data]) isEqual: [NSData data]]);
  CHECK([stored([NSNumber numberWithLongLong: INT64_MIN]) longLongValue] == INT64_MIN);
  bool_ = stored([NSNumber numberWithBool: YES]);
  CHECK(bool_ == [NSNumber numberWithBool: YES]);
  CHECK(stored([NSNumber numberWithInt: 1]) != bool_ && [[store objectForKey: @"value"] isEqual: bool_]);
  CHECK(*[stored(number(1)) objCType] == 'd');
  CHECK([stored([NSDecimalNumber decimalNumberWithString: @"1.25"]) doubleValue] == 1.25);
  CHECK(stored(nil) == nil);

  // What a store cannot hold is logged and ignored.
  [store setObject: @"old" forKey: @"value"];
  CHECK([stored([NSURL URLWithString: @"https://example.com"]) isEqual: @"old"]);
  CHECK([stored([NSNull null]) isEqual: @"old"]);
  CHECK([stored([NSArray arrayWithObject: [NSNull null]]) isEqual: @"old"]);
  CHECK([stored([NSNumber numberWithUnsignedLongLong: UINT64_MAX]) isEqual: @"old"]);
  CHECK([stored([NSDictionary dictionaryWithObject: @"x" forKey: number(1)]) isEqual: @"old"]);
  array = [NSArray array];
  for (int depth = 0; depth < 64; depth++)
    {
      array = [NSArray arrayWithObject: array];
    }
  CHECK([stored(array) isEqual: @"old"]);
  CHECK([stored([array lastObject]) isEqual: [array lastObject]]);
  [store removeObjectForKey: @"value"];
  CHECK([store objectForKey: @"value"] == nil);
}

static void
testCoercions(void)
{
  struct { id object; NSString *text; long long integer; double number; BOOL isTrue; } cases[] = {
    {[NSNumber numberWithBool: YES], @"1", 1, 1, YES},
    {[NSNumber numberWithBool: NO], @"0", 0, 0, NO},
    {[NSNumber numberWithInt: -7], @"-7", -7, -7, YES},
    {[NSNumber numberWithInt: 256], @"256", 256, 256, YES},
    {number(2.9), @"2.9", 2, 2.9, YES},
    {number(3), @"3", 3, 3, YES},
    {number(0.1 + 0.2), @"0.30000000000000004", 0, 0.1 + 0.2, YES},
    {number(1e30), @"1e+30", INT64_MAX, 1e30, YES},
    {number(-1e30), @"-1e+30", INT64_MIN, -1e30, YES},
    {number(0), @"0", 0, 0, NO},
    {number(0.25), @"0.25", 0, 0.25, YES},
    {@"12abc", @"12abc", 12, 12, YES},
    {@"yes", @"yes", 0, 0, YES},
    {@"-1.5", @"-1.5", -1, -1.5, YES},
    {@"no", @"no", 0, 0, NO},
    {[NSDate date], nil, 0, 0, NO},
    {[NSData data], nil, 0, 0, NO},
    {[NSArray array], nil, 0, 0, NO},
    {nil, nil, 0, 0, NO},
  };

  for (size_t index = 0; index < sizeof cases / sizeof *cases; index++)
    {
      NSString *text;

      [store setObject: cases[index].object forKey: @"value"];
      text = [store stringForKey: @"value"];
      CHECK(text == cases[index].text || [text isEqual: cases[index].text]);
      CHECK([store longLongForKey: @"value"] == cases[index].integer);
      CHECK([store doubleForKey: @"value"] == cases[index].number);
      CHECK([store boolForKey: @"value"] == cases[index].isTrue);
    }
  // Beyond 18 digits GNUstep's own -doubleValue is wrong.
  [store setObject: @"9223372036854775808" forKey: @"value"];
  CHECK([store longLongForKey: @"value"] == INT64_MAX);
  CHECK([store arrayForKey: @"value"] == nil && [store dictionaryForKey: @"value"] == nil);
  CHECK([store dataForKey: @"value"] == nil);
}

static void
testSetters(void)
{
  NSDictionary *all;

  [store setString: @"s" forKey: @"string"];
  [store setData: [NSData dataWithBytes: "d" length: 1] forKey: @"data"];
  [store setArray: [NSArray arrayWithObject: @"a"] forKey: @"array"];
  [store setDictionary: [NSDictionary dictionaryWithObject: @"v" forKey: @"k"] forKey: @"dictionary"];
  [store setLongLong: 1LL << 40 forKey: @"longLong"];
  [store setDouble: 1.5 forKey: @"double"];
  [store setBool: YES forKey: @"bool"];
  CHECK([[store stringForKey: @"string"] isEqual: @"s"]);
  CHECK([[store dataForKey: @"data"] length] == 1);
  CHECK([[store arrayForKey: @"array"] count] == 1);
  CHECK([[[store dictionaryForKey: @"dictionary"] objectForKey: @"k"] isEqual: @"v"]);
  CHECK([store longLongForKey: @"longLong"] == 1LL << 40);
  CHECK([store doubleForKey: @"double"] == 1.5 && [store boolForKey: @"bool"]);
  [store removeObjectForKey: @"value"];
  all = [store dictionaryRepresentation];
  CHECK([all count] == 7 && [[all objectForKey: @"string"] isEqual: @"s"]);
  [store setString: nil forKey: @"string"];
  CHECK([store objectForKey: @"string"] == nil && [all objectForKey: @"string"] != nil);
  CHECK([store synchronize]);
}

static void
testRefusedWrites(void)
{
  Observer *observer = [[[Observer alloc] initOn: store] autorelease];
  NSString *large = [@"" stringByPaddingToLength: 2000000 withString: @"x" startingAtIndex: 0];
  NSString *longKey = [@"" stringByPaddingToLength: 65 withString: @"k" startingAtIndex: 0];
  unichar zero[] = {'a', 0};
  NSArray *keys = [NSArray arrayWithObjects: @"large", longKey, @"",
    [NSString stringWithCharacters: zero length: 2], nil];
  NSDictionary *info;

  [store setString: @"old" forKey: @"large"];
  for (NSString *key in keys)
    {
      [store setString: large forKey: key];
    }
  [store setString: large forKey: @"large"];
  CHECK([[store stringForKey: @"large"] isEqual: @"old"]);
  // A key does not end at its zero byte.
  [store setString: @"other" forKey: @"a"];
  CHECK([store objectForKey: [keys lastObject]] == nil);
  [store setString: @"zero" forKey: [keys lastObject]];
  CHECK([[store stringForKey: [keys lastObject]] isEqual: @"zero"]);
  CHECK([[[store dictionaryRepresentation] objectForKey: [keys lastObject]] isEqual: @"zero"]);
  [store removeObjectForKey: [keys lastObject]];
  CHECK([store objectForKey: [keys lastObject]] == nil);
  CHECK([[store stringForKey: @"a"] isEqual: @"other"]);
  CHECK([observer waitFor: 1]);
  info = [[observer->notifications lastObject] userInfo];
  CHECK([[observer->notifications lastObject] object] == store);
  CHECK([[info objectForKey: NSUbiquitousKeyValueStoreChangeReasonKey] integerValue]
    == NSUbiquitousKeyValueStoreQuotaViolationChange);
  CHECK([[info objectForKey: NSUbiquitousKeyValueStoreChangedKeysKey] isEqual: keys]);
  // Removing what cannot be there is no error.
  [store removeObjectForKey: longKey];
  [[NSNotificationCenter defaultCenter] removeObserver: observer];
}

// Another object, made on a thread of its own, hears there.
@interface Other : NSObject
{
@public
  BOOL hasHeard, isReady;
}
@end

@implementation Other
- (void) run
{
  NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
  NSUbiquitousKeyValueStore *other = [[[store class] alloc] init];
  Observer *observer = [[Observer alloc] initOn: other];

  [other setString: @"x" forKey: @""];
  CHECK([observer waitFor: 1]);
  CHECK(observer->thread == [NSThread currentThread]);
  CHECK([[other stringForKey: @"large"] isEqual: @"old"]);
  hasHeard = YES;
  [pool release];
}
@end

int
main(void)
{
  NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
  Other *other = [[Other alloc] init];

  store = [NSUbiquitousKeyValueStore defaultStore];
  CHECK([NSStringFromClass([store class]) isEqual: @"KithUbiquitousKeyValueStore"]);
  CHECK(store == [NSUbiquitousKeyValueStore defaultStore]);
  CHECK([[store dictionaryRepresentation] count] == 0);
  CHECK([[NSFileManager defaultManager] ubiquityIdentityToken] == nil);
  testValues();
  testCoercions();
  testSetters();
  testRefusedWrites();
  [NSThread detachNewThreadSelector: @selector(run) toTarget: other withObject: nil];
  for (int tries = 0; tries < 200 && !other->hasHeard; tries++)
    {
      [NSThread sleepForTimeInterval: 0.05];
    }
  CHECK(other->hasHeard);
  // Without synchronize, it must last.
  [store setString: @"at the end" forKey: @"last"];
  [pool release];
  return failures > 0;
}
