// When preloaded, it makes the processor appear without AES and the dot product, like a Raspberry Pi 4's Cortex-A72.
#include <sys/auxv.h>

extern unsigned long __getauxval(unsigned long type);

unsigned long getauxval(unsigned long type) {
  const unsigned long value = __getauxval(type);
  if (type != AT_HWCAP) return value;
  return value & ~(unsigned long)(HWCAP_AES | HWCAP_PMULL | HWCAP_SHA1 | HWCAP_SHA2 | HWCAP_ASIMDDP);
}
