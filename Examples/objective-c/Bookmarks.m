// Bookmarks that are the same on all of a person's devices, as written for Apple's class.
//
//   bookmarks add URL TITLE | remove URL | list | watch

#import <Foundation/Foundation.h>

static NSString *const BookmarksKey = @"bookmarks";

/// The bookmarks: an array of dictionaries under one key.
@interface BookmarkManager : NSObject
{
  NSMutableArray *_bookmarks;
}
- (NSArray *) bookmarks;
- (void) addBookmarkWithURL: (NSString *)url title: (NSString *)title;
- (BOOL) removeBookmarkWithURL: (NSString *)url;
- (void) save;
@end

static void
say(NSString *line)
{
  printf("%s\n", [line UTF8String]);
  fflush(stdout);
}

static void
show(NSArray *bookmarks)
{
  for (NSDictionary *bookmark in bookmarks)
    {
      say([NSString stringWithFormat: @"  %@  %@",
        [bookmark objectForKey: @"title"], [bookmark objectForKey: @"url"]]);
    }
}

@implementation BookmarkManager

- (id) init
{
  if ((self = [super init]) != nil)
    {
      NSUbiquitousKeyValueStore *store = [NSUbiquitousKeyValueStore defaultStore];

      _bookmarks = [[NSMutableArray alloc] init];
      [_bookmarks addObjectsFromArray: [store arrayForKey: BookmarksKey]];
      [[NSNotificationCenter defaultCenter]
        addObserver: self
           selector: @selector(storeDidChange:)
               name: NSUbiquitousKeyValueStoreDidChangeExternallyNotification
             object: store];
      [store synchronize];
    }
  return self;
}

- (void) dealloc
{
  [[NSNotificationCenter defaultCenter] removeObserver: self];
  [_bookmarks release];
  [super dealloc];
}

- (NSArray *) bookmarks
{
  return _bookmarks;
}

- (void) addBookmarkWithURL: (NSString *)url title: (NSString *)title
{
  NSDictionary *bookmark = [NSDictionary dictionaryWithObjectsAndKeys:
    url, @"url", title, @"title", [NSDate date], @"added", nil];

  [self removeBookmarkWithURL: url];
  [_bookmarks addObject: bookmark];
  [self save];
}

- (BOOL) removeBookmarkWithURL: (NSString *)url
{
  for (NSDictionary *bookmark in _bookmarks)
    {
      if ([[bookmark objectForKey: @"url"] isEqual: url])
        {
          [_bookmarks removeObject: bookmark];
          [self save];
          return YES;
        }
    }
  return NO;
}

- (void) save
{
  NSUbiquitousKeyValueStore *store = [NSUbiquitousKeyValueStore defaultStore];

  [store setArray: _bookmarks forKey: BookmarksKey];
  [store synchronize];
}

- (void) storeDidChange: (NSNotification *)notification
{
  NSDictionary *userInfo = [notification userInfo];
  NSArray *keys = [userInfo objectForKey: NSUbiquitousKeyValueStoreChangedKeysKey];
  NSNumber *reason = [userInfo objectForKey: NSUbiquitousKeyValueStoreChangeReasonKey];

  if (![keys containsObject: BookmarksKey])
    {
      return;
    }
  [_bookmarks setArray: [[notification object] arrayForKey: BookmarksKey] ?: [NSArray array]];
  say([NSString stringWithFormat: @"reason %@: %@", reason, [keys componentsJoinedByString: @", "]]);
  show(_bookmarks);
}

@end

int
main(void)
{
  NSAutoreleasePool *pool = [[NSAutoreleasePool alloc] init];
  NSArray *arguments = [[NSProcessInfo processInfo] arguments];
  NSString *command = [arguments count] > 1 ? [arguments objectAtIndex: 1] : @"";
  BookmarkManager *manager = [[BookmarkManager alloc] init];
  int status = 0;

  if ([command isEqual: @"add"] && [arguments count] > 3)
    {
      [manager addBookmarkWithURL: [arguments objectAtIndex: 2] title: [arguments objectAtIndex: 3]];
    }
  else if ([command isEqual: @"remove"] && [arguments count] > 2)
    {
      status = [manager removeBookmarkWithURL: [arguments objectAtIndex: 2]] ? 0 : 1;
    }
  else if ([command isEqual: @"list"])
    {
      show([manager bookmarks]);
    }
  else if ([command isEqual: @"watch"])
    {
      say(@"watching");
      [[NSRunLoop currentRunLoop] run];
    }
  else
    {
      fprintf(stderr, "usage: bookmarks add URL TITLE | remove URL | list | watch\n");
      status = 64;
    }
  [manager release];
  [pool release];
  return status;
}
