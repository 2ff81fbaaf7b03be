package dev.wisp

import java.io.ByteArrayInputStream
import java.io.InputStream
import java.net.HttpURLConnection
import java.net.URL
import java.security.GeneralSecurityException
import java.security.KeyFactory
import java.security.KeyPair
import java.security.PublicKey
import java.security.Signature
import java.security.spec.X509EncodedKeySpec
import java.util.Base64

/** The answer of a fleet's server. [serverTime] is its header Date in seconds since 1970, or 0. */
class FleetReply @JvmOverloads constructor(val status: Int, val body: InputStream, val serverTime: Double = 0.0)

/**
 * The outside of a [Fleet]: an HTTP client and the device's key. It is called on the thread of the work.
 * [HttpFleetTransport] is one for devices.
 */
interface FleetTransport {
    /** The public key (SubjectPublicKeyInfo), each time with the same bytes: the server knows a device by them. */
    val publicKeyPem: String

    /**
     * Posts the body, and follows no redirection. Every answer is a reply, whatever its status; the fleet reads its
     * body and closes it. An [java.io.IOException] of this call or of the body means that trying again later may
     * help, unless it has to do with a certificate. Any other exception ends the work, and is rethrown by it.
     */
    fun post(url: String, headers: Map<String, String>, body: ByteArray): FleetReply

    /** Signs with the device's key: ECDSA with SHA-256 on P-256 or P-384, in DER. At most once a minute. */
    fun sign(message: ByteArray): ByteArray

    /** True if [der] is a signature of the message by a key, an operator's. */
    fun verify(keyPem: String, message: ByteArray, der: ByteArray): Boolean
}

/**
 * A transport over [HttpURLConnection]. The key is on P-256 or P-384, and is kept: `KeyStoreFleetKey` makes one in
 * Android's key store. [configure] may change each connection before it is used, for instance its socket factory.
 */
class HttpFleetTransport @JvmOverloads constructor(
    private val key: KeyPair,
    private val configure: (HttpURLConnection) -> Unit = {}
) : FleetTransport {
    override val publicKeyPem: String = pemOf(key.public)

    override fun post(url: String, headers: Map<String, String>, body: ByteArray): FleetReply {
        val connection = URL(url).openConnection() as HttpURLConnection
        connection.requestMethod = "POST"
        connection.instanceFollowRedirects = false
        connection.useCaches = false
        connection.connectTimeout = CONNECT_MILLISECONDS
        connection.readTimeout = READ_MILLISECONDS
        connection.setRequestProperty("Accept-Encoding", "identity")
        headers.forEach { (name, value) -> connection.setRequestProperty(name, value) }
        configure(connection)
        connection.doOutput = true
        connection.outputStream.use { it.write(body) }
        val status = connection.responseCode
        val answer = if (status < FIRST_ERROR) connection.inputStream else connection.errorStream
        return FleetReply(status, answer ?: ByteArrayInputStream(ByteArray(0)), connection.date / MILLISECONDS)
    }

    override fun sign(message: ByteArray): ByteArray = Signature.getInstance(ALGORITHM).run {
        initSign(key.private)
        update(message)
        sign()
    }

    override fun verify(keyPem: String, message: ByteArray, der: ByteArray): Boolean = try {
        Signature.getInstance(ALGORITHM).run {
            initVerify(keyOf(keyPem))
            update(message)
            verify(der)
        }
    } catch (invalid: GeneralSecurityException) {
        false
    } catch (invalid: IllegalArgumentException) { // the key is no Base64
        false
    }

    private companion object {
        const val ALGORITHM = "SHA256withECDSA"
        const val CONNECT_MILLISECONDS = 30_000
        const val READ_MILLISECONDS = 60_000
        const val MILLISECONDS = 1e3
        const val FIRST_ERROR = 400
        const val COLUMNS = 64
        const val BEGIN = "-----BEGIN PUBLIC KEY-----\n"
        const val END = "\n-----END PUBLIC KEY-----\n"

        fun pemOf(key: PublicKey): String =
            BEGIN + Base64.getMimeEncoder(COLUMNS, byteArrayOf('\n'.toByte())).encodeToString(key.encoded) + END

        fun keyOf(pem: String): PublicKey {
            val inner = pem.trim().removePrefix(BEGIN.trim()).removeSuffix(END.trim())
            val encoded = Base64.getMimeDecoder().decode(inner)
            return KeyFactory.getInstance("EC").generatePublic(X509EncodedKeySpec(encoded))
        }
    }
}
