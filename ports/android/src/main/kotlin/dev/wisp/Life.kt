package dev.wisp

/** Who decides whether a personalised model is better than the base. */
enum class Judge(internal val number: Int) {
    /** A share of the records, which do not train, with noise and a charge. */
    PRIVATE(0),

    /** The same without either: for models that never leave the device. */
    LOCAL(1),

    /** Nobody: the newest model is served, better or not. */
    NONE(2)
}

/** The plan of a device's life: all that its nights may cost. Files are paths. */
data class PlanOptions @JvmOverloads constructor(
    /** The base, as shipped. */
    val model: String,
    val ledger: String,
    /** Name of the data set, the same each time. */
    val dataset: String,
    /** Of the whole life, for every record. */
    val epsilon: Double,
    val delta: Double,
    /** So many records as may be known to anybody. */
    val numRecordsPublic: Int,
    /** Nights. */
    val runs: Int,
    val unit: PrivacyUnit,
    val judge: Judge = Judge.PRIVATE,
    val judgings: Int = 0,
    val judgingShare: Double = 0.0,
    val stepsPerRun: Long = 0,
    val expectedBatch: Int = 0,
    val learningRate: Double = 0.0,
    val threads: Int = 0,
    val typicalEvents: Int = 0,
    val sessionGapSeconds: Long = 0,
    /** How many of the log's times make a second, with every unit: 1000 for milliseconds; 0: 1. */
    val timesPerSecond: Int = 0,
    /** Write nothing. */
    val dryRun: Boolean = false,
    /** Fill the seconds of the plan, which takes two seconds. */
    val measure: Boolean = false,
    val otherData: Boolean = false,
    /** Events after this second since 1970 judge, and do not train: for a log that does not grow. 0: it grows. */
    val trainsUntil: Long = 0,
    /** What nights write. Where the ledger is gone and files of nights lie here, a new plan is refused. */
    val output: String? = null,
    /** Put this plan in the place of another one that nothing was charged under. */
    val replace: Boolean = false,
    /** So many records are there when the life begins; nights share the steps by how many are there. 0: all. */
    val numRecordsAtStart: Int = 0
)

enum class Outlook {
    GAIN,
    SOME_GAIN,
    HOPELESS,

    /** Too few events for each item: a gain was measured only where the base lacked items that people choose. */
    NEW_ITEMS
}

/** What a plan is. */
class Plan internal constructor(
    val runs: Int,
    val judgings: Int,
    val stepsPerRun: Long,
    val expectedBatch: Int,
    val recordsThatTrain: Int,
    val recordsThatJudge: Int,
    outlook: Int,
    val trainingNoise: Double,
    val judgingNoise: Double,
    val noiseToSignal: Double,
    /** The smallest gain that is found in four lives of five; not a number: none is. */
    val foundGain: Double,
    /** That a night holds while it steps, beside the log. */
    val bytes: Long,
    val secondsOfRun: Double,
    val secondsOfJudging: Double,
    /** The ledger had the plan, and nothing was written. */
    val wasThere: Boolean
) {
    val outlook: Outlook = Outlook.values()[outlook]
}

/** One night. Files are paths. */
data class NightOptions @JvmOverloads constructor(
    /** The base, as shipped. */
    val model: String,
    val log: String,
    /** What people are served: the base at first. Its neighbours (.candidate and so on) are private like the log. */
    val output: String,
    /** With the plan. */
    val ledger: String,
    val dataset: String? = null,
    val threads: Int = 0,
    /** [WispException.Code.INVALID_ARGUMENT], before anything is charged, where a night holds more; 0: no ceiling. */
    val maxBytes: Long = 0,
    val otherData: Boolean = false
)

enum class Served {
    BASE,

    /** A candidate that was found better; a newer one trains on. */
    EARLIER,
    NEWEST
}

enum class Verdict { UNDECIDED, BETTER, WORSE }

/**
 * What a night did. With [Judge.LOCAL] `served`, `changed` and `verdict` are local only: not private, do not send them
 * anywhere.
 */
class NightResult internal constructor(
    served: Int,
    /** The output is another one than before: open it anew. */
    val changed: Boolean,
    val judged: Boolean,
    verdict: Int,
    /** Of this night; 0: the plan has none left. */
    val steps: Long,
    val stepsOfModel: Long,
    val runsLeft: Long,
    val stepsLeft: Long,
    val judgingsLeft: Long,
    /** This and what follows is counted on the log. Local only: not private, do not send it anywhere. */
    val numEvents: Long,
    val unknownEvents: Long,
    val unknownItems: Long,
    val badRows: Long,
    val numRecords: Long
) {
    val served: Served = Served.values()[served]
    val verdict: Verdict = Verdict.values()[verdict]
}

/** What is left. */
data class Budget(
    /** Of everything so far at [delta], an upper bound. Show it rounded up. */
    val epsilonStated: Double,
    val delta: Double,
    /** Not a number: the ledger has none. */
    val epsilonLimit: Double,
    val hasPlan: Boolean,
    val runsLeft: Long,
    val stepsLeft: Long,
    val judgingsLeft: Long
)

/** How good a model is on a log. Local only: not private, do not send it anywhere. */
data class Quality(val ndcgAt10: Double, val hitAt10: Double, val numUsers: Long)

/** What was carried over to a new base. */
data class RebaseResult(val carried: Boolean, val sharedItems: Int, val lostItems: Int)

/** A device's life: plan it once, live it night by night, and say what it cost. docs/personalise.md explains it. */
object Life {
    /**
     * Finds the noise and writes the plan into the ledger, or finds the plan that is there. Call it at each start.
     * Another plan than is there is refused, unless [PlanOptions.replace] and nothing was charged. Reads no event.
     */
    @JvmStatic
    @JvmOverloads
    fun plan(options: PlanOptions, anchor: Anchor? = null): Plan = Native.plan(options, anchor)

    /**
     * One night of the plan. Cancelling stops it after the step it is in: what was paid for is kept, and the next call
     * goes on. Where all was done by then, the result is returned, as [personalise] does. [onSentence] gets what the
     * night says of itself; true is a warning. Callbacks come on the thread that works.
     */
    suspend fun night(
        options: NightOptions,
        anchor: Anchor? = null,
        onSentence: ((warning: Boolean, sentence: String) -> Unit)? = null,
        onProgress: (Progress) -> Unit = {}
    ): NightResult {
        val logger = onSentence?.let { Native.Logger { warning, sentence -> it(warning, sentence) } }
        return whileActive(onProgress) { Native.night(options, anchor, it, logger) }
    }

    /** What is left of a ledger. [delta] is for a ledger without a limit. */
    @JvmStatic
    @JvmOverloads
    fun budget(ledger: String, delta: Double, anchor: Anchor? = null): Budget = Native.budget(ledger, anchor, delta)

    /** The privacy statement over everything in the ledger, for people or, as [json], for machines. */
    @JvmStatic
    @JvmOverloads
    fun statement(ledger: String, delta: Double, anchor: Anchor? = null, json: Boolean = false): String =
        Native.statement(ledger, anchor, delta, json)

    /** How good the lists of the model are on the log. Takes a while; not on the main thread. */
    @JvmStatic
    @JvmOverloads
    fun evaluate(model: String, log: String, threads: Int = 0): Quality = Native.evaluate(model, log, threads)

    /** Carries what was learned in [output] over from one base to a new one. From then on nights name the new base. */
    @JvmStatic
    fun rebase(from: String, to: String, output: String): RebaseResult = Native.rebase(from, to, output)
}

/** The library's version. */
fun wispVersion(): String = Native.version()
