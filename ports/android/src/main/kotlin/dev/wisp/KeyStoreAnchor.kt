package dev.wisp

import android.content.Context
import android.security.keystore.KeyGenParameterSpec
import android.security.keystore.KeyProperties
import android.security.keystore.StrongBoxUnavailableException
import java.io.File
import java.security.KeyStore
import javax.crypto.KeyGenerator
import javax.crypto.SecretKey

/**
 * The keys of Android's key store. They cannot be exported, are in no backup, and are deleted with the app. With
 * `strongBox` they are created in the device's secure element, if it has one, which takes about a second for each
 * charge; otherwise in the trusted environment. The device may be locked when they are used, as it is at night.
 */
class AndroidKeyRing @JvmOverloads constructor(private val strongBox: Boolean = false) : KeyRing {
    private val store = KeyStore.getInstance(PROVIDER).apply { load(null) }

    override fun create(alias: String): SecretKey {
        if (!strongBox) return generate(alias, false)
        return try {
            generate(alias, true)
        } catch (none: StrongBoxUnavailableException) {
            generate(alias, false)
        }
    }

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

    private companion object {
        const val PROVIDER = "AndroidKeyStore"
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
