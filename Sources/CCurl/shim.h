#ifndef KITH_CCURL_H
#define KITH_CCURL_H

// Swift cannot call functions with a variable number of arguments. Each of these calls one of
// libcurl's, whose address dlsym(3) found.

typedef int (*kith_curl_variadic)(void *handle, int option, ...);

static inline int kith_curl_set_long(void *setopt, void *handle, int option, long value) {
  return ((kith_curl_variadic)setopt)(handle, option, value);
}

static inline int kith_curl_set_offset(void *setopt, void *handle, int option, long long value) {
  return ((kith_curl_variadic)setopt)(handle, option, value);
}

static inline int kith_curl_set_pointer(
    void *setopt, void *handle, int option, const void *value) {
  return ((kith_curl_variadic)setopt)(handle, option, value);
}

static inline int kith_curl_get_long(void *getinfo, void *handle, int info, long *value) {
  return ((kith_curl_variadic)getinfo)(handle, info, value);
}

#endif
