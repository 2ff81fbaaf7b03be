package dev.wisp

import android.content.res.AssetManager
import java.io.File
import java.io.IOException
import java.io.RandomAccessFile
import java.lang.ref.WeakReference
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/** Lines of the program, "1. Mint Tea 7.022". Every way to open the model must give them. */
fun recommendCases(t: Cases, history: List<String>, expected: List<String>) {
    fun lines(model: Recommender): List<String> =
        model.recommend(history, expected.size).mapIndexed {
            i, r -> "${i + 1}. ${r.name} ${String.format("%.3f", r.score)}"
        }

    t.case("a file gives the program's list") { Recommender.open(t.model).use { same(lines(it), expected) } }
    t.case("the files that every port opens are answered as tests/golden/0.1/answers.txt says") {
        val answered = File(t.log.absoluteFile.parentFile, "golden").let { golden ->
            File(golden, "answers.txt").readLines().map { answer(golden, it) }
        }
        same(answered.size, 11)
    }
    t.case("a mapped buffer is read where it lies, and any other is copied") {
        RandomAccessFile(t.model, "r").use { file ->
            val mapped = file.channel.map(FileChannel.MapMode.READ_ONLY, 0, file.length())
            Recommender.open(mapped).use { same(lines(it), expected) }
        }
        val bytes = t.model.readBytes()
        Recommender.open(ByteBuffer.wrap(bytes)).use { same(lines(it), expected) }
        for (shift in listOf(0, 1, 63)) {
            val direct = ByteBuffer.allocateDirect(bytes.size + shift).apply { position(shift) }
            direct.put(bytes).position(shift)
            val model = Recommender.open(direct)
            if (shift > 0) repeat(4) { System.gc() }
            model.use { same(lines(it), expected) }
            same(direct.position(), shift)
        }
    }
    t.case("the library's own side keeps a buffer as long as its model is open, and no longer") {
        val bytes = t.model.readBytes()
        val (model, buffer) = ByteBuffer.allocateDirect(bytes.size + 64).let {
            val start = ((64 - Native.address(it) % 64) % 64).toInt()
            it.position(start)
            it.put(bytes)
            Native.openMemory("m", it, start.toLong(), bytes.size.toLong(), OpenOptions()) to WeakReference(it)
        }
        repeat(4) { System.gc() }
        holds(buffer.get() != null) { "the buffer of an open model is gone" }
        Native.closeModel(model)
        repeat(4) { System.gc() }
        holds(buffer.get() == null) { "the buffer of a closed model stays" }
    }
    t.case("logs that nobody closed are closed when another is opened") {
        val path = File(t.folder(), "log.db").absolutePath
        fun files() = File("/proc/self/fd").listFiles()!!.count {
            try { Files.readSymbolicLink(it.toPath()).toString() == path } catch (gone: IOException) { false }
        }
        repeat(40) { EventLog.open(File(path)).append("a", "x", 1) }
        val many = files()
        for (i in 1..100) {
            System.gc()
            EventLog.open(File(path)).close()
            if (files() <= 1) break
            Thread.sleep(20)
        }
        holds(files() <= 1) { "of $many files ${files()} stay open" }
    }
    t.case("an asset is opened where it lies in the package") {
        val folder = t.folder()
        for (offset in listOf(0, 4, 4096)) {
            val name = "cafe$offset.wisp"
            File(folder, "$name.$offset").writeBytes(ByteArray(offset) { 7 } + t.model.readBytes())
            Recommender.open(AssetManager(folder), name).use { same(lines(it), expected) }
        }
        refused(WispException.Code.IO, "noCompress") { Recommender.open(AssetManager(folder), "none.wisp") }
    }
    t.case("keys, names and indices agree") {
        Recommender.open(t.model).use { model ->
            val item = model.find("tea-mint")!!
            same(model.key(item), "tea-mint")
            same(model.name(-1) + model.key(Int.MAX_VALUE), "")
            same(model.find("no such key"), null)
            same(model.info.numItems, 480)
        }
    }
    t.case("excluded, candidates, seen, a user without history and a count above all") {
        Recommender.open(t.model).use { model ->
            val past = history.map { model.find(it)!! }.toIntArray()
            val best = model.recommend(past, 3)
            val others = model.recommend(past, 3, excluded = intArrayOf(best[0].item))
            same(others[0], best[1])
            same(model.recommend(past, 3, candidates = IntArray(0)).size, 0)
            same(model.recommend(past, 3, candidates = intArrayOf(best[2].item)).single().item, best[2].item)
            same(model.info.allowSeen, true)
            same(model.recommend(past, Int.MAX_VALUE).size, 480)
            same(model.recommend(past, Int.MAX_VALUE, allowSeen = false).size, 480 - past.distinct().size)
            same(model.recommend(past, Int.MAX_VALUE, allowSeen = true).size, 480)
            same(model.recommend(IntArray(0), 5).size, 5)
            same(model.recommend(past, 0).size, 0)
        }
    }
    t.case("int8, threads and an exact ceiling on memory") {
        Recommender.open(t.model, OpenOptions(backend = Backend.INT8)).use { same(lines(it).size, expected.size) }
        Recommender.open(t.model, OpenOptions(threads = 2)).use { same(lines(it), expected) }
        val needed = Recommender.planMemory(t.model)
        Recommender.open(t.model, OpenOptions(maxBytes = needed)).close()
        refused(WispException.Code.INVALID_ARGUMENT, "$needed") {
            Recommender.open(t.model, OpenOptions(maxBytes = needed - 1))
        }
    }
    t.case("closing while other threads recommend is safe, and ends them with a sentence") {
        repeat(30) {
            val model = Recommender.open(t.model)
            val lists = AtomicInteger()
            val ends = List(3) {
                val end = arrayOfNulls<Throwable>(1)
                end to thread {
                    end[0] = thrown<IllegalStateException> {
                        while (true) same(lines(model), expected).also { lists.incrementAndGet() }
                    }
                }
            }
            while (lists.get() < 5) Thread.yield()
            model.close()
            ends.forEach { (end, thread) ->
                thread.join()
                holds("closed" in end[0]?.message.orEmpty()) { "a thread ended with ${end[0]}" }
            }
            model.close()
        }
    }
    t.case("a thousand models one after the other, and lists of a hundred thousand names") {
        repeat(1000) {
            Recommender.open(t.model, OpenOptions(verify = false)).use { model -> model.recommend(intArrayOf(1), 20) }
        }
        Recommender.open(t.model).use { model ->
            val many = IntArray(100_000) { it % 480 }
            same(model.withHandle { Native.names(it, many) }.last(), model.name(many.last()))
        }
    }
}

