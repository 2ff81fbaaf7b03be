package dev.wisp.example

import android.content.res.AssetManager
import dev.wisp.Anchor
import dev.wisp.EventLog
import dev.wisp.Life
import dev.wisp.NightOptions
import dev.wisp.NightResult
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
 * What the app does with wisp: it keeps a log, plans a year on the first night, lives one night of it when the device
 * charges, and recommends with what is served. All files lie in `folder`, the app's own.
 *
 * A device is one person's, so a record is a day of it: what is protected is each day, not the person as a whole
 * (docs/privacy.md).
 */
class Cafe(private val assets: AssetManager, folder: File, private val anchor: Anchor) {
    private val base = File(folder, "cafe.wisp")
    private val served = File(folder, "mine.wisp")
    private val log = File(folder, "log.db")
    private val ledger = File(folder, "log.ledger")
    private var isCurrent = false

    /** Something happened. */
    fun ordered(guest: String, item: String, time: Long = System.currentTimeMillis() / 1000) =
        EventLog.open(log).use { it.append(guest, item, time) }

    /** What the guest may like next. Not on the main thread: it opens the model. */
    fun list(guest: String, count: Int): List<Recommendation> = open().use { model ->
        val history = EventLog.open(log).use { it.history(model, guest) }
        model.recommend(history, count)
    }

    private fun open(): Recommender = if (served.exists()) Recommender.open(served) else Recommender.open(unpacked())

    /** One night. The first call makes the plan, later ones find it. Cancelling stops a night; the next one goes on. */
    suspend fun night(onProgress: (Progress) -> Unit = {}): NightResult {
        val model = unpacked().path
        Life.plan(
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
        EventLog.open(log).close() // makes it where nothing happened yet
        return Life.night(NightOptions(model, log.path, served.path, ledger.path), anchor, onProgress = onProgress)
    }

    /** What all nights have cost so far, in words. */
    fun statement(): String = Life.statement(ledger.path, DELTA, anchor)

    /** Nights read the base from a file of its own: a copy of the asset, made anew when an update brings another. */
    private fun unpacked(): File = synchronized(unpacking) {
        if (!isCurrent) {
            val shipped = Recommender.open(assets, base.name, QUICK).use { it.info.contentHash }
            val had = if (base.exists()) hashOf(base) else null
            if (had != shipped) renew(had != null)
            isCurrent = true
        }
        base
    }

    /** Null where the file is damaged, as a power cut may leave it. */
    private fun hashOf(model: File) = try {
        Recommender.open(model, QUICK).use { it.info.contentHash }
    } catch (damaged: WispException) {
        if (damaged.code != WispException.Code.INVALID_DATA) throw damaged
        null
    }

    /**
     * Carries what was learned over to the new base first. Where the app ends before the file is renamed, both are done
     * again.
     */
    private fun renew(hasBase: Boolean) {
        val next = File(base.parentFile, "next-${base.name}") // takes the place of one that an earlier call left
        try {
            assets.open(base.name).use { from ->
                next.outputStream().use {
                    from.copyTo(it)
                    it.fd.sync()
                }
            }
            if (hasBase) Life.rebase(base.path, next.path, served.path)
            check(next.renameTo(base)) { "'$next' cannot be renamed to '$base'" }
        } finally {
            next.delete()
        }
    }

    private companion object {
        /** For a hash, which is in the file's description. */
        val QUICK = OpenOptions(verify = false)
        const val DELTA = 1e-6

        /** The app makes several of this class, and a night may begin while a list is made. */
        val unpacking = Any()
    }
}
