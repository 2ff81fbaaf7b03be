package dev.wisp

/** Selects who decides whether a personalised model is better than the base. */
enum class Evaluation(internal val number: Int) {
    /** By events later than all that trained, with noise and a charge. */
    PRIVATE(0),

    /** The same without noise and charge: for models that never leave the device. */
    LOCAL(1),

    /** No evaluation: the newest model is served, better or not. */
    NONE(2)
}

/** The plan of runs: everything that they may cost. Files are paths. */
data class PlanOptions @JvmOverloads constructor(
    /** The base, as shipped. */
    val model: String,
    val ledger: String,
    /** Name of the data set, the same each time. */
    val dataset: String,
    /** Epsilon of the whole plan, for every record. */
    val epsilon: Double,
    val delta: Double,
    /** A number of records that anybody may know. */
    val numRecordsPublic: Int,
    /** Number of runs. */
    val runs: Int,
    val unit: PrivacyUnit,
    val evaluation: Evaluation = Evaluation.PRIVATE,
    val evaluations: Int = 0,
    val stepsPerRun: Long = 0,
    val expectedBatch: Int = 0,
    val learningRate: Double = 0.0,
    val threads: Int = 0,
    val typicalEvents: Int = 0,
    val sessionGapSeconds: Long = 0,
    /** How many of the log's time values make a second, with every unit: 1000 for milliseconds; 0: 1. */
    val timesPerSecond: Int = 0,
    /** Write nothing. */
    val dryRun: Boolean = false,
    /** Fill the seconds of the plan, which takes two seconds. */
    val measure: Boolean = false,
    val otherData: Boolean = false,
    /**
     * Seconds since 1970: later events evaluate and do not train. For a log that does not grow; 0: it grows.
     */
    val trainsUntil: Long = 0,
    /** The file that runs write. If the ledger is gone and files of runs lie here, a new plan is refused. */
    val output: String? = null,
    /** Replace another plan that nothing was charged under. */
    val replace: Boolean = false,
    /** Number of records when the plan begins; runs share the steps in proportion. 0: all of them. */
    val numRecordsAtStart: Int = 0
)

enum class Outlook {
    GAIN,
    SOME_GAIN,
    HOPELESS,

    /** Too few events for each item: a gain was measured only if the base lacked items that people choose. */
    NEW_ITEMS
}

/** The plan and what follows from it. */
class Plan internal constructor(
    val runs: Int,
    val evaluations: Int,
    val stepsPerRun: Long,
    val expectedBatch: Int,
    outlook: Int,
    val trainingNoise: Double,
    val evaluationNoise: Double,
    val noiseToSignal: Double,
    /** The smallest gain that is detected in four of five plans; NaN: none can be. */
    val foundGain: Double,
    /** Bytes that a run holds while it steps, beside the log. */
    val bytes: Long,
    val secondsOfRun: Double,
    val secondsOfEvaluation: Double,
    /** The ledger already had the plan, and nothing was written. */
    val wasThere: Boolean,
    /** Releases of the counts of which item follows which; 0: none. They take this share of the plan's budget. */
    val successionReleases: Long,
    val successionShare: Double,
    /** The noise multiplier of a release. */
    val successionNoise: Double,
    /** An item's counts in a release, beside its noise. */
    val successionSignal: Double,
    /** Releases of the weight of the output bias; 0: none. They take this share of the plan's budget. */
    val biasWeightReleases: Long,
    val biasWeightShare: Double,
    /** The noise multiplier of a release. */
    val biasWeightNoise: Double
) {
    val outlook: Outlook = Outlook.values()[outlook]
}

/** Options of one run. Files are paths. */
data class PlannedRunOptions @JvmOverloads constructor(
    /** The base, as shipped. */
    val model: String,
    val log: String,
    /** The served model: the base at first. The files beside it (.candidate and so on) are private like the log. */
    val output: String,
    /** The ledger that has the plan. */
    val ledger: String,
    val dataset: String? = null,
    val threads: Int = 0,
    /** [WispException.Code.INVALID_ARGUMENT], before anything is charged, if a run would hold more; 0: no limit. */
    val maxBytes: Long = 0,
    val otherData: Boolean = false
)

enum class Served {
    BASE,

    /** A candidate that was found better; a newer one is still training. */
    EARLIER,
    NEWEST
}

enum class Verdict { UNDECIDED, BETTER, WORSE }

