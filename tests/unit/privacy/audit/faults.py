"""Faults of this folder's subject, for tests/mutants/run: name, function, expression, fault, tests that fail."""
from faults import table

FAULTS = [
    *table("runtime/privacy/audit/audit.cc", [
        ("audit-refutes-within-delta", "PValue",
         "pure + 2 * static_cast<double>(o.canaries) * claim.delta * LargestMassPerGuess(o, chance)", "pure",
         "audit_test:OneRun.RareDisclosureWithinDeltaIsNotRejected"),
        ("audit-chooses-for-nothing", "OneRunBestEpsilon", "/ static_cast<double>(guess_counts.size())", "",
         "audit_test:OneRun.BestOfManyPaysForTheChoice"),
    ]),
    *table("runtime/privacy/audit/audit_step.cc", [
        ("audit-measures-what-it-chose-on", "Split", "{SortedHalf(o.with, 1), SortedHalf(o.without, 1)}",
         "{SortedHalf(o.with, 0), SortedHalf(o.without, 0)}",
         "audit_test:OneStep.MeasuresOnObservationsThatDidNotChoose"),
        ("audit-surer-than-it-says", "CanaryEpsilon", "(1 - level.confidence) / 2", "(1 - level.confidence) * 20",
         "audit_test:OneStep.*"),
    ]),
    *table("runtime/privacy/audit/audit_exact.cc", [
        ("exact-audit-of-shared-outputs", "OneSidedDelta", "q[i] == 0 ? p[i] :", "q[i] == 0 ? 0 :",
         "audit_exact_test:Exact.SupportThatDiffersCostsItsMass"),
    ]),
]
