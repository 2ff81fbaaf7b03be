// wisp as a package compiles it: without a flag. Results are the same to the bit as everywhere, as by
// -ffp-contract=off, which clang also takes as a pragma.
#pragma STDC FP_CONTRACT OFF
#include "wisp.cc"
