// Exits 0 if the processor reports no AES, which shows that without_aes.c was preloaded.
#include <sys/auxv.h>

int main(void) { return (getauxval(AT_HWCAP) & (HWCAP_AES | HWCAP_ASIMDDP)) != 0; }
