package dev.wisp

import java.lang.ref.PhantomReference
import java.lang.ref.Reference
import java.lang.ref.ReferenceQueue
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * A handle of the library. One thread at a time uses it, others wait. Closing waits too, and every later use is an
 * [IllegalStateException]. A callback that uses the handle which it works for is an [IllegalStateException] too.
 *
 * A handle that is lost without being closed is closed when a later one is created.
 */
internal class Handle(what: String, number: Long, release: (Long) -> Unit) {
    private val kept = Kept(this, what, number, release)

    fun <T> use(work: (Long) -> T): T = try {
        kept.use(work)
    } finally {
        Reference.reachabilityFence(this) // it cannot be lost while it is used
    }

    fun close() = kept.close()
}

/** The rest of a handle that was lost: its number, and how to release it, which must not refer to the owner. */
private class Kept(
    handle: Handle,
    private val what: String,
    private var number: Long,
    private val release: (Long) -> Unit
) : PhantomReference<Handle>(handle, lost) {
    private val lock = ReentrantLock()

    init {
        while (true) (lost.poll() as Kept? ?: break).close()
        all += this
    }

    fun <T> use(work: (Long) -> T): T = alone {
        check(number != 0L) { "$what was closed, and cannot be used again" }
        work(number)
    }

    fun close() = alone {
        val closed = number
        number = 0
        all -= this
        if (closed != 0L) release(closed)
    }

    private fun <T> alone(work: () -> T): T {
        check(!lock.isHeldByCurrentThread) { "$what is at work on this thread: its callbacks must not use it" }
        return lock.withLock(work)
    }

    private companion object {
        val lost = ReferenceQueue<Handle>()

        /** Keeps these references alive; otherwise they never reach the queue. */
        val all: MutableSet<Kept> = ConcurrentHashMap.newKeySet<Kept>()
    }
}
