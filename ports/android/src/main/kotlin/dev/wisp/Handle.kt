package dev.wisp

import java.util.concurrent.locks.ReentrantLock
import kotlin.concurrent.withLock

/**
 * A handle of the library: one thread at a time uses it, others wait. Closing waits too, and after it every use is an
 * [IllegalStateException]. No callback runs while the lock is held, so nothing can wait for itself.
 */
internal class Handle(private val what: String, private var number: Long, private val release: (Long) -> Unit) {
    private val lock = ReentrantLock()

    fun <T> use(work: (Long) -> T): T = lock.withLock {
        check(number != 0L) { "$what was closed, and cannot be used again" }
        work(number)
    }

    fun close() = lock.withLock {
        val closed = number
        number = 0
        if (closed != 0L) release(closed)
    }
}
