package dev.wisp

import java.lang.ref.PhantomReference
import java.lang.ref.Reference
import java.lang.ref.ReferenceQueue
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * A handle of the library: one thread at a time uses it, others wait. Closing waits too, and after it every use is an
 * [IllegalStateException]. No callback runs while the lock is held, so nothing can wait for itself.
 *
 * One that is lost without being closed is closed when a later one is made.
 */
internal class Handle(private val what: String, number: Long, release: (Long) -> Unit) {
    private val kept = Kept(this, number, release)

    fun <T> use(work: (Long) -> T): T = try {
        kept.use(what, work)
    } finally {
        Reference.reachabilityFence(this) // not lost while it is used
    }

    fun close() = kept.close()
}

/** What is left of a handle that was lost: its number, and how it is given back, which must not refer to its owner. */
private class Kept(handle: Handle, private var number: Long, private val release: (Long) -> Unit) :
    PhantomReference<Handle>(handle, lost) {
    private val lock = ReentrantLock()

    init {
        while (true) (lost.poll() as Kept? ?: break).close()
        all += this
    }

    fun <T> use(what: String, work: (Long) -> T): T = lock.withLock {
        check(number != 0L) { "$what was closed, and cannot be used again" }
        work(number)
    }

    fun close() = lock.withLock {
        val closed = number
        number = 0
        all -= this
        if (closed != 0L) release(closed)
    }

    private companion object {
        val lost = ReferenceQueue<Handle>()

        /** A reference that nobody keeps is never found in the queue. */
        val all: MutableSet<Kept> = ConcurrentHashMap.newKeySet<Kept>()
    }
}
