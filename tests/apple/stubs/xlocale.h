// Apple's systems have here what glibc has in locale.h.
#include <locale.h>
