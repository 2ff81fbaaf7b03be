// wisp as a package compiles it: without a flag. Results are then the same to the bit as everywhere (-ffp-contract=off),
// which clang also takes as a pragma.
#pragma STDC FP_CONTRACT OFF
#include "wisp.cc"
