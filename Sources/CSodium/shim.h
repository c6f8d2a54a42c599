#ifndef KITH_CSODIUM_H
#define KITH_CSODIUM_H

#include <sodium.h>
#include <string.h>

// Swift cannot import libsodium's BLAKE2b state, which is aligned to 64 bytes. This one is a
// plain copy of its bytes; each call works on an aligned copy and wipes it.
typedef struct {
  unsigned char opaque[sizeof(crypto_generichash_state)];
} kith_blake2b_state;

static inline void kith_blake2b_init(kith_blake2b_state *state, size_t digest_count) {
  crypto_generichash_state aligned;
  (void)crypto_generichash_init(&aligned, NULL, 0, digest_count);
  memcpy(state->opaque, &aligned, sizeof aligned);
}

static inline void kith_blake2b_update(
    kith_blake2b_state *state, const unsigned char *bytes, unsigned long long count) {
  crypto_generichash_state aligned;
  memcpy(&aligned, state->opaque, sizeof aligned);
  (void)crypto_generichash_update(&aligned, bytes, count);
  memcpy(state->opaque, &aligned, sizeof aligned);
  sodium_memzero(&aligned, sizeof aligned);
}

static inline void kith_blake2b_final(
    kith_blake2b_state *state, unsigned char *digest, size_t digest_count) {
  crypto_generichash_state aligned;
  memcpy(&aligned, state->opaque, sizeof aligned);
  (void)crypto_generichash_final(&aligned, digest, digest_count);
  sodium_memzero(&aligned, sizeof aligned);
}

#endif
