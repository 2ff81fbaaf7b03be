package dev.wisp

import java.io.Closeable
import java.io.IOException
import java.io.InputStream
import java.net.MalformedURLException
import java.net.UnknownServiceException
import java.security.cert.CertPathValidatorException
import java.security.cert.CertificateException
import java.util.concurrent.TimeUnit
import javax.net.ssl.SSLPeerUnverifiedException

/** Options of a device of a fleet. Defaults are the library's. Files are paths. */
data class FleetOptions @JvmOverloads constructor(
    /** policy.json, which comes with the app. */
    val policy: String,
    /** The base, as shipped. */
    val model: String,
    /** The log of events; if it is missing or damaged, zeros are sent. */
    val log: String,
    /** The ledger of fleets alone. Created if absent. Never delete it. */
    val ledger: String,
    /** Where a model of the fleet is kept, if it is not worse here; null: nowhere. */
    val output: String? = null,
    /** An answer that the server has not got yet; null: beside the ledger. */
    val reply: String? = null,
    /** How events are grouped for training. If the policy protects records, they are these. */
    val unit: PrivacyUnit = PrivacyUnit.USER,
    val sessionGapSeconds: Long = 0,
    /** How many of the log's time values make a second: 1000 for milliseconds; 0: 1. */
    val timesPerSecond: Int = 0,
    /** The mean time between two questions for work while the server has none; 0: 30. */
    val askSeconds: Double = 0.0,
    /** For a policy that protects records, and only then: the ledger that their runs charge. */
    val recordsLedger: String? = null,
    /** Name of the records' data set. */
    val dataset: String? = null
)

/** What a call of [Fleet.work] did. */
data class FleetProgress(
    /** Answers that the server has got in this call. */
    val answers: Int,
    /** Rounds that this device took part in, in all. */
    val participations: Int,
    val mostParticipations: Int,
    /** Call again after so many seconds. */
    val waitSeconds: Double
)

/**
 * A device of a fleet: many devices train one model together, each sends a bounded update, and only noised sums of many
 * are released (docs/fleet.md).
 *
 *     val transport = HttpFleetTransport(KeyStoreFleetKey.of())
 *     Fleet.open(options, transport, KeyStoreAnchor.of(context, "fleet")).use { it.work(60.0) }
 *
 * A participation is charged to the ledger before the first byte of an update leaves. Threads may share a fleet: they
 * take turns. Callbacks run on the working thread and must not use the fleet.
 */
class Fleet private constructor(private val calls: FleetCalls, number: Long) : Closeable {
    private val handle = Handle("the fleet", number) { Native.closeFleet(it) }

    /**
     * Joins, asks for work, does it, and sends the answer, for about so many seconds; 0: until nothing is there to do
     * now. Safe to call again after a crash and after every error. [WispException.Code.IO]: the server cannot be
     * reached, or a file cannot be written; call again later, each time later than before.
     *
     * Cancelling the coroutine stops the work after the training or the call that it is in. If everything was done by
     * then, the result is returned, as [personalise] does.
     */
    suspend fun work(seconds: Double): FleetProgress = whileActive { isActive -> work(seconds, isActive) }

    /** [work] on the caller's thread, for Java and for tests. */
    fun workBlocking(seconds: Double): FleetProgress = work(seconds) { true }

    /** Stops the work like a cancellation, and waits for its thread. May be called again. */
    override fun close() {
        calls.isClosed = true
        handle.close()
    }

    private fun work(seconds: Double, isActive: () -> Boolean): FleetProgress = handle.use {
        calls.isActive = isActive
        calls.fault = null
        try {
            Native.workFleet(it, seconds)
        } catch (failed: WispException) {
            if (failed.code == WispException.Code.IO && calls.stops)
                throw WispException(WispException.Code.CANCELLED, "stopped before it was done; the next call goes on")
            calls.fault?.let { fault -> failed.initCause(fault) }
            throw failed
        }
    }

    companion object {
        /**
         * Reads the files but for the log. Each ledger has its own anchor, always or never. [onSentence] receives what
         * happened, for the device alone.
         */
        @JvmStatic
        @JvmOverloads
        fun open(
            options: FleetOptions,
            transport: FleetTransport,
            anchor: Anchor? = null,
            recordsAnchor: Anchor? = null,
            onSentence: ((String) -> Unit)? = null
        ): Fleet {
            val calls = FleetCalls(transport)
            val logger = onSentence?.let { Native.Logger { _, sentence -> it(sentence) } }
            return Fleet(
                calls,
                Native.openFleet(options, transport.publicKeyPem, calls, anchor, recordsAnchor, logger)
            )
        }
    }
}

/** Calls of the library to a transport. It must not refer to the fleet, which could not be lost then. */
internal class FleetCalls(private val transport: FleetTransport) : Native.Transport {
    @Volatile
    var isClosed = false

    /** Is the work still wanted? */
    var isActive: () -> Boolean = { true }

    /** Why the last post failed. */
    var fault: IOException? = null

    val stops: Boolean get() = isClosed || !isActive()

    override fun post(url: String, headers: String, body: ByteArray, answer: Long, reply: DoubleArray): Int {
        fault = null
        if (stops) return LATER
        return try {
            val given = transport.post(url, parsed(headers), body)
            given.body.use { take(it, answer) }
            reply[0] = given.status.toDouble()
            reply[1] = given.serverTime
            DONE
        } catch (failed: IOException) {
            fault = failed
            if (isFinal(failed)) NEVER else LATER
        }
    }

    override fun sign(message: ByteArray): ByteArray = transport.sign(message)

    override fun verify(keyPem: String, message: ByteArray, der: ByteArray): Boolean =
        transport.verify(keyPem, message, der)

    override fun pause(seconds: Double): Boolean {
        val end = System.nanoTime() + (seconds * TimeUnit.SECONDS.toNanos(1)).toLong()
        while (!stops) {
            val left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime())
            if (left <= 0) return true
            Thread.sleep(minOf(left, STEP_MILLISECONDS))
        }
        return false
    }

    private fun parsed(headers: String): Map<String, String> =
        headers.lines().filter { it.isNotEmpty() }.associate { it.substringBefore(": ") to it.substringAfter(": ") }

    private fun take(body: InputStream, answer: Long) {
        val bytes = ByteArray(PIECE)
        val begin = System.nanoTime()
        while (true) {
            val length = body.read(bytes)
            if (length < 0 || !Native.takeAnswer(answer, bytes, length)) return // the library knows of too many
            if (stops || System.nanoTime() - begin > TimeUnit.SECONDS.toNanos(MOST_SECONDS))
                throw IOException("the answer was not read to its end")
        }
    }

    private companion object {
        const val DONE = 0
        const val LATER = 1
        const val NEVER = 2
        const val PIECE = 1 shl 16
        const val STEP_MILLISECONDS = 250L
        const val MOST_SECONDS = 900L
        const val MOST_CAUSES = 16

        /** A certificate that is not trusted. Cut connections are errors of TLS too, and may be whole later. */
        fun isFinal(failed: IOException): Boolean =
            generateSequence<Throwable>(failed) { it.cause }.take(MOST_CAUSES).any {
                it is CertificateException || it is CertPathValidatorException || it is SSLPeerUnverifiedException ||
                    it is MalformedURLException || it is UnknownServiceException
            }
    }
}
