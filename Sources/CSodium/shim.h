#ifndef KITH_CSODIUM_H
#define KITH_CSODIUM_H

#include <sodium.h>

#endif
