package dev.wisp

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext
import kotlin.coroutines.coroutineContext

/**
 * The privacy unit, which is protected as a whole: one record is all events of one unit. Read docs/privacy.md first if
 * the device belongs to one person.
 */
enum class PrivacyUnit(internal val number: Int) {
    /** Everything that one user of the log did. */
    USER(1),

    /** Events of one user without a pause longer than the gap: protects one session, not the person. */
    SESSION(2),

    /** Events of one user on one UTC day: protects one day, not the person. */
    DAY(3)
}

/** Options of a run of [personalise]. Defaults are the library's. Files are paths. */
data class PersonaliseOptions @JvmOverloads constructor(
    /** The model to start from. */
    val model: String,
    /** The log of events. */
    val log: String,
    /** The fine-tuned model; may be [model], which is then replaced atomically at the end. */
    val output: String,
    /** The privacy ledger of that log. Created by the first charge. Never delete it. */
    val ledger: String,
    /** Epsilon of this run, or of all [plannedRuns] together. */
    val epsilon: Double,
    val delta: Double,
    /** A number of users (or what [unit] says) that anybody may know. */
    val numRecordsPublic: Int,
    val unit: PrivacyUnit,
    /** Limit over everything ever done with this data; 0: the limit already in the ledger, or none. */
    val budgetEpsilon: Double = 0.0,
    /** A stopped run resumes from this file and pays only for the steps left. Keep it private like the log. */
    val checkpoint: String? = null,
    /** Steps between checkpoints; 0: at the end of each charge. */
    val checkpointEvery: Long = 0,
    val epochs: Double = 0.0,
    val expectedBatch: Int = 0,
    val learningRate: Double = 0.0,
    val clippingNorm: Double = 0.0,
    val threads: Int = 0,
    val plannedRuns: Int = 0,
    /** From 1 on: the model stays fixed, and an adapter of this rank is trained beside it. */
    val adapterRank: Int = 0,
    val adapter: String? = null,
    /** Name of the data set in ledger and provenance: the same each time; null: the log's file name. */
    val dataset: String? = null,
    val otherData: Boolean = false,
    val unchargedTuning: String? = null,
    val sessionGapSeconds: Long = 0,
    /** How many of the log's time values make a second, with every unit: 1000 for milliseconds; 0: 1. */
    val timesPerSecond: Int = 0
)

/** Progress after a step. */
data class Progress(
    val step: Long,
    val steps: Long,
    /** Local only: not private, do not send it anywhere. */
    val loss: Double,
    /** Spent by this run so far; NaN while unknown. Show it rounded up. */
    val epsilon: Double
)

/** The outcome of a run. */
data class PersonaliseResult(
    val steps: Long,
    val plannedSteps: Long,
    /** The step of the checkpoint that the run resumed from; 0: none. */
    val resumedFrom: Long,
    /** The epsilon that may be stated for this run, at its delta. */
    val epsilon: Double,
    val noiseMultiplier: Double,
    /** This and the following counts are taken on the log. Local only: not private, do not send them anywhere. */
    val numRecords: Long,
    val recordsTooShort: Long,
    val gradientsDropped: Long,
    val numEvents: Long,
    val unknownEvents: Long,
    val unknownItems: Long,
    val badRows: Long,
    /** The last checkpoint could not be written, and the run continued without it. */
    val checkpointFailed: Boolean
)

/**
 * Fine-tunes the model privately on the log, and returns when the new model is written. Every step is charged to the
 * ledger before its noise is drawn.
 *
 * Cancelling the coroutine stops the run after the current step: no model is written, and what was charged stays
 * charged. With [PersonaliseOptions.checkpoint] the next call with the same options resumes there. Cancelling after the
 * last step stops nothing: the model is written, and this call returns its result in the cancelled coroutine, which
 * ends at its next suspension. [onProgress] is called after each step, on the working thread; an exception that it
 * throws ends the run and is rethrown by this call.
 */
suspend fun personalise(
    options: PersonaliseOptions,
    anchor: Anchor? = null,
    onProgress: (Progress) -> Unit = {}
): PersonaliseResult = whileActive(onProgress) { Native.personalise(options, anchor, it) }

/**
 * [personalise] on the caller's thread, for Java and for tests. [onProgress] returns false to stop:
 * [WispException.Code.CANCELLED].
 */
@JvmOverloads
fun personaliseBlocking(
    options: PersonaliseOptions,
    anchor: Anchor? = null,
    onProgress: (Progress) -> Boolean = { true }
): PersonaliseResult =
    Native.personalise(options, anchor) { step, steps, loss, epsilon ->
        onProgress(Progress(step, steps, loss, epsilon))
    }

/** Bytes that a run will hold while it steps. Spends nothing. */
fun personaliseMemory(options: PersonaliseOptions): Long = Native.personaliseMemory(options)

/** [whileActive] for work that reports its steps. */
internal suspend fun <T> whileActive(onProgress: (Progress) -> Unit, work: (Native.Progress) -> T): T =
    whileActive { isActive ->
        work(Native.Progress { step, steps, loss, epsilon ->
            onProgress(Progress(step, steps, loss, epsilon))
            isActive()
        })
    }

/**
 * Runs long work on a thread for it. The work asks now and then if the coroutine is still active, and stops if not. A
 * result that is complete by then is returned: withContext alone would lose it when it changes threads, so it runs
 * inside one that cannot be cancelled.
 */
internal suspend fun <T> whileActive(work: (() -> Boolean) -> T): T {
    val job = coroutineContext[Job]
    val isActive = { job == null || job.isActive }
    return withContext(NonCancellable) {
        withContext(Dispatchers.IO) {
            if (!isActive()) throw CancellationException("cancelled before it began: nothing was charged")
            try {
                work(isActive)
            } catch (stopped: WispException) {
                if (stopped.code == WispException.Code.CANCELLED && !isActive())
                    throw CancellationException(stopped.message)
                throw stopped
            }
        }
    }
}
