// Compiles wisp without compiler flags, as a package must. The pragma replaces -ffp-contract=off, so results are the
// same to the bit as everywhere.
#pragma STDC FP_CONTRACT OFF
#include "wisp.cc"
