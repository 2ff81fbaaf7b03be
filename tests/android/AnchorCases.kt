package dev.wisp

import java.io.File
import java.io.IOException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.ConcurrentLinkedQueue
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey
import kotlin.concurrent.thread

/** Keys like those of the device's store: a deleted key is gone. */
class MemoryKeys : KeyRing {
    val keys = ConcurrentHashMap<String, SecretKey>()
    var failing: String? = null  // this call fails, as in a process that ends there

    override fun create(alias: String): SecretKey {
        if (failing == "create") throw IOException("no key")
        return KeyGenerator.getInstance("AES").apply { init(256) }.generateKey().also { keys[alias] = it }
    }

    override fun find(alias: String): SecretKey? = keys[alias]

    override fun delete(alias: String) {
        if (failing == "delete") throw IOException("not deleted")
        keys.remove(alias)
    }

    override fun aliases(): List<String> = keys.keys.toList()
}

fun anchorCases(t: Cases) {
    val one = byteArrayOf(1, 2, 3)
    val two = byteArrayOf(4)
    fun text(anchor: Anchor) = anchor.read().joinToString()
    t.case("an anchor gives what was written last, and one key is left") {
        val ring = MemoryKeys()
        val file = File(t.folder(), "a")
        same(text(SealedAnchor(file, ring)), "")
        SealedAnchor(file, ring).write(one)
        same(text(SealedAnchor(file, ring)), "1, 2, 3")
        SealedAnchor(file, ring).write(two)
        same(text(SealedAnchor(file, ring)), "4")
        same(ring.keys.size, 1)
    }
    t.case("an old copy of the file, another's, a changed and a removed one are refused") {
        val ring = MemoryKeys()
        val file = File(t.folder(), "a")
        val anchor = SealedAnchor(file, ring).apply { write(one) }
        val old = file.readBytes()
        anchor.write(two)
        val now = file.readBytes()
        fun refusal(bytes: ByteArray?): String {
            if (bytes == null) file.delete() else file.writeBytes(bytes)
            return thrown<IOException> { anchor.read() }.message.orEmpty()
        }
        holds("old copy" in refusal(old)) { "an old copy is read" }
        for (i in now.indices) {
            val changed = now.clone().apply { this[i] = (this[i] + 1).toByte() }
            holds("damaged" in refusal(changed) || i in 1..8) { "byte $i" }
        }
        holds("damaged" in refusal(now.copyOf(now.size - 1))) { "a shorter one is read" }
        holds("damaged" in refusal(ByteArray(0))) { "an empty one is read" }
        holds("removed" in refusal(null)) { "a removed one is as none" }
    }
    t.case("a write that ends anywhere leaves the value before or the new one") {
        for (failing in listOf("create", "delete", "move")) {
            val ring = MemoryKeys()
            val file = File(t.folder(), "a")
            val anchor = SealedAnchor(file, ring)
            fun fails(bytes: ByteArray) {
                val blocker = File(file.path + ".next")
                if (failing == "move") blocker.mkdir() else ring.failing = failing
                thrown<IOException> { anchor.write(bytes) }
                ring.failing = null
                blocker.delete()
            }
            fails(one)
            same(text(anchor), if (failing == "delete") "1, 2, 3" else "")
            anchor.write(one)
            fails(two)
            same(text(anchor), if (failing == "delete") "4" else "1, 2, 3")
            anchor.write(two)
            same(text(anchor), "4")
            same(ring.keys.size, 1)
        }
    }
    turnCases(t)
    t.case("a ledger that was put back is refused, alone and with its anchor's file") {
        val folder = t.folder()
        val options = t.options(folder).copy(epsilon = 1.0, epochs = 1.0)
        val file = File(folder, "log.anchor")
        val anchor = SealedAnchor(file, MemoryKeys())
        personaliseBlocking(options, anchor)
        val ledger = File(options.ledger)
        val before = ledger.readBytes() to file.readBytes()
        personaliseBlocking(options, anchor)
        Deployment.statement(options.ledger, 1e-4, anchor)
        ledger.writeBytes(before.first)
        refused(WispException.Code.PRIVACY_REFUSED, "anchor") { personaliseBlocking(options, anchor) }
        refused(WispException.Code.PRIVACY_REFUSED, "anchor") { Deployment.statement(options.ledger, 1e-4, anchor) }
        file.writeBytes(before.second)
        holds("old copy" in thrown<IOException> { personaliseBlocking(options, anchor) }.message.orEmpty()) {
            "both are taken"
        }
    }
    t.case("an anchor for a ledger that has charges begins only when it is told to") {
        val options = t.options(t.folder()).copy(epsilon = 1.0, epochs = 1.0)
        personaliseBlocking(options)
        val ring = MemoryKeys()
        val file = File(t.folder(), "a")
        refused(WispException.Code.PRIVACY_REFUSED, "anchor") { personaliseBlocking(options, SealedAnchor(file, ring)) }
        personaliseBlocking(options, SealedAnchor(file, ring, begin = true))
        Deployment.budget(options.ledger, 1e-4, SealedAnchor(file, ring))
    }
    t.case("anchors that misbehave are exceptions") {
        val options = t.options(t.folder())
        fun anchor(read: () -> ByteArray, write: () -> Unit = {}) = object : Anchor {
            override fun read(): ByteArray = read()
            override fun write(bytes: ByteArray) = write()
        }
        val locked = anchor({ throw IOException("locked") })
        val full = anchor({ ByteArray(0) }, { throw IOException("full") })
        same(thrown<IOException> { personaliseBlocking(options, locked) }.message, "locked")
        same(thrown<IOException> { personaliseBlocking(options, full) }.message, "full")
        refused(WispException.Code.INVALID_DATA, "65 bytes") { personaliseBlocking(options, anchor({ ByteArray(65) })) }
        refused(WispException.Code.INVALID_DATA, "anchor") {
            personaliseBlocking(options, anchor({ ByteArray(64) { 9 } }))
        }
    }
}

