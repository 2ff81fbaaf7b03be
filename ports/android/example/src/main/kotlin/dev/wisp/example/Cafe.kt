package dev.wisp.example

import android.content.res.AssetManager
import dev.wisp.Anchor
import dev.wisp.EventLog
import dev.wisp.Life
import dev.wisp.NightOptions
import dev.wisp.NightResult
import dev.wisp.PlanOptions
import dev.wisp.PrivacyUnit
import dev.wisp.Progress
import dev.wisp.Recommendation
import dev.wisp.Recommender
import java.io.File

/**
 * What the app does with wisp: it keeps a log, plans a year on the first night, lives one night of it when the device charges, and
 * recommends with what is served. All files lie in `folder`, the app's own.
 */
class Cafe(private val assets: AssetManager, folder: File, private val anchor: Anchor) {
    private val base = File(folder, "cafe.wisp")
    private val served = File(folder, "mine.wisp")
    private val log = File(folder, "log.db")
    private val ledger = File(folder, "log.ledger")

    /** Something happened. */
    fun ordered(guest: String, item: String, time: Long = System.currentTimeMillis() / 1000) =
        EventLog.open(log).use { it.append(guest, item, time) }

    /** What the guest may like next. Not on the main thread: it opens the model. */
    fun list(guest: String, count: Int): List<Recommendation> = open().use { model ->
        val history = EventLog.open(log).use { it.history(model, guest) }
        model.recommend(history, count)
    }

    private fun open(): Recommender = if (served.exists()) Recommender.open(served) else Recommender.open(unpacked())

    /** One night, with the plan before the first. Cancelling stops it; the next night goes on. */
    suspend fun night(onProgress: (Progress) -> Unit = {}): NightResult {
        val model = unpacked().path
        if (!ledger.exists() || !Life.budget(ledger.path, DELTA, anchor).hasPlan) {
            Life.plan(
                PlanOptions(
                    model = model,
                    ledger = ledger.path,
                    dataset = "the cafe's log",
                    epsilon = 4.0,
                    delta = DELTA,
                    numRecordsPublic = 2000, // guests in a year: a number that anybody may know
                    runs = 365,
                    unit = PrivacyUnit.USER
                ),
                anchor
            )
        }
        EventLog.open(log).close() // makes it where nothing happened yet
        return Life.night(NightOptions(model, log.path, served.path, ledger.path), anchor, onProgress = onProgress)
    }

    /** What all nights have cost so far, in words. */
    fun statement(): String = Life.statement(ledger.path, DELTA, anchor)

    /** Nights read the base from a file of its own: its asset is copied out once. */
    private fun unpacked(): File {
        if (!base.exists()) {
            val next = File(base.path + ".next")
            assets.open(base.name).use { from -> next.outputStream().use { from.copyTo(it) } }
            check(next.renameTo(base)) { "'$next' cannot be renamed to '$base'" }
        }
        return base
    }

    private companion object {
        const val DELTA = 1e-5
    }
}