/**
 * The outcome of a run. With [Evaluation.LOCAL] `served`, `changed` and `verdict` are local only: not private, do not
 * send them anywhere.
 */
class PlannedRunResult internal constructor(
    served: Int,
    /** The output file was replaced: open it again. */
    val changed: Boolean,
    val evaluated: Boolean,
    verdict: Int,
    /** Steps of this run; 0: the plan has none left. */
    val steps: Long,
    /**
     * Steps of the candidate over all runs; from 0 again after a lost checkpoint, a rebase, or a change of the plan
     * that costs noise, although what was learned stays.
     */
    val stepsOfModel: Long,
    val runsLeft: Long,
    val stepsLeft: Long,
    val evaluationsLeft: Long,
    /** This and the following fields are counted on the log. Local only: not private, do not send them anywhere. */
    val numEvents: Long,
    val unknownEvents: Long,
    val unknownItems: Long,
    val badRows: Long,
    val numRecords: Long
) {
    val served: Served = Served.values()[served]
    val verdict: Verdict = Verdict.values()[verdict]
}

/** The budget that is left. */
data class Budget(
    /** Epsilon of everything so far at [delta], an upper bound. Show it rounded up. */
    val epsilonStated: Double,
    val delta: Double,
    /** NaN: the ledger has no limit. */
    val epsilonLimit: Double,
    val hasPlan: Boolean,
    val runsLeft: Long,
    val stepsLeft: Long,
    val evaluationsLeft: Long,
    val successionReleasesLeft: Long,
    val biasWeightReleasesLeft: Long
)

/** The quality of a model on a log. Local only: not private, do not send it anywhere. */
data class Quality(val ndcgAt10: Double, val hitAt10: Double, val numUsers: Long)

/** What was carried over to a new base. */
data class RebaseResult(val carried: Boolean, val sharedItems: Int, val lostItems: Int)

/** Nightly training: make a plan once, run one run each night, and state what it cost (docs/personalise.md). */
object Deployment {
    /**
     * Finds the noise and writes the plan into the ledger, or finds the existing plan. Call it at each start. A plan
     * that differs from the existing one is refused, unless [PlanOptions.replace] and nothing was charged. Reads no
     * event.
     */
    @JvmStatic
    @JvmOverloads
    fun plan(options: PlanOptions, anchor: Anchor? = null): Plan = Native.plan(options, anchor)

    /**
     * One run of the plan. Cancelling stops it after the current step: what was paid for is kept, and the next call
     * resumes. If everything was done by then, the result is returned, as [personalise] does. [onSentence] receives the
     * run's messages; true means a warning. Callbacks run on the working thread.
     */
    suspend fun runPlanned(
        options: PlannedRunOptions,
        anchor: Anchor? = null,
        onSentence: ((warning: Boolean, sentence: String) -> Unit)? = null,
        onProgress: (Progress) -> Unit = {}
    ): PlannedRunResult {
        val logger = onSentence?.let { Native.Logger { warning, sentence -> it(warning, sentence) } }
        return whileActive(onProgress) { Native.runPlanned(options, anchor, it, logger) }
    }

    /** The budget that is left in a ledger. [delta] is used if the ledger has no limit. */
    @JvmStatic
    @JvmOverloads
    fun budget(ledger: String, delta: Double, anchor: Anchor? = null): Budget = Native.budget(ledger, anchor, delta)

    /** The privacy statement over everything in the ledger, for people or, as [json], for machines. */
    @JvmStatic
    @JvmOverloads
    fun statement(ledger: String, delta: Double, anchor: Anchor? = null, json: Boolean = false): String =
        Native.statement(ledger, anchor, delta, json)

    /** The quality of the model's lists on the log. It takes a while; do not call it on the main thread. */
    @JvmStatic
    @JvmOverloads
    fun evaluate(model: String, log: String, threads: Int = 0): Quality = Native.evaluate(model, log, threads)

    /**
     * Carries what was learned in [output] over from one base to a new one. Runs must name the new base from then
     * on. If what was learned would be lost, INVALID_ARGUMENT says why and nothing changes: keep the previous base.
     * [startOver] gives up what was learned.
     */
    @JvmStatic
    @JvmOverloads
    fun rebase(from: String, to: String, output: String, ledger: String, startOver: Boolean = false): RebaseResult =
        Native.rebase(from, to, output, ledger, startOver)
}

/** The library's version. */
fun wispVersion(): String = Native.version()
