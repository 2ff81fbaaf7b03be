"""The groups of the site's navigation: at most seven, each of at most seven pages or groups."""

MOST = 7

# A group is (title, entries); an entry is (title, page) or a group.
GROUPS = (
    (
        "Start",
        (
            ("wisp", "index.md"),
            ("Overview", "README.md"),
            ("Your app", "docs/guide.md"),
            ("The program", "docs/program.md"),
            ("Errors", "docs/errors.md"),
            ("All documents", "docs/README.md"),
        ),
    ),
    (
        "Platforms",
        (
            ("What runs where", "docs/platforms.md"),
            ("C and C++", "docs/c.md"),
            ("Python", (("Begin in Python", "docs/python.md"), ("A notebook", "docs/notebook.md"))),
            ("WebAssembly", "docs/wasm.md"),
            ("Android", "docs/android.md"),
            ("iOS and macOS", "docs/apple.md"),
            ("Kiosks", (("Windows", "docs/windows.md"), ("Raspberry Pi", "docs/raspberry-pi.md"))),
        ),
    ),
    (
        "Privacy",
        (
            ("What is protected", "docs/privacy.md"),
            ("Check a statement", "docs/statement.md"),
            ("Personalise", "docs/personalise.md"),
            ("The ledger", "docs/ledger.md"),
            ("Algorithms", "docs/algorithms.md"),
            ("Threat model", "SECURITY.md"),
            (
                "Kiosks and fleets",
                (
                    ("Kiosks", "docs/kiosk.md"),
                    ("A fleet", "docs/fleet.md"),
                    ("Its operators", "docs/fleet-operators.md"),
                ),
            ),
        ),
    ),
    (
        "Models",
        (
            ("Recipes", "models/README.md"),
            ("Texts", "docs/texts.md"),
            ("Convert", "docs/convert.md"),
            ("Smaller models", "docs/small-models.md"),
            ("Memory", "docs/memory.md"),
            ("GPUs", "docs/cuda.md"),
        ),
    ),
    (
        "Measured",
        (
            ("All figures", "docs/measured.md"),
            ("Gains", "docs/gains.md"),
            ("Performance", "docs/performance.md"),
            ("Processors", "docs/processors.md"),
            (
                "Tables of papers",
                (
                    ("All tables", "docs/papers/README.md"),
                    (
                        "Recommenders",
                        (
                            ("Phantom, table 2", "docs/papers/phantom-table-2.md"),
                            ("Phantom, table 3", "docs/papers/phantom-table-3.md"),
                            ("Phantom, figure 8", "docs/papers/phantom-figure-8.md"),
                            ("AdaFEST, table 4", "docs/papers/adafest-table-4.md"),
                            ("Rank of RGP", "docs/papers/rgp-rank.md"),
                            ("Private samples", "docs/papers/dp-decoding-figure-2.md"),
                            ("What helps", "docs/papers/what-helps.md"),
                        ),
                    ),
                    (
                        "Re-Attention",
                        (
                            ("Which deviations", "docs/papers/re-attention.md"),
                            ("Their scale", "docs/papers/re-attention-scale.md"),
                        ),
                    ),
                    (
                        "Texts",
                        (
                            ("SST-2", "docs/papers/sst2.md"),
                            ("TinyShakespeare", "docs/papers/tinyshakespeare.md"),
                            ("Private tokens", "docs/papers/dp-decoding-texts.md"),
                        ),
                    ),
                ),
            ),
        ),
    ),
    (
        "Reference",
        (
            ("wisp.h", "reference/wisp.h.md"),
            ("wisp_embed.h", "reference/wisp_embed.h.md"),
            ("wisp_deployment.h", "reference/wisp_deployment.h.md"),
            ("wisp_fleet.h", "reference/wisp_fleet.h.md"),
            ("wisp_text.h", "reference/wisp_text.h.md"),
            ("wisp.hpp", "reference/wisp.hpp.md"),
        ),
    ),
    (
        "Inside",
        (
            ("Architecture", "docs/architecture.md"),
            ("Conventions", "docs/conventions.md"),
            ("Contributing", "CONTRIBUTING.md"),
            ("Releases", "tools/release/README.md"),
            ("Formats of files", "schema/README.md"),
            ("Changes", "CHANGELOG.md"),
            ("Third-party software", "NOTICE.md"),
        ),
    ),
)


def pages_of(groups=GROUPS):
    for _, entry in groups:
        if isinstance(entry, str):
            yield entry
        else:
            yield from pages_of(entry)


def too_long(groups=GROUPS, title="the navigation"):
    """Yields the titles of groups with too many entries."""
    if len(groups) > MOST:
        yield title
    for name, entry in groups:
        if not isinstance(entry, str):
            yield from too_long(entry, name)
