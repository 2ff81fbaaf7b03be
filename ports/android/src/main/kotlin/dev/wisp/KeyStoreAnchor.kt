package dev.wisp

import android.content.Context
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import java.io.File
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.PrivateKey
import java.security.spec.ECGenParameterSpec
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey

/**
 * The keys of Android's key store. They cannot be exported, are in no backup, and are deleted with the app. With
 * `strongBox` they are created in the device's secure element, if it has one, which takes about a second for each
 * charge; otherwise in the trusted environment. The device may be locked when they are used, as it is at night.
 */
class AndroidKeyRing @JvmOverloads constructor(private val strongBox: Boolean = false) : KeyRing {
    private val store = openStore()

    override fun create(alias: String): SecretKey = inStrongBox(strongBox) { generate(alias, it) }

    override fun find(alias: String): SecretKey? = store.getKey(alias, null) as SecretKey?

    override fun delete(alias: String) = store.deleteEntry(alias)

    override fun aliases(): List<String> = store.aliases().toList()

    private fun generate(alias: String, strongBox: Boolean): SecretKey {
        val purposes = KeyProperties.PURPOSE_ENCRYPT or KeyProperties.PURPOSE_DECRYPT
        val spec = KeyGenParameterSpec.Builder(alias, purposes)
            .setBlockModes(KeyProperties.BLOCK_MODE_GCM)
            .setEncryptionPaddings(KeyProperties.ENCRYPTION_PADDING_NONE)
            .setKeySize(256)
            .setIsStrongBoxBacked(strongBox)
            .build()
        return KeyGenerator.getInstance(KeyProperties.KEY_ALGORITHM_AES, PROVIDER).apply { init(spec) }.generateKey()
    }
}

/**
 * An anchor whose keys are in Android's key store, and whose file is in no backup. `name` distinguishes the anchors of
 * several ledgers.
 */
object KeyStoreAnchor {
    @JvmStatic
    @JvmOverloads
    fun of(context: Context, name: String = "ledger", begin: Boolean = false, strongBox: Boolean = false): Anchor =
        SealedAnchor(File(context.noBackupFilesDir, "$name.anchor"), AndroidKeyRing(strongBox), name, begin)
}

/**
 * The key by which a fleet's server knows this device, on P-256: made at the first call, and found by later ones. It
 * can be used while the device is locked.
 */
object KeyStoreFleetKey {
    @JvmStatic
    @JvmOverloads
    @Synchronized
    fun of(alias: String = "dev.wisp.fleet", strongBox: Boolean = false): KeyPair {
        val store = openStore()
        if (store.getKey(alias, null) == null) inStrongBox(strongBox) { generate(alias, it) }
        return KeyPair(store.getCertificate(alias).publicKey, store.getKey(alias, null) as PrivateKey)
    }

    private fun generate(alias: String, strongBox: Boolean) {
        val spec = KeyGenParameterSpec.Builder(alias, KeyProperties.PURPOSE_SIGN)
            .setAlgorithmParameterSpec(ECGenParameterSpec("secp256r1"))
            .setDigests(KeyProperties.DIGEST_SHA256)
            .setIsStrongBoxBacked(strongBox)
            .build()
        KeyPairGenerator.getInstance(KeyProperties.KEY_ALGORITHM_EC, PROVIDER).apply { initialize(spec) }.genKeyPair()
    }
}

private const val PROVIDER = "AndroidKeyStore"

private fun openStore(): KeyStore = KeyStore.getInstance(PROVIDER).apply { load(null) }

/** Makes a key in the secure element if that is wanted and the device has one, else in the trusted environment. */
private fun <K> inStrongBox(wanted: Boolean, generate: (Boolean) -> K): K {
    if (!wanted) return generate(false)
    return try {
        generate(true)
    } catch (none: StrongBoxUnavailableException) {
        generate(false)
    }
}
