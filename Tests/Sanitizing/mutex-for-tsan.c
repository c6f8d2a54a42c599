// Tells the thread sanitizer what Swift's Mutex does where somebody waits.
//
// Where nobody waits, taking and giving back a Synchronization.Mutex is an atomic operation in the
// code of whoever uses it, which the sanitizer sees. Where somebody does, it is a futex call inside
// libswiftSynchronization.so, which was built without the sanitizer: what the last owner wrote then
// looks like a race with what the next one reads. These functions stand before those of that
// library (LD_PRELOAD), call them, and say which memory the lock hands over. Nothing is suppressed.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>

#define SWIFT __attribute__((swiftcall))
#define SELF __attribute__((swift_context))

// The sanitizer's, in processes that have it.
extern void __tsan_acquire(void *) __attribute__((weak));
extern void __tsan_release(void *) __attribute__((weak));

typedef SWIFT void (*LockSlow)(uint32_t, SELF void *);
typedef SWIFT _Bool (*TryLockSlow)(SELF void *);
typedef SWIFT void (*UnlockSlow)(SELF void *);

static LockSlow lock_slow;
static TryLockSlow try_lock_slow;
static UnlockSlow unlock_slow;

__attribute__((constructor)) static void find(void) {
  lock_slow = (LockSlow)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
  try_lock_slow = (TryLockSlow)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
  unlock_slow = (UnlockSlow)dlsym(RTLD_NEXT, "$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
}

SWIFT void lock(uint32_t thread, SELF void *mutex)
    __asm__("$s15Synchronization12_MutexHandleV9_lockSlowyys6UInt32VF");
SWIFT void lock(uint32_t thread, SELF void *mutex) {
  lock_slow(thread, mutex);
  if (__tsan_acquire) __tsan_acquire(mutex);
}

SWIFT _Bool try_lock(SELF void *mutex)
    __asm__("$s15Synchronization12_MutexHandleV12_tryLockSlowSbyF");
SWIFT _Bool try_lock(SELF void *mutex) {
  _Bool taken = try_lock_slow(mutex);
  if (taken && __tsan_acquire) __tsan_acquire(mutex);
  return taken;
}

SWIFT void unlock(SELF void *mutex)
    __asm__("$s15Synchronization12_MutexHandleV11_unlockSlowyyF");
SWIFT void unlock(SELF void *mutex) {
  if (__tsan_release) __tsan_release(mutex);
  unlock_slow(mutex);
}
