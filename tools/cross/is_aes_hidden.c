// Exits 0 where the processor reports no AES: whether without_aes.c was preloaded.
#include <sys/auxv.h>

int main(void) { return (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_ASIMDDP)) != 0; }
