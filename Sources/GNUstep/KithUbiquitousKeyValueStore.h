/* What GNUstep's header of NSUbiquitousKeyValueStore lacks, as Apple has it.
 *
 * Include it before Foundation, or let the compiler do so: its flags are those of
 * `pkg-config --cflags kith-gnustep`. Sources for Apple's class then compile as they are.
 *
 * GNUstep Base 1.27 is the first release with the class. All releases up to 1.31
 *   - declare -synchronize without its result;
 *   - have no NSUbiquitousKeyValueStoreChangedKeysKey and no constants for the reasons.
 * So this declares the class in the place of GNUstep's header. If that came first, the constants are
 * added, and -synchronize stays without a result. (For some days of 2019, before 1.27, defaultStore
 * was an instance method: no release has that.) */
#ifdef __OBJC__
#ifndef KithUbiquitousKeyValueStore_h
#define KithUbiquitousKeyValueStore_h

#ifndef _NSUbiquitousKeyValueStore_h_GNUSTEP_BASE_INCLUDE
/* Keeps GNUstep's header out, whose name this is. */
#define _NSUbiquitousKeyValueStore_h_GNUSTEP_BASE_INCLUDE
#import <Foundation/Foundation.h>

@interface NSUbiquitousKeyValueStore : NSObject

/** The program's store, the same object each time. The first use makes it, of the class that the
    default GSUbiquitousKeyValueStoreClass names. */
+ (NSUbiquitousKeyValueStore *) defaultStore;

/** Returns a property-list object, or nil. */
- (id) objectForKey: (NSString *)aKey;
/** Nil removes the key. */
- (void) setObject: (id)anObject forKey: (NSString *)aKey;
- (void) removeObjectForKey: (NSString *)aKey;

/** Nil if the key is missing, or shows no string or number. */
- (NSString *) stringForKey: (NSString *)aKey;
/** Nil if the key is missing, or shows another type. */
- (NSArray *) arrayForKey: (NSString *)aKey;
- (NSDictionary *) dictionaryForKey: (NSString *)aKey;
- (NSData *) dataForKey: (NSString *)aKey;
/** 0 or NO if the key is missing, or shows no number, bool or string. */
- (long long) longLongForKey: (NSString *)aKey;
- (double) doubleForKey: (NSString *)aKey;
- (BOOL) boolForKey: (NSString *)aKey;

- (void) setString: (NSString *)aString forKey: (NSString *)aKey;
- (void) setData: (NSData *)aData forKey: (NSString *)aKey;
- (void) setArray: (NSArray *)anArray forKey: (NSString *)aKey;
- (void) setDictionary: (NSDictionary *)aDictionary forKey: (NSString *)aKey;
- (void) setLongLong: (long long)value forKey: (NSString *)aKey;
- (void) setDouble: (double)value forKey: (NSString *)aKey;
- (void) setBool: (BOOL)value forKey: (NSString *)aKey;

/** A copy of all keys and values. */
- (NSDictionary *) dictionaryRepresentation;
/** Makes all earlier writes durable. */
- (BOOL) synchronize;

@end
#endif

#import <Foundation/Foundation.h>

#if defined(__cplusplus)
extern "C" {
#endif

extern NSString *const NSUbiquitousKeyValueStoreDidChangeExternallyNotification;
/** In the notification's userInfo, an NSNumber: one of the constants below. */
extern NSString *const NSUbiquitousKeyValueStoreChangeReasonKey;
/** In the notification's userInfo, an NSArray of the keys. */
extern NSString *const NSUbiquitousKeyValueStoreChangedKeysKey;

enum
{
  /** Another device or program wrote. */
  NSUbiquitousKeyValueStoreServerChange = 0,
  /** Signing in brought the account's data: writes of these keys here may have lost. */
  NSUbiquitousKeyValueStoreInitialSyncChange = 1,
  /** Writes of these keys were refused, or are hidden. */
  NSUbiquitousKeyValueStoreQuotaViolationChange = 2,
  /** The user signed in or out. */
  NSUbiquitousKeyValueStoreAccountChange = 3
};

#if defined(__cplusplus)
}
#endif

/** NSUbiquitousKeyValueStore on Kith. Name it in the default GSUbiquitousKeyValueStoreClass.

    The notification is posted on the run loop of the thread that made the object; changes within
    50 ms become one for each reason. The store and its directory are those of the environment, or of
    the user's defaults, in this order:

    <list>
    <item>store: KITH_STORE_IDENTIFIER, KithStoreIdentifier, or the main bundle's identifier;</item>
    <item>directory: KITH_DIRECTORY, KithDirectory, or that of `kith`;</item>
    <item>KithHosts and KithPeers (arrays of addresses), KithPort (0: any), KithDiscovery (NO: no search
    of the local network), KithLog (YES: a log to standard error).</item>
    </list>

    Without an identifier the program has a store of its own, which no device shares, and
    -synchronize returns NO. */
@interface KithUbiquitousKeyValueStore : NSUbiquitousKeyValueStore <RunLoopEvents>
{
@private
  void *_changes;
  NSThread *_thread;
  NSRunLoop *_loop;
  NSMutableDictionary *_keysByReason;
  NSMutableArray *_reasons;
  NSMutableArray *_refusedKeys;
}
@end

@interface NSFileManager (KithUbiquity)
/** A token of the account that is signed in, to be compared by -isEqual:; nil: nobody is. */
- (id) ubiquityIdentityToken;
@end

#endif
#endif
