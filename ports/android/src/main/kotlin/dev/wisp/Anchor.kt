package dev.wisp

/**
 * The ledger's progress, stored where restoring files does not restore it. With it, an old copy of the ledger that was
 * put back is noticed and refused. Give it always or never; each ledger has its own. An exception that it throws ends
 * the call and is rethrown by it. `KeyStoreAnchor` is an anchor for devices.
 */
interface Anchor {
    /** The bytes of the last [write]; empty if there was none. */
    fun read(): ByteArray

    /** Replaces the stored bytes by these, at most 64, all or none. They are durable when it returns. */
    fun write(bytes: ByteArray)

    /** True: a ledger with charges may still lack its anchor. For the first use, then false. */
    val begin: Boolean get() = false
}
