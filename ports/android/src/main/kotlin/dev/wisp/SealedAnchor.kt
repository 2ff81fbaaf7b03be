package dev.wisp

import java.io.File
import java.io.FileOutputStream
import java.io.IOException
import java.nio.ByteBuffer
import java.nio.channels.FileChannel
import java.nio.file.Files
import java.nio.file.StandardCopyOption
import java.nio.file.StandardOpenOption
import java.security.GeneralSecurityException
import java.util.concurrent.ConcurrentHashMap
import java.util.concurrent.locks.ReentrantLock
import javax.crypto.Cipher
import javax.crypto.SecretKey
import javax.crypto.spec.GCMParameterSpec
import kotlin.concurrent.withLock

/** Named keys, which are in no backup, and which no copy of files restores once they are deleted. */
interface KeyRing {
    fun create(alias: String): SecretKey

    /** Null if the key does not exist, or no longer exists. */
    fun find(alias: String): SecretKey?

    fun delete(alias: String)

    fun aliases(): List<String>
}

/**
 * An anchor in a file that is sealed (AES-GCM) each time with a new key of the ring. The previous key is deleted when
 * the new file is on the disk. So a copy of the file from before a charge can no longer be opened; the keys serve this
 * purpose, not secrecy.
 *
 * It does not help against somebody who can restore deleted keys together with the files, as on a rooted device whose
 * whole storage is written back. Nor does it help if both are gone: an app whose data was cleared starts over, without
 * its log and its ledger too. `name` distinguishes the anchors of several ledgers, and belongs to one file.
 *
 * Several of these objects may exist for one file: threads take turns, and so do processes, by a lock on an empty file
 * beside it, whose name ends in `.lock`.
 */
class SealedAnchor @JvmOverloads constructor(
    private val file: File,
    private val keys: KeyRing,
    name: String = "ledger",
    override val begin: Boolean = false
) : Anchor {
    private val prefix = "dev.wisp.anchor.$name."

    override fun read(): ByteArray = alone {
        if (file.exists()) return@alone opened(file.readBytes())
        // A first write that was interrupted leaves only the first key.
        if (generations().any { it != 1L })
            throw IOException("the anchor '$file' is gone, but a key for it is there: somebody removed the file")
        ByteArray(0)
    }

    override fun write(bytes: ByteArray) = alone {
        // The first write happens twice, so that a file that is missing beside any key but the first is known to have
        // existed.
        if (!file.exists() && generations().all { it == 1L }) seal(bytes)
        seal(bytes)
    }

    /**
     * Excludes all other readers and writers of the file. The system's lock belongs to the process, so threads need
     * one of their own.
     */
    private fun <T> alone(work: () -> T): T =
        threads.getOrPut(file.canonicalPath) { ReentrantLock() }.withLock {
            val lock = File(file.path + ".lock").toPath()
            FileChannel.open(lock, StandardOpenOption.CREATE, StandardOpenOption.WRITE).use {
                it.lock()
                work()
            }
        }

    private fun seal(bytes: ByteArray) {
        val generation = generations().fold(0L) { most, it -> maxOf(most, it) } + 1
        val header = ByteBuffer.allocate(HEADER).put(VERSION).putLong(generation).array()
        val cipher = Cipher.getInstance(CIPHER)
        cipher.init(Cipher.ENCRYPT_MODE, keys.create(prefix + generation))
        cipher.updateAAD(header)
        val sealed = cipher.doFinal(bytes)
        replace(header + cipher.iv + sealed)
        generations().filter { it != generation }.forEach { keys.delete(prefix + it) }
    }

    private fun opened(content: ByteArray): ByteArray {
        val generation = generationOf(content)
        val key = keys.find(prefix + generation) ?: throw IOException(
            "the anchor '$file' was sealed by key $generation, which is deleted: an old copy of it was put back"
        )
        try {
            val cipher = Cipher.getInstance(CIPHER)
            cipher.init(Cipher.DECRYPT_MODE, key, GCMParameterSpec(TAG_BITS, content, HEADER, IV))
            cipher.updateAAD(content, 0, HEADER)
            return cipher.doFinal(content, HEADER + IV, content.size - HEADER - IV)
        } catch (broken: GeneralSecurityException) {
            throw IOException("the anchor '$file' is damaged: its seal is broken", broken)
        }
    }

    private fun generationOf(content: ByteArray): Long {
        if (content.size < HEADER + IV + TAG_BITS / 8 || content[0] != VERSION)
            throw IOException(
                "the anchor '$file' is damaged: it has ${content.size} bytes, and is not an anchor of version $VERSION"
            )
        return ByteBuffer.wrap(content, 1, java.lang.Long.BYTES).long
    }

    private fun generations(): List<Long> =
        keys.aliases().filter { it.startsWith(prefix) }.mapNotNull { it.removePrefix(prefix).toLongOrNull() }

    /** Replaces the file, all or nothing; it is on the disk when this returns. */
    private fun replace(content: ByteArray) {
        val next = File(file.path + ".next")
        FileOutputStream(next).use {
            it.write(content)
            it.fd.sync()
        }
        Files.move(next.toPath(), file.toPath(), StandardCopyOption.ATOMIC_MOVE)
        FileChannel.open(file.absoluteFile.parentFile.toPath(), StandardOpenOption.READ).use { it.force(true) }
    }

    private companion object {
        /** Locks by canonical path, for every anchor in this process. */
        val threads = ConcurrentHashMap<String, ReentrantLock>()
        const val CIPHER = "AES/GCM/NoPadding"
        const val VERSION: Byte = 1
        const val HEADER = 1 + java.lang.Long.BYTES
        const val IV = 12
        const val TAG_BITS = 128
    }
}
