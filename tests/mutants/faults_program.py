"""Faults of the program: what must be declared before private data leaves a mark, and which figures are called private."""
from faults import table


def items_of_private_data():
    return table("tools/wisp/cmd_train.cc", [
        ("items-listed-undeclared", "CheckPublicItems", 'a.catalogue != "public" && recipe.catalogue != Recipe::Catalogue::kPublic', "false", "declarations.sh"),
        ("items-counted-undeclared", "CheckPublicItems", "return CheckPublicCatalogue(recipe);", "return OkStatus();", "declarations.sh"),
    ]) + table("tools/wisp/training_run.cc", [
        ("items-of-a-private-log", "TrainingRun::CheckPublic", "recipe_.catalogue != Recipe::Catalogue::kPublic", "false", "declarations.sh"),
        ("events-that-hang-on-others", "TrainingRun::CheckPublic", "recipe_.min_item_events > 1", "false", "declarations.sh"),
    ])


def deltas():
    reset = (", r.goal.allow_delta_of_one_record = false", "", "declarations.sh")
    return (table("tools/wisp/training_run.cc", [("a-word-for-another-delta", "Override", *reset)]) +
            table("tools/wisp/cmd_classify_train.cc", [("a-word-for-another-delta-of-texts", "Override", *reset)]))


def figures():
    return table("tools/wisp/output.cc", [
        ("bytes-called-private", "NotPrivate", '"planned_bytes",', "", "figures.sh"),
    ]) + table("tools/wisp/cmd_reproduce.cc", [
        ("figures-of-own-data-called-private", "RunTraining", "if (!table_.is_public()) figures", "if (false) figures", "reproduce.sh"),
    ])


def reproduced_tables():
    return table("tools/wisp/reproduce/check_cell.cc", [
        ("a-cell-of-private-items", "CheckGuarantee", "r.catalogue != Recipe::Catalogue::kPublic", "false", "reproduce.sh"),
        ("a-cell-of-any-delta", "CheckGuarantee", "return CheckPrivacyGoal(r.goal, r.training.num_records_public);", "return OkStatus();", "reproduce.sh"),
    ]) + table("tools/wisp/cmd_reproduce.cc", [
        ("draws-of-private-data", "CheckDeclared", "decodes && !table_.is_public()", "false", "reproduce.sh"),
        ("private-data-uncharged", "CheckDeclared", "table_.is_public() || !any_private || !a_.ledger.empty()", "true", "reproduce.sh"),
        ("own-data-charged-to-nobody", "RunTraining", 'a_.ledger.empty() ? folder.File("ledger") : a_.ledger', 'folder.File("ledger")', "reproduce.sh"),
    ])


def faults():
    return items_of_private_data() + deltas() + figures() + reproduced_tables()