private fun turnCases(t: Cases) {
    t.case("anchors of one file take turns: whoever reads sees one that was written, and one key is left") {
        val ring = MemoryKeys()
        val folder = t.folder()
        fun anchor(i: Int) = SealedAnchor(File(folder, if (i % 2 == 0) "a" else "../${folder.name}/a"), ring)
        anchor(0).write(byteArrayOf(0, 0))
        val faults = ConcurrentLinkedQueue<Throwable>()
        (1..4).map { writer ->
            thread {
                try {
                    for (i in 1..25) {
                        anchor(i).write(byteArrayOf(writer.toByte(), writer.toByte()))
                        val seen = anchor(writer).read()
                        holds(seen.size == 2 && seen[0] == seen[1]) { "seen ${seen.joinToString()}" }
                    }
                } catch (fault: Throwable) {
                    faults += fault
                }
            }
        }.forEach { it.join() }
        holds(faults.isEmpty()) { "${faults.size} threads ended, one with ${faults.first()}" }
        same(anchor(0).read().size, 2)
        same(ring.keys.size, 1)
    }
    t.case("an anchor waits for another process") {
        val file = File(t.folder(), "a")
        val anchor = SealedAnchor(file, MemoryKeys()).apply { write(byteArrayOf(5)) }
        val hold = "import fcntl, sys; f = open(sys.argv[1], 'a'); " +
            "fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
        val other = ProcessBuilder("python3", "-c", hold, file.path + ".lock").start()
        try {
            same(other.inputStream.read(), '\n'.toInt())
            val reader = thread { anchor.read() }
            reader.join(300)
            holds(reader.isAlive) { "it was read while another process held it" }
            other.outputStream.close()
            reader.join(20_000)
            holds(!reader.isAlive) { "it waits for ever" }
        } finally {
            other.destroy()
        }
    }
}
