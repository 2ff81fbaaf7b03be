package dev.wisp

import java.io.Closeable
import java.io.File

/** One event. The time is in any unit that increases; the units session and day need times since 1970. */
data class Event(val user: String, val item: String, val time: Long)

/** Counted on the log. Local only: not private, do not send it anywhere. */
data class LogCounts(
    val events: Long,
    val users: Long,
    val items: Long,
    val oldest: Long,
    val newest: Long,
    /** Events whose user, item or time training cannot read. */
    val unreadable: Long
)

/** Selects what is deleted ([EventLog.prune]). */
data class PruneOptions @JvmOverloads constructor(
    /** The plan's unit. */
    val unit: PrivacyUnit,
    /** Delete events before this time; null: delete none for its age. */
    val before: Long? = null,
    /** [PrivacyUnit.USER]: keep so many of each user; 0: all. */
    val newestPerUser: Long = 0,
    val sessionGapSeconds: Long = 0,
    /** How many of the log's time values make a second, with every unit: 1000 for milliseconds; 0: 1. */
    val timesPerSecond: Int = 0
) {
    private val hasBefore: Boolean = before != null
    private val beforeTime: Long = before ?: 0
}

/**
 * The log of events: one SQLite file, which runs and [personalise] read. Keep it in the app's own storage. Threads
 * may share it: they take turns.
 */
class EventLog private constructor(number: Long) : Closeable {
    private val handle = Handle("the log", number) { Native.closeLog(it) }

    /** The event is on disk when the call returns. */
    fun append(user: String, item: String, time: Long) = append(listOf(Event(user, item, time)))

    /** Appends all events or none, with one write to the disk. */
    fun append(events: List<Event>) {
        val users = Array(events.size) { events[it].user }
        val items = Array(events.size) { events[it].item }
        val times = LongArray(events.size) { events[it].time }
        handle.use { Native.append(it, users, items, times) }
    }

    /** The user's newest items that the model knows, oldest first: as many as the model reads. */
    fun history(model: Recommender, user: String): IntArray =
        handle.use { log -> model.withHandle { Native.history(log, it, user, model.info.maxLength) } }

    /**
     * Deletes all events of the user and returns their number. Models keep what they learned from them, under their
     * guarantee.
     */
    fun erase(user: String): Long = handle.use { Native.erase(it, user) }

    /** Deletes old events and returns their number. */
    fun prune(options: PruneOptions): Long = handle.use { Native.prune(it, options) }

    fun counts(): LogCounts = handle.use { Native.counts(it) }

    /** At most [limit] users, by key, starting behind [after]. Local only: not private. */
    @JvmOverloads
    fun users(after: String = "", limit: Int = 100): List<String> =
        handle.use { Native.users(it, after, limit) }.split('\n').filter { it.isNotEmpty() }

    /** Waits for the thread that uses it. May be called again. */
    override fun close() = handle.close()

    internal fun <T> withHandle(work: (Long) -> T): T = handle.use(work)

    companion object {
        /** Opens the file, or creates it. */
        @JvmStatic
        fun open(file: File): EventLog = EventLog(Native.openLog(file.path))
    }
}