/** One line of tests/golden/0.1/answers.txt (tests/golden/README.md). */
private fun answer(folder: File, line: String) {
    val words = line.split(" ").iterator()
    fun near(seen: Double) = words.next().toDouble().let { told ->
        holds(Math.abs(told - seen) <= 1e-5 * (1 + Math.abs(told))) { "$line: another number than $seen" }
    }
    when (val verb = words.next()) {
        "recommend", "adapter" -> {
            val model = File(folder, words.next())
            val adapter = if (verb == "adapter") File(folder, words.next()).path else null
            Recommender.open(model, OpenOptions(adapter = adapter)).use { opened ->
                val history = words.next().split(",").map { opened.find(it)!! }.toIntArray()
                for (best in opened.recommend(history, 7, allowSeen = true)) {
                    same(best.key, words.next())
                    near(best.score.toDouble())
                }
            }
        }
        "history" -> EventLog.open(File(folder, words.next())).use { log ->
            Recommender.open(File(folder, words.next())).use { model ->
                for (item in log.history(model, words.next())) same(model.key(item), words.next())
            }
        }
        "events" -> near(EventLog.open(File(folder, words.next())).use { it.counts().events }.toDouble())
        "epsilon" -> {
            val ledger = File(folder, words.next()).path
            val delta = words.next().toDouble()
            val epsilon = Deployment.budget(ledger, delta).epsilonStated
            val stated = Regex("\"epsilon\": *([0-9.e-]+)").find(Deployment.statement(ledger, delta, json = true))!!
            same(Math.abs(stated.groupValues[1].toDouble() - epsilon) < 1e-5, true)
            near(epsilon)
        }
        else -> holds(false) { "no such question: $line" }
    }
    holds(!words.hasNext()) { "$line: it says more than was answered" }
}
