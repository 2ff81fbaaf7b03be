package dev.wisp.example

import android.content.res.AssetManager
import dev.wisp.Anchor
import dev.wisp.EventLog
import dev.wisp.Deployment
import dev.wisp.PlannedRunOptions
import dev.wisp.PlannedRunResult
import dev.wisp.OpenOptions
import dev.wisp.PlanOptions
import dev.wisp.PrivacyUnit
import dev.wisp.Progress
import dev.wisp.Recommendation
import dev.wisp.Recommender
import dev.wisp.WispException
import dev.wisp.open
import java.io.File

/**
 * The app's use of wisp: it keeps a log, plans a year on the first run, runs one run of the plan when the device
 * charges, and recommends with the served model. All files lie in `folder`, the app's own.
 *
 * A device belongs to one person, so a record is a day: each day is protected, not the person as a whole
 * (docs/privacy.md).
 */
class Cafe(private val assets: AssetManager, folder: File, private val anchor: Anchor) {
    private val base = File(folder, "cafe.wisp")
    private val served = File(folder, "mine.wisp")
    private val log = File(folder, "log.db")
    private val ledger = File(folder, "log.ledger")
    private var isCurrent = false

    /** Logs an order. */
    fun ordered(guest: String, item: String, time: Long = System.currentTimeMillis() / 1000) =
        EventLog.open(log).use { it.append(guest, item, time) }

    /** Items that the guest may like next. It opens the model, so do not call it on the main thread. */
    fun list(guest: String, count: Int): List<Recommendation> = open().use { model ->
        val history = EventLog.open(log).use { it.history(model, guest) }
        model.recommend(history, count)
    }

    private fun open(): Recommender = if (served.exists()) Recommender.open(served) else Recommender.open(unpacked())

    /**
     * Runs one run. The first call makes the plan, later ones find it. Cancelling stops a run; the next one
     * resumes.
     */
    suspend fun runPlanned(onProgress: (Progress) -> Unit = {}): PlannedRunResult {
        val model = unpacked().path
        Deployment.plan(
            PlanOptions(
                model = model,
                ledger = ledger.path,
                output = served.path,
                dataset = "the cafe's log",
                epsilon = 8.0,
                delta = DELTA,
                numRecordsPublic = 365, // days of a year: a number that anybody may know
                runs = 365,
                unit = PrivacyUnit.DAY
            ),
            anchor
        )
        EventLog.open(log).close() // creates the file if nothing was ordered yet
        val options = PlannedRunOptions(model, log.path, served.path, ledger.path)
        return Deployment.runPlanned(options, anchor, onProgress = onProgress)
    }

    /** How many runs the plan has left; null: there is no plan yet. */
    fun runsLeft(): Long? {
        if (!ledger.exists()) return null
        val budget = Deployment.budget(ledger.path, DELTA, anchor)
        return if (budget.hasPlan) budget.runsLeft else null
    }

    /** The cost of all runs so far, in words. */
    fun statement(): String = Deployment.statement(ledger.path, DELTA, anchor)

    /** Runs read the base from a copy of the asset, which is renewed when an update brings another base. */
    private fun unpacked(): File = synchronized(unpacking) {
        if (!isCurrent) {
            val shipped = Recommender.open(assets, base.name, QUICK).use { it.info.contentHash }
            val had = if (base.exists()) hashOf(base) else null
            if (had != shipped) renew(had != null)
            isCurrent = true
        }
        base
    }

    /** Null if the file is damaged, as after a power cut. */
    private fun hashOf(model: File) = try {
        Recommender.open(model, QUICK).use { it.info.contentHash }
    } catch (damaged: WispException) {
        if (damaged.code != WispException.Code.INVALID_DATA) throw damaged
        null
    }

    /**
     * First carries what was learned over to the new base. If the app ends before the file is renamed, both steps are
     * repeated. The previous base stays where that would lose what was learned.
     */
    private fun renew(hasBase: Boolean) {
        val next = File(base.parentFile, "next-${base.name}") // replaces one that an earlier call left
        try {
            assets.open(base.name).use { from ->
                next.outputStream().use {
                    from.copyTo(it)
                    it.fd.sync()
                }
            }
            if (hasBase && !carriesOver(next)) return
            check(next.renameTo(base)) { "'$next' cannot be renamed to '$base'" }
        } finally {
            next.delete()
        }
    }

    private fun carriesOver(next: File) = try {
        Deployment.rebase(base.path, next.path, served.path, ledger.path)
        true
    } catch (refused: WispException) {
        if (refused.code != WispException.Code.INVALID_ARGUMENT) throw refused
        false
    }

    private companion object {
        /** Verification is not needed for the hash, which is in the file's description. */
        val QUICK = OpenOptions(verify = false)
        const val DELTA = 1e-6

        /** The app creates several objects of this class, and a run may begin while a list is computed. */
        val unpacking = Any()
    }
}
