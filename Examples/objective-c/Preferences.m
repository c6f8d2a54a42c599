// Settings that stay in NSUserDefaults and become the same on all devices, with the calls of listing
// 3-1 of Apple's Preferences and Settings Programming Guide. The window is one dictionary, so that its
// members change together.
//
//   preferences set THEME WIDTH HEIGHT | show | watch

#import <Foundation/Foundation.h>

@interface Settings : NSObject
- (void) applicationDidFinishLaunching;
- (void) setTheme: (NSString *)theme width: (NSInteger)width height: (NSInteger)height;
- (void) show;
@end

@implementation Settings

// At launch: register, then synchronize.
- (void) applicationDidFinishLaunching
{
  NSUbiquitousKeyValueStore *store = [NSUbiquitousKeyValueStore defaultStore];

  [[NSNotificationCenter defaultCenter]
    addObserver: self
       selector: @selector(updateKVStoreItems:)
           name: NSUbiquitousKeyValueStoreDidChangeExternallyNotification
         object: store];
  [store synchronize];
}

- (void) updateKVStoreItems: (NSNotification *)notification
{
  NSDictionary *userInfo = [notification userInfo];
  NSNumber *reasonForChange = [userInfo objectForKey: NSUbiquitousKeyValueStoreChangeReasonKey];
  NSInteger reason = -1;

  if (!reasonForChange)
    return;

  // Not for a violation of the quota, nor for a change of account.
  reason = [reasonForChange integerValue];
  if ((reason == NSUbiquitousKeyValueStoreServerChange)
    || (reason == NSUbiquitousKeyValueStoreInitialSyncChange))
    {
      NSArray *changedKeys = [userInfo objectForKey: NSUbiquitousKeyValueStoreChangedKeysKey];
      NSUbiquitousKeyValueStore *store = [NSUbiquitousKeyValueStore defaultStore];
      NSUserDefaults *userDefaults = [NSUserDefaults standardUserDefaults];

      // The names of the keys are the same in both.
      for (NSString *key in changedKeys)
        {
          id value = [store objectForKey: key];
          [userDefaults setObject: value forKey: key];
        }
      [userDefaults synchronize];
    }
  [self show];
}

- (void) setTheme: (NSString *)theme width: (NSInteger)width height: (NSInteger)height
{
  NSUbiquitousKeyValueStore *store = [NSUbiquitousKeyValueStore defaultStore];
  NSUserDefaults *userDefaults = [NSUserDefaults standardUserDefaults];
  NSDictionary *window = [NSDictionary dictionaryWithObjectsAndKeys:
    [NSNumber numberWithInteger: width], @"width", [NSNumber numberWithInteger: height], @"height", nil];

  [userDefaults setObject: theme forKey: @"theme"];
  [userDefaults setObject: window forKey: @"window"];
  [userDefaults synchronize];
  [store setString: theme forKey: @"theme"];
  [store setDictionary: window forKey: @"window"];
  [store synchronize];
}

- (void) show
{
  NSUserDefaults *userDefaults = [NSUserDefaults standardUserDefaults];
  NSDictionary *window = [userDefaults dictionaryForKey: @"window"];

  printf("theme %s, window %ld x %ld\n",
    [([userDefaults stringForKey: @"theme"] ?: @"none") UTF8String],
    (long)[[window objectForKey: @"width"] integerValue],
    (long)[[window objectForKey: @"height"] integerValue]);
  fflush(stdout);
}

@end

int
main(void)
{
  NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
  NSArray *arguments = [[NSProcessInfo processInfo] arguments];
  NSString *command = [arguments count] > 1 ? [arguments objectAtIndex: 1] : @"";
  Settings *settings = [[Settings alloc] init];
  int status = 0;

  [settings applicationDidFinishLaunching];
  if ([command isEqual: @"set"] && [arguments count] > 4)
    {
      [settings setTheme: [arguments objectAtIndex: 2]
                   width: [[arguments objectAtIndex: 3] integerValue]
                  height: [[arguments objectAtIndex: 4] integerValue]];
    }
  else if ([command isEqual: @"show"])
    {
      [settings show];
    }
  else if ([command isEqual: @"watch"])
    {
      printf("watching\n");
      fflush(stdout);
      [[NSRunLoop currentRunLoop] run];
    }
  else
    {
      fprintf(stderr, "usage: preferences set THEME WIDTH HEIGHT | show | watch\n");
      status = 64;
    }
  [settings release];
  [pool release];
  return status;
}
