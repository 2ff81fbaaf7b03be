package dev.wisp

/**
 * How far the ledger has got, kept where nobody who restores files restores it too. With it an old copy of a ledger
 * that was put back is noticed, and refused. Always give it, or never; one for each ledger. What it throws ends the
 * call and comes out of it. `KeyStoreAnchor` is one for devices.
 */
interface Anchor {
    /** What was written last; empty where nothing was. */
    fun read(): ByteArray

    /** Keeps these bytes, at most 64, in the place of those before, whole or not at all. On return they last. */
    fun write(bytes: ByteArray)

    /** True: there may be no anchor yet though something was charged. For the first time, then false. */
    val begin: Boolean get() = false
}
