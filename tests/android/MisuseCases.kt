package dev.wisp

import java.io.File
import java.nio.ByteBuffer

/** Bad input to every call gives an exception with a sentence. */
fun misuseCases(t: Cases) {
    val invalid = WispException.Code.INVALID_ARGUMENT
    t.case("what is no model, and what is no log") {
        val folder = t.folder()
        refused(WispException.Code.IO, "none.wisp") { Recommender.open(File(folder, "none.wisp")) }
        refused(WispException.Code.INVALID_DATA, "log.db") { Recommender.open(t.log) }
        refused(WispException.Code.INVALID_DATA, "cafe.wisp") { EventLog.open(t.model) }
        refused(WispException.Code.INVALID_DATA, "is empty") { Recommender.open(ByteBuffer.allocate(0)) }
        val half = File(folder, "half.wisp").apply { writeBytes(t.model.readBytes().copyOf(80_000)) }
        refused(WispException.Code.INVALID_DATA, "half.wisp") { Recommender.open(half) }
        refused(WispException.Code.IO, "closed.wisp") { Recommender.openDescriptor("closed.wisp", 9999, 0, 0) }
        refused(invalid, "at least 0") { Recommender.openDescriptor("m", 0, -1, 0) }
    }
    t.case("null is refused by the library's own side too") {
        refused(invalid, "path must not be null") { Native.openFile(null, OpenOptions()) }
        refused(invalid, "OpenOptions must not be null") { Native.openFile(t.model.path, null) }
        refused(invalid, "buffer must not be null") { Native.openMemory("m", null, 0, 0, OpenOptions()) }
        refused(invalid, "PersonaliseOptions must not be null") { Native.personalise(null, null, null) }
        refused(invalid, "PlannedRunOptions must not be null") { Native.runPlanned(null, null, null, null) }
        refused(invalid, "ledger must not be null") { Native.statement(null, null, 1e-5, false) }
        Recommender.open(t.model).use { model ->
            refused(invalid, "history must not be null") {
                model.withHandle { Native.recommend(it, null, null, null, 0, FloatArray(1)) }
            }
            refused(invalid, "scores must not be null") {
                model.withHandle { Native.recommend(it, IntArray(0), null, null, 0, null) }
            }
            refused(invalid, "items must not be null") { model.withHandle { Native.keys(it, null) } }
        }
    }
    t.case("a handle of 0 and numbers out of range") {
        refused(invalid, "closed") { Native.info(0) }
        refused(invalid, "closed") { Native.counts(0) }
        Native.closeModel(0)
        Native.closeLog(0)
        Recommender.open(t.model).use { model ->
            refused(invalid, "480") { model.recommend(intArrayOf(480), 5) }
            thrown<IllegalArgumentException> { model.recommend(IntArray(0), -1) }
        }
        refused(invalid, "threads is -1") { Recommender.open(t.model, OpenOptions(threads = -1)) }
        refused(invalid, "maxBytes is -1") { Recommender.open(t.model, OpenOptions(maxBytes = -1)) }
        refused(invalid, "no 5 from") { Native.openMemory("m", ByteBuffer.allocateDirect(64), 60, 5, OpenOptions()) }
        refused(invalid, "no 1 from") { Native.openMemory("m", ByteBuffer.allocate(64), 0, 1, OpenOptions()) }
    }
    t.case("after closing every use is an exception") {
        val model = Recommender.open(t.model).apply { close() }
        val log = EventLog.open(File(t.folder(), "log.db")).apply { close() }
        val uses = listOf<() -> Unit>(
            { model.recommend(IntArray(0)) }, { model.find("tea-mint") }, { model.name(0) },
            { log.counts() }, { log.append("a", "b", 1) }
        )
        for (use in uses) {
            holds("closed" in thrown<IllegalStateException> { use() }.message.orEmpty()) { "no sentence" }
        }
    }
    t.case("texts: every character of Unicode, no zero, no half of a pair") {
        val strange = "anna é € \uD83C\uDF75 \uFFFF"
        EventLog.open(File(t.folder(), "log.db")).use { log ->
            log.append(strange, "tea-mint", 1)
            log.append(listOf(Event("b", "x", 2), Event("b", "y", 3)))
            same(log.users().sorted(), listOf(strange, "b").sorted())
            refused(invalid, "control characters") { log.append("a\u0001", "x", 4) }
            refused(invalid, "zero at character 1") { log.append("a\u0000b", "x", 4) }
            refused(invalid, "surrogates at character 2") { log.append("ab\uD83C", "x", 4) }
            refused(invalid, "surrogates at character 0") { log.append("a", "\uDF75\uD83C", 4) }
            refused(invalid, "events: 1 users, 1 items and 0 times") {
                log.withHandle { Native.append(it, arrayOf("a"), arrayOf("x"), LongArray(0)) }
            }
            refused(invalid, "users must not be null") {
                log.withHandle { Native.append(it, arrayOfNulls(1), arrayOf("x"), LongArray(1)) }
            }
            same(log.counts(), LogCounts(3, 2, 3, 1, 3, 0))
            same(log.prune(PruneOptions(PrivacyUnit.USER, before = 3)), 2L)
            same(log.erase(strange), 0L)
            same(log.erase("b"), 1L)
        }
    }
}

/** If memory runs out, Java's own error is thrown. The shell limits this process's address space. */
fun memoryCase(t: Cases) {
    t.case("out of memory is an error of Java") {
        Recommender.open(t.model).use { model ->
            EventLog.open(t.log).use { log ->
                model.withHandle { m ->
                    log.withHandle { thrown<OutOfMemoryError> { Native.history(it, m, "u00003", Int.MAX_VALUE) } }
                }
            }
            same(model.recommend(IntArray(0), 3).size, 3)
        }
    }
}
