// Takes the place of the tables of Foundation's ICU: the header of a table of contents without any
// entry (ICU's "stub data"). What asks ICU for a language gets "missing resource".
#include <stdint.h>

const struct {
  uint16_t headerSize;
  uint8_t magic[2];
  uint16_t infoSize, reserved;
  uint8_t isBigEndian, charset, charBytes, reservedByte;
  uint8_t format[4], formatVersion[4], dataVersion[4];
  char padding[8];
  uint32_t entries;
  uint32_t alignment[3];
} kith_icu_tables __attribute__((aligned(16))) = {
    32, {0xda, 0x27}, 20, 0, 0, 0, 2, 0, {'T', 'o', 'C', 'P'}, {1, 0, 0, 0}, {0, 0, 0, 0}, {0}, 0, {0}};
