"""Faults of this folder's subject, for tests/mutants/run: name, function, expression, fault, tests that fail."""
from faults import table

FAULTS = [
    *table("runtime/inference/session.cc", [
        ("no-numbers-recommended", "Session::Recommend", "if (!chosen.all_finite) return NotFinite();", "",
         "c_interface_test:CInterface.NonFiniteScore_IsAnError"),
        ("damaged-weights-recommend-on-a-device", "Session::RecommendOnDevice",
         "if (!best->all_finite) return NotFinite();", "", "cuda_device_session_test:*"),
    ]),
    *table("runtime/inference/session_setup.cc", [
        ("eight-bits-of-unread-weights", "Session::Open",
         "options.backend == Backend::kInt8 ? Verify::kFull : verify", "verify",
         "c_interface_test:CInterface.DamagedRow_IsFoundOnOpening"),
        ("retired-item-recommended", "", "num_items, file_.lists())", "num_items, ModelLists{})",
         "offer_test:OfferTest.RetiredItemsAreNeverRecommendedAndStandInHistories"),
        ("cold-start-in-no-plan", "Session::CountMemory",
         ".cold_start = (a.num_items + 2 * a.width) * sizeof(float)", ".cold_start = 0",
         "memory_test:Memory.SessionHoldsWhatIsPlanned"),
        ("a-session-of-a-failed-device", "Session::Create", "WISP_RETURN_IF_ERROR(session->Arrived());", "",
         "cuda_device_session_test:*"),
    ]),
    *table("runtime/inference/batch_recommender.cc", [
        ("no-numbers-in-a-batch", "BatchRecommender::RecommendSome",
         "if (!share.tops[r].all_finite()) all_finite_ = false;", "",
         "c_interface_test:CInterface.NonFiniteScore_IsAnError"),
        ("batch-reads-untrained-items-alone", "BatchRecommender::Recommend",
         "return RecommendAlone(histories, options, best, found);", "return OkStatus();",
         "added_items_test:WithANeighbourAndWithout/AddedItems.ListsOfManyAreThoseOfOne/1"),
        ("retired-item-recommended-to-many", "", "TakeExcluded(options, session_.file().lists(),",
         "TakeExcluded(options, {},", "offer_test:OfferTest.RetiredItemsAreNeverRecommendedAndStandInHistories"),
    ]),
    *table("runtime/inference/session_cold_start.cc", [
        ("cold-start-told-of-weights-for-free", "Session::FindPopular", "popular_ = std::move(popular);",
         "for (const float s : popular) { if (s - s != 0) return NotFinite(); } popular_ = std::move(popular);",
         "private_recommender_test:PrivateRecommenderTest.NoHistory_SamplesAreChargedForAnyScores"),
    ]),
    *table("runtime/inference/session.cc", [
        ("successions-not-scored", "Session::Score", "AddSuccessions(file_.lists().successions, history, scores);", "",
         "successions_served_test:SuccessionsServed.ScoresAndListsOfASessionHaveThem"),
    ]),
    *table("runtime/inference/batch_recommender.cc", [
        ("successions-not-in-a-batch", "BatchRecommender::RecommendSome",
         "AddSuccessions(successions, call_.histories[first + r], {share.scores.data() + r * n, n}, id);", "",
         "successions_served_test:SuccessionsServed.ABatchIsThatOfTheSession"),
        ("successions-in-each-tile-as-in-the-first", "BatchRecommender::RecommendSome",
         "{share.scores.data() + r * n, n}, id);", "{share.scores.data() + r * n, n}, 0);",
         "successions_served_test:SuccessionsServed.ABatchIsThatOfTheSession"),
    ]),
    *table("runtime/train/list_scorer.cc", [
        ("successions-not-evaluated", "ListScorer::Score", "AddSuccessions(lists_.successions, history, scores_);", "",
         "successions_served_test:SuccessionsServed.EvaluationIsOfTheServedLists",
         "successions_served_test:SuccessionsServed.GainsAreOfTheServedLists"),
    ]),
]
