package dev.wisp

import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.NonCancellable
import kotlinx.coroutines.withContext
import kotlin.coroutines.coroutineContext

/**
 * What is protected as a whole: one record is all events of one unit. On one person's device read docs/privacy.md
 * first.
 */
enum class PrivacyUnit(internal val number: Int) {
    /** Everything one user of the log did. */
    USER(1),

    /** Events of one user without a pause longer than the gap: one session, not the person. */
    SESSION(2),

    /** Events of one user on one day, by UTC: one day, not the person. */
    DAY(3)
}

/** What a run of [personalise] is told. What is left out is the library's default. Files are paths. */
data class PersonaliseOptions @JvmOverloads constructor(
    /** The model to start from. */
    val model: String,
    /** The log of events. */
    val log: String,
    /** The fine-tuned model; may be [model]: it is replaced in one step at the end. */
    val output: String,
    /** What the privacy of that log has cost so far. Made by the first charge. Never delete it. */
    val ledger: String,
    /** Of this run, or of all [plannedRuns]. */
    val epsilon: Double,
    val delta: Double,
    /** A number of users (or what [unit] says) that may be known to anybody. */
    val numUsersPublic: Int,
    val unit: PrivacyUnit,
    /** Limit over everything ever done with this data; 0: the limit already in the ledger, or none. */
    val budgetEpsilon: Double = 0.0,
    /** With it a run that is stopped goes on later, and pays only for the steps that are left. Keep it like the log. */
    val checkpoint: String? = null,
    /** Steps; 0: at the end of each charge. */
    val checkpointEvery: Long = 0,
    val epochs: Double = 0.0,
    val expectedBatch: Int = 0,
    val learningRate: Double = 0.0,
    val clippingNorm: Double = 0.0,
    val threads: Int = 0,
    val plannedRuns: Int = 0,
    /** 1 and more: the model stays as it is, and an adapter of this rank is trained beside it. */
    val adapterRank: Int = 0,
    val adapter: String? = null,
    /** Name of the data set in ledger and provenance: the same each time; null: the log's file name. */
    val dataset: String? = null,
    val otherData: Boolean = false,
    val unchargedTuning: String? = null,
    val sessionGapSeconds: Long = 0,
    /** How many of the log's times make a second, with every unit: 1000 for milliseconds; 0: 1. */
    val timesPerSecond: Int = 0
)

/** A step that was taken. */
data class Progress(
    val step: Long,
    val steps: Long,
    /** Local only: not private, do not send it anywhere. */
    val loss: Double,
    /** Spent by this run so far; not a number while it is not known. Show it rounded up. */
    val epsilon: Double
)

/** What a run did. */
data class PersonaliseResult(
    val steps: Long,
    val plannedSteps: Long,
    /** The step of the checkpoint that was gone on from; 0: there was none. */
    val resumedFrom: Long,
    /** What may be stated of this run, at its delta. */
    val epsilon: Double,
    val noiseMultiplier: Double,
    /** This and what follows is counted on the log. Local only: not private, do not send it anywhere. */
    val numRecords: Long,
    val recordsTooShort: Long,
    val gradientsDropped: Long,
    val numEvents: Long,
    val unknownEvents: Long,
    val unknownItems: Long,
    val badRows: Long,
    /** The last checkpoint could not be written. The run went on without. */
    val checkpointFailed: Boolean
)

/**
 * Fine-tunes the model privately on the log, and returns when the new model is written. Every step is charged to the
 * ledger before its noise is drawn.
 *
 * Cancelling the coroutine stops the run after the step it is in: no model is written, what was charged stays charged,
 * and with [PersonaliseOptions.checkpoint] the next call with the same options goes on from there. Cancelling after the
 * last step stops nothing: the model is written, and this call returns its result in the cancelled coroutine, which
 * ends where it next waits. [onProgress] is called after each step, on the thread that works; what it throws ends the
 * run and comes out of this call.
 */
suspend fun personalise(
    options: PersonaliseOptions,
    anchor: Anchor? = null,
    onProgress: (Progress) -> Unit = {}
): PersonaliseResult = whileActive(onProgress) { Native.personalise(options, anchor, it) }

/**
 * The same on the caller's thread, for Java and for tests. [onProgress] returns false to stop:
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

/**
 * Runs work that takes long on a thread for it, and stops it when the coroutine is cancelled. What was done whole by
 * then is returned: withContext alone would lose it where it changes the thread, so it stands in one that cannot be
 * cancelled.
 */
internal suspend fun <T> whileActive(onProgress: (Progress) -> Unit, work: (Native.Progress) -> T): T {
    val job = coroutineContext[Job]
    val isActive = { job == null || job.isActive }
    val progress = Native.Progress { step, steps, loss, epsilon ->
        onProgress(Progress(step, steps, loss, epsilon))
        isActive()
    }
    return withContext(NonCancellable) {
        withContext(Dispatchers.IO) {
            if (!isActive()) throw CancellationException("cancelled before it began: nothing was charged")
            try {
                work(progress)
            } catch (stopped: WispException) {
                if (stopped.code == WispException.Code.CANCELLED) throw CancellationException(stopped.message)
                throw stopped
            }
        }
    }
}
