// What the tests of kith.h share.
#ifndef TEST_H
#define TEST_H

#include <kith.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Ends the program with the place and the error, if there is one.
#define CHECK(condition)                                                               \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);          \
      if (error) fprintf(stderr, "  %s: %s\n", kith_error_name(error), kith_error_message(error)); \
      exit(1);                                                                         \
    }                                                                                  \
  } while (0)

// Checks that a call fails with a code, and frees its error.
#define FAILS(expected, call)                                                          \
  do {                                                                                 \
    CHECK(!(call));                                                                    \
    CHECK(kith_error_code(error) == (expected));                                       \
    CHECK(kith_error_message(error)[0] && kith_error_name(error)[0]);                  \
    kith_free(error);                                                                  \
    error = NULL;                                                                      \
  } while (0)

// A key and its length, as two arguments.
#define KEY(text) text, KITH_TERMINATED

#define IS(text, expected) (text && strcmp(text, expected) == 0)

#endif
