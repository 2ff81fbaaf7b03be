// Pages of the host's memory, as far as an operating system lets a program say how it uses them.
#ifndef WISP_KERNELS_PAGES_H_
#define WISP_KERNELS_PAGES_H_

#include <cstddef>

namespace wisp::kernels {

// With large pages, reading a row of a large table needs no page table walk (DP-AdaFEST over 1e7 items). This is a
// hint; nothing depends on it.
void AdviseLargePages(void* bytes, size_t size);

// Zeroes memory by returning its whole pages to the system, where that is faster: each comes back as zeros when it is
// touched. So space planned for the longest text costs only what the current text uses.
void ClearPages(void* bytes, size_t size);

// Leaves the pages of these bytes out of core dumps, because records, gradients of single records and sums without
// noise lie there. Does nothing outside of Linux, nor below one page. This is a hint; nothing depends on it.
void ExcludeFromDumps(const void* bytes, size_t size);

}  // namespace wisp::kernels

#endif  // WISP_KERNELS_PAGES_H_
