package dev.wisp

import java.io.Closeable
import java.io.File
import java.nio.ByteBuffer

/** Selects the kernels that compute the scores. */
enum class Backend(internal val number: Int) {
    /** The library's own kernels in 32-bit floats. */
    SIMD(0),

    /** Linear layers over 8-bit integers: faster, a quarter of the memory, slightly different scores. */
    INT8(2)
}

/** Options of opening a model. Defaults are the library's. */
data class OpenOptions @JvmOverloads constructor(
    val backend: Backend = Backend.SIMD,
    /** Verify every weight. Without it a damaged weight may change recommendations. */
    val verify: Boolean = true,
    /** An adapter that was trained for this model ([PersonaliseOptions.adapterRank]). */
    val adapter: String? = null,
    /** Number of threads that share one history; 0 and 1: the caller's alone. */
    val threads: Int = 0,
    /** Key/value cache in float16: half the memory, slightly different scores. */
    val float16Cache: Boolean = false,
    /** [WispException.Code.INVALID_ARGUMENT] if [Recommender.planMemory] is more; 0: no limit. */
    val maxBytes: Long = 0
)

/** One item of a list. Scores are comparable within one list only. */
data class Recommendation(val item: Int, val score: Float, val key: String, val name: String)

/** Properties of an open model. */
data class ModelInfo(
    val numItems: Int,
    /** The number of newest events of a history that the model reads. */
    val maxLength: Int,
    val width: Int,
    val numBlocks: Int,
    val numRetired: Int,
    val numProvenance: Int,
    val format: Int,
    /** Equal files have equal hashes. */
    val contentHash: Long,
    val fileBytes: Long,
    /** Lists may hold items of the history, as the model's maker chose. */
    val allowSeen: Boolean
)

/**
 * An open model.
 *
 *     Recommender.open(assets, "cafe.wisp").use { model ->
 *         for (r in model.recommend(listOf("tea-mint", "bagel-lentil"), count = 5)) println("${r.name}: ${r.score}")
 *     }
 *
 * Items have an index from 0 on, and a key: the name they carry in the app's own data. Threads may share a recommender:
 * they take turns. Open it twice to answer two threads at once. An open model stays as it is while its file is
 * replaced.
 */
class Recommender private constructor(number: Long) : Closeable {
    private val handle = Handle("the recommender", number) { Native.closeModel(it) }

    val info: ModelInfo = try {
        handle.use { Native.info(it) }
    } catch (failed: Throwable) { // nobody else could close it
        close()
        throw failed
    }

    /**
     * At most [count] items after [history] (oldest first), best first. An empty history (cold start) gets popular
     * items. Items of [excluded] are never recommended. Items of the history are recommended again only if [allowSeen]
     * says so or, if that is null, the model does. With [candidates] only these are considered, and an empty list gives
     * no item.
     */
    @JvmOverloads
    fun recommend(
        history: IntArray,
        count: Int = 10,
        excluded: IntArray? = null,
        candidates: IntArray? = null,
        allowSeen: Boolean? = null
    ): List<Recommendation> {
        require(count >= 0) { "count is $count, allowed is a number from 0 on" }
        val scores = FloatArray(minOf(count, info.numItems))
        return handle.use { model ->
            val seen = if (allowSeen == null) 0 else if (allowSeen) 1 else 2 // 0: as the model says
            val items = Native.recommend(model, history, excluded, candidates, seen, scores)
            val keys = Native.keys(model, items)
            val names = Native.names(model, items)
            items.indices.map { Recommendation(items[it], scores[it], keys[it], names[it]) }
        }
    }

    /** [recommend] by keys. Keys that the model does not know are left out of the history, as in its training. */
    fun recommend(history: List<String>, count: Int = 10, excluded: List<String> = emptyList()): List<Recommendation> =
        recommend(known(history), count, known(excluded))

    private fun known(keys: List<String>): IntArray = keys.mapNotNull { find(it) }.toIntArray()

    /** The index of a key; null if the model does not know it. */
    fun find(key: String): Int? = handle.use { Native.findItem(it, key) }.takeIf { it >= 0 }

    /** "" for a model without keys, and for an index out of range. */
    fun key(item: Int): String = handle.use { Native.keys(it, intArrayOf(item))[0] }

    /** The name for people; "" as for [key]. */
    fun name(item: Int): String = handle.use { Native.names(it, intArrayOf(item))[0] }

    /** Waits for the thread that uses it. May be called again. */
    override fun close() = handle.close()

    internal fun <T> withHandle(work: (Long) -> T): T = handle.use(work)

    companion object {
        /** The alignment that the library requires of a model in memory. */
        private const val ALIGNMENT = 64

        /** Maps the file. It must not be changed in place while it is open; replacing it is fine. */
        @JvmStatic
        @JvmOverloads
        fun open(file: File, options: OpenOptions = OpenOptions()): Recommender =
            Recommender(Native.openFile(file.path, options))

        /**
         * Opens the bytes between the buffer's position and its limit. They are read in place if the buffer is direct
         * and they start on a multiple of 64 bytes, as in a mapped file; they must then stay unchanged. Otherwise they
         * are copied. `name` is used in messages.
         */
        @JvmStatic
        @JvmOverloads
        fun open(
            buffer: ByteBuffer,
            name: String = "the model in memory",
            options: OpenOptions = OpenOptions()
        ): Recommender {
            val direct = if (startsWell(buffer)) buffer.duplicate() else copyOf(buffer)
            val start = direct.position().toLong()
            return Recommender(Native.openMemory(name, direct, start, direct.remaining().toLong(), options))
        }

        /** Opens [length] bytes from [offset] on of an open file, 0: to its end. The descriptor stays the caller's. */
        @JvmStatic
        @JvmOverloads
        fun openDescriptor(
            name: String,
            descriptor: Int,
            offset: Long,
            length: Long,
            options: OpenOptions = OpenOptions()
        ): Recommender = Recommender(Native.openDescriptor(name, descriptor, offset, length, options))

        /** Bytes that the model will hold beside its file. Reads only the file's description. */
        @JvmStatic
        @JvmOverloads
        fun planMemory(file: File, options: OpenOptions = OpenOptions()): Long = Native.planMemory(file.path, options)

        private fun startsWell(buffer: ByteBuffer): Boolean =
            buffer.isDirect && (Native.address(buffer) + buffer.position()) % ALIGNMENT == 0L

        private fun copyOf(buffer: ByteBuffer): ByteBuffer {
            val size = buffer.remaining()
            val copy = ByteBuffer.allocateDirect(size + ALIGNMENT)
            val start = (ALIGNMENT - Native.address(copy) % ALIGNMENT).toInt() % ALIGNMENT
            copy.position(start)
            copy.put(buffer.duplicate())
            copy.position(start)
            copy.limit(start + size)
            return copy
        }
    }
}
