package dev.wisp

import com.sun.net.httpserver.HttpExchange
import com.sun.net.httpserver.HttpServer
import com.sun.net.httpserver.HttpsConfigurator
import com.sun.net.httpserver.HttpsServer
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.async
import kotlinx.coroutines.runBlocking
import java.io.ByteArrayInputStream
import java.io.Closeable
import java.io.File
import java.io.IOException
import java.io.InputStream
import java.lang.ref.WeakReference
import java.net.ConnectException
import java.net.HttpURLConnection
import java.net.InetAddress
import java.net.InetSocketAddress
import java.net.SocketTimeoutException
import java.security.KeyFactory
import java.security.KeyPair
import java.security.KeyPairGenerator
import java.security.KeyStore
import java.security.Signature
import java.security.spec.ECGenParameterSpec
import java.security.spec.X509EncodedKeySpec
import java.util.Base64
import java.util.concurrent.CopyOnWriteArrayList
import java.util.concurrent.CountDownLatch
import java.util.concurrent.Executors
import java.util.concurrent.Semaphore
import java.util.concurrent.TimeUnit
import java.util.concurrent.atomic.AtomicInteger
import javax.net.ssl.HttpsURLConnection
import javax.net.ssl.KeyManagerFactory
import javax.net.ssl.SSLContext
import javax.net.ssl.SSLHandshakeException
import javax.net.ssl.TrustManagerFactory
import kotlin.concurrent.thread

private const val NODE = 1001
private val begun = byteArrayOf(8, (NODE and 127 or 128).toByte(), (NODE shr 7).toByte()) // field 1: the node's number

private fun newKey(curve: String = "secp256r1"): KeyPair =
    KeyPairGenerator.getInstance("EC").apply { initialize(ECGenParameterSpec(curve)) }.generateKeyPair()

private fun publicKeyOf(pem: String) = KeyFactory.getInstance("EC").generatePublic(
    X509EncodedKeySpec(Base64.getDecoder().decode(pem.lines().filter { "-----" !in it }.joinToString("")))
)

/** A server of Flower without work. It admits whoever signs, once the key is registered. */
private open class Server(context: SSLContext? = null) : Closeable {
    private val loopback = InetSocketAddress(InetAddress.getByName("127.0.0.1"), 0)
    private val threads = Executors.newCachedThreadPool()
    private val http: HttpServer =
        if (context == null) HttpServer.create(loopback, 0)
        else HttpsServer.create(loopback, 0).apply { httpsConfigurator = HttpsConfigurator(context) }
    val calls = CopyOnWriteArrayList<String>()
    val signatures = CopyOnWriteArrayList<String>()
    private val keys = CopyOnWriteArrayList<String>()
    val url = (if (context == null) "http" else "https") + "://127.0.0.1:${http.address.port}"

    init {
        http.executor = threads
        http.createContext("/") { exchange ->
            val (status, body) = answer(exchange, exchange.requestBody.readBytes())
            exchange.sendResponseHeaders(status, if (body.isEmpty()) -1 else body.size.toLong())
            if (body.isNotEmpty()) exchange.responseBody.write(body)
            exchange.close()
        }
        http.start()
    }

    open fun answer(exchange: HttpExchange, body: ByteArray): Pair<Int, ByteArray> {
        fun header(name: String) = exchange.requestHeaders.getFirst(name).orEmpty()
        val route = exchange.requestURI.path.removePrefix("/v1/fleet/")
        calls += route
        val pem = String(Base64.getDecoder().decode(header("flwr-public-key")))
        val signed = Signature.getInstance("SHA256withECDSA").run {
            initVerify(publicKeyOf(pem))
            update(header("flwr-timestamp").toByteArray())
            verify(Base64.getDecoder().decode(header("flwr-signature")))
        }
        val fresh = Regex("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:00\\+00:00").matches(header("flwr-timestamp"))
        if (exchange.requestMethod != "POST" || header("content-type") != "application/protobuf" || !signed || !fresh)
            return 401 to "{\"detail\":\"Invalid SuperNode authentication\"}".toByteArray()
        signatures += header("flwr-signature")
        val given = String(body)
        return when (route) {
            "activate-node" -> if (pem in keys && pem in given) 200 to begun else 412 to "{\"code\":2004}".toByteArray()
            "register-node" -> (200 to begun).also { if (pem in given) keys += pem }
            "send-node-heartbeat" -> 200 to byteArrayOf(8, 1)
            "pull-messages" -> 200 to ByteArray(0)
            else -> 404 to ByteArray(0)
        }
    }

    override fun close() {
        http.stop(0)
        threads.shutdown()
    }
}

private fun <T> serving(answer: (HttpExchange) -> Pair<Int, ByteArray>, work: (Server) -> T): T {
    val server = object : Server() {
        override fun answer(exchange: HttpExchange, body: ByteArray): Pair<Int, ByteArray> {
            calls += exchange.requestURI.path
            return answer(exchange)
        }
    }
    return server.use { work(it) }
}

private fun Cases.fleetOptions(url: String, folder: File = folder()): FleetOptions {
    val policy = File(folder, "policy.json")
    val made = File(log.absoluteFile.parentFile, "policy.json").readText()
    holds("http://127.0.0.1:1" in made) { "the policy names another server" }
    policy.writeText(made.replace("http://127.0.0.1:1", url))
    return FleetOptions(policy.path, model.path, log.path, File(folder, "fleet.ledger").path)
}

private fun <T> Cases.fleet(url: String, transport: FleetTransport, work: (Fleet) -> T): T =
    Fleet.open(fleetOptions(url), transport).use { work(it) }

/** A transport that answers without a network. */
private open class Local : FleetTransport {
    private val real = HttpFleetTransport(newKey())
    override val publicKeyPem = real.publicKeyPem

    override fun post(url: String, headers: Map<String, String>, body: ByteArray) =
        FleetReply(200, ByteArrayInputStream(if ("pull-messages" in url) ByteArray(0) else begun))

    override fun sign(message: ByteArray): ByteArray = real.sign(message)

    override fun verify(keyPem: String, message: ByteArray, der: ByteArray) = real.verify(keyPem, message, der)
}

fun fleetCases(t: Cases) {
    val invalid = WispException.Code.INVALID_ARGUMENT
    t.case("a device joins, signs once a minute, asks for work, and is known again") {
        Server().use { server ->
            val options = t.fleetOptions(server.url)
            val transport = HttpFleetTransport(newKey())
            val join = listOf("activate-node", "register-node", "activate-node")
            Fleet.open(options, transport, SealedAnchor(File(t.folder(), "a"), MemoryKeys())).use {
                val progress = runBlocking { it.work(0.0) }
                same(progress.copy(waitSeconds = 0.0), FleetProgress(0, 0, 1, 0.0))
                holds(progress.waitSeconds in 15.0..45.0) { "${progress.waitSeconds} s" }
                same(server.calls.toList(), join + "pull-messages")
                holds(server.signatures.toSet().size in 1..2) { "a call is signed anew" }
            }
            refused(WispException.Code.PRIVACY_REFUSED, "anchor") {
                Fleet.open(options, transport, SealedAnchor(File(t.folder(), "b"), MemoryKeys()))
            }
            server.calls.clear()
            val ledger = File(t.folder(), "fleet.ledger").path
            Fleet.open(options.copy(ledger = ledger, reply = options.ledger + ".reply"), transport).use {
                it.workBlocking(0.0)
                refused(WispException.Code.IO, "another node") { Fleet.open(options.copy(ledger = ledger), transport) }
            }
            same(server.calls.toList(), listOf("send-node-heartbeat", "pull-messages"))
        }
    }
    t.case("work asks again and again, and says what happens") {
        Server().use { server ->
            val seen = ArrayList<String>()
            val options = t.fleetOptions(server.url).copy(askSeconds = 0.1)
            val transport = HttpFleetTransport(newKey())
            Fleet.open(options, transport, onSentence = { seen += it }).use { it.workBlocking(1.0) }
            holds(server.calls.count { it == "pull-messages" } in 2..30) { "${server.calls}" }
            same(seen, ArrayList<String>()) // nothing happened
        }
    }
    t.case("keys are PEM of 64 columns, and signatures of others are refused") {
        for (curve in listOf("secp256r1", "secp384r1")) {
            val key = newKey(curve)
            val transport = HttpFleetTransport(key)
            val pem = transport.publicKeyPem
            val lines = pem.lines()
            same(listOf(lines.first(), lines[lines.size - 2], lines.last()),
                listOf("-----BEGIN PUBLIC KEY-----", "-----END PUBLIC KEY-----", ""))
            same(lines.subList(1, lines.size - 3).map { it.length }.toSet(), setOf(64))
            same(publicKeyOf(pem), key.public)
            val message = byteArrayOf(1, 2, 3)
            val der = transport.sign(message)
            same(transport.verify(pem, message, der), true)
            same(transport.verify(pem, byteArrayOf(1, 2, 4), der), false)
            same(transport.verify(HttpFleetTransport(newKey()).publicKeyPem, message, der), false)
            same(transport.verify("-----BEGIN PUBLIC KEY-----\nAAAA\n", message, der), false)
            same(transport.verify(pem, message, byteArrayOf(1)), false)
        }
    }
    networkCases(t)
    throwingCases(t)
    stoppingCases(t)
    t.case("options and numbers out of range are refused") {
        val options = t.fleetOptions("http://127.0.0.1:1")
        fun open(options: FleetOptions) = Fleet.open(options, Local()).close()
        refused(WispException.Code.IO, "none.json") { open(options.copy(policy = "none.json")) }
        refused(WispException.Code.INVALID_DATA, "log.db") { open(options.copy(policy = t.log.path)) }
        refused(invalid, "session gap is 0") { open(options.copy(unit = PrivacyUnit.SESSION)) }
        refused(invalid, "timesPerSecond is -1") { open(options.copy(timesPerSecond = -1)) }
        refused(invalid, "ask_seconds is -1") { open(options.copy(askSeconds = -1.0)) }
        refused(invalid, "output_path") { open(options.copy(output = options.log)) }
        refused(invalid, "records") { open(options.copy(recordsLedger = options.ledger + ".records", dataset = "a")) }
        refused(invalid, "FleetOptions must not be null") { Native.openFleet(null, "", null, null, null, null) }
        refused(invalid, "transport must not be null") { Native.openFleet(options, "", null, null, null, null) }
        refused(invalid, "publicKeyPem must not be null") {
            Native.openFleet(options, null, FleetCalls(Local()), null, null, null)
        }
        refused(invalid, "closed") { Native.workFleet(0, 0.0) }
        refused(invalid, "closed") { Native.takeAnswer(0, ByteArray(1), 1) }
        Native.closeFleet(0)
        Fleet.open(options, Local()).use { refused(invalid, "seconds is -1") { it.workBlocking(-1.0) } }
    }
}

private fun networkCases(t: Cases) {
    val invalid = WispException.Code.INVALID_ARGUMENT
    val transport = HttpFleetTransport(newKey())
    t.case("a server that cannot be reached may be later, and the error has its cause") {
        val closed = Server().use { it.url }
        t.fleet(closed, transport) {
            refused(WispException.Code.IO, "cannot be reached") { it.workBlocking(0.0) }
            val failed = thrown<WispException> { runBlocking { it.work(0.0) } }
            holds(failed.cause is ConnectException) { "the cause is ${failed.cause}" }
        }
        val silent = CountDownLatch(1)
        val impatient = HttpFleetTransport(newKey()) { it.readTimeout = 100 }
        serving({ silent.await(); 200 to ByteArray(0) }) { server ->
            t.fleet(server.url, impatient) {
                val failed = thrown<WispException> { it.workBlocking(0.0) }
                silent.countDown()
                same(failed.code, WispException.Code.IO)
                holds(failed.cause is SocketTimeoutException) { "the cause is ${failed.cause}" }
            }
        }
    }
    t.case("what a server answers is an error with a sentence, and no redirection is followed") {
        val many = ByteArray(100_000)
        for ((status, body, code, word) in listOf(
            Answer(401, "{\"detail\":\"Invalid SuperNode\"}".toByteArray(), invalid, "401, Invalid SuperNode"),
            Answer(500, many.copyOf(100), invalid, "status 500"),
            Answer(503, many.copyOf(0), WispException.Code.IO, "status 503"),
            Answer(403, "{\"code\":2007}".toByteArray(), WispException.Code.CANCELLED, "2007"),
            Answer(200, many, WispException.Code.INVALID_DATA, "more than 65536 bytes"),
            Answer(404, many, WispException.Code.INVALID_DATA, "more than 65536 bytes")
        )) {
            serving({ status to body }) { server ->
                t.fleet(server.url, transport) {
                    refused(code, word) { it.workBlocking(0.0) }
                    refused(code, word) { runBlocking { it.work(0.0) } } // not as if the coroutine had been cancelled
                }
                same(server.calls.toList(), List(2) { "/v1/fleet/activate-node" })
            }
        }
        Server().use { other ->
            serving({ it.responseHeaders.add("location", other.url); 307 to ByteArray(0) }) { server ->
                t.fleet(server.url, transport) { refused(invalid, "status 307") { it.workBlocking(0.0) } }
            }
            same(other.calls.toList(), emptyList<String>())
        }
    }
    t.case("a certificate that nobody trusts is final, and one that the app trusts is not") {
        val keys = File(t.folder(), "keys.p12")
        val make = "-genkeypair -alias a -keyalg EC -groupname secp256r1 -dname CN=fleet -ext san=ip:127.0.0.1"
        val keytool = File(System.getProperty("java.home"), "bin/keytool").path
        val command = listOf(keytool) + make.split(" ") + listOf("-storepass", "secret", "-keystore", keys.path)
        same(ProcessBuilder(command).redirectErrorStream(true).start().run { inputStream.readBytes(); waitFor() }, 0)
        val secret = "secret".toCharArray()
        val store = KeyStore.getInstance("PKCS12").apply { keys.inputStream().use { load(it, secret) } }
        val own = KeyManagerFactory.getInstance("PKIX").apply { init(store, secret) }.keyManagers
        val certificate = KeyStore.getInstance("PKCS12").apply {
            load(null)
            setCertificateEntry("a", store.getCertificate("a"))
        }
        val trust = TrustManagerFactory.getInstance("PKIX").apply { init(certificate) }.trustManagers
        Server(SSLContext.getInstance("TLS").apply { init(own, null, null) }).use { server ->
            t.fleet(server.url, transport) {
                val failed = thrown<WispException> { it.workBlocking(0.0) }
                same(failed.code, invalid)
                holds(failed.cause is SSLHandshakeException) { "the cause is ${failed.cause}" }
            }
            val trusting = SSLContext.getInstance("TLS").apply { init(null, trust, null) }.socketFactory
            val configure = { it: HttpURLConnection -> (it as HttpsURLConnection).sslSocketFactory = trusting }
            t.fleet(server.url, HttpFleetTransport(newKey(), configure)) { it.workBlocking(0.0) }
            same(server.calls.last(), "pull-messages")
        }
    }
}

private data class Answer(val status: Int, val body: ByteArray, val code: WispException.Code, val word: String)

private fun throwingCases(t: Cases) {
    val url = "http://127.0.0.1:1"
    t.case("what a transport or a sentence's receiver throws comes out, and the next call goes on") {
        var mine = true
        fun <T> failing(otherwise: () -> T): T = if (mine) throw IllegalStateException("mine") else otherwise()
        val transports = listOf(
            object : Local() {
                override fun post(url: String, headers: Map<String, String>, body: ByteArray) =
                    failing { super.post(url, headers, body) }
            },
            object : Local() {
                override fun sign(message: ByteArray) = failing { super.sign(message) }
            },
            object : Local() {
                override fun post(url: String, headers: Map<String, String>, body: ByteArray): FleetReply {
                    val reply = super.post(url, headers, body)
                    return FleetReply(reply.status, object : InputStream() {
                        override fun read() = failing { reply.body.read() }
                    })
                }
            }
        )
        for (transport in transports) {
            t.fleet(url, transport) {
                mine = true
                same(thrown<IllegalStateException> { it.workBlocking(0.0) }.message, "mine")
                same(thrown<IllegalStateException> { runBlocking { it.work(0.0) } }.message, "mine")
                mine = false
                same(it.workBlocking(0.0).answers, 0)
            }
        }
        val key = object : Local() {
            override val publicKeyPem: String get() = throw IOException("locked")
        }
        same(thrown<IOException> { t.fleet(url, key) {} }.message, "locked")
        val anchor = object : Anchor {
            override fun read(): ByteArray = throw IOException("locked")
            override fun write(bytes: ByteArray) = Unit
        }
        same(thrown<IOException> { Fleet.open(t.fleetOptions(url), Local(), anchor) }.message, "locked")
    }
    t.case("what no key signs so, and nothing for an answer, are refused") {
        fun signing(der: ByteArray) = object : Local() {
            override fun sign(message: ByteArray) = der
        }
        t.fleet(url, signing(ByteArray(161))) {
            refused(WispException.Code.INVALID_ARGUMENT, "161 bytes, allowed are 160") { it.workBlocking(0.0) }
        }
        val cut = object : Local() {
            override fun post(url: String, headers: Map<String, String>, body: ByteArray) =
                FleetReply(200, ByteArrayInputStream(ByteArray(0)))
        }
        t.fleet(url, cut) { refused(WispException.Code.INVALID_DATA, "node id") { it.workBlocking(0.0) } }
    }
    t.case("a call leaves no reference behind") {
        val calls = AtomicInteger()
        var first: WeakReference<ByteArray>? = null
        val counting = object : Local() {
            override fun post(url: String, headers: Map<String, String>, body: ByteArray): FleetReply {
                if (calls.incrementAndGet() == 1) first = WeakReference(body)
                return super.post(url, headers, body)
            }
        }
        val pausing = t.fleetOptions(url).copy(askSeconds = 0.001)
        Fleet.open(pausing, counting).use {
            val worker = thread { worked(it) }
            while (calls.get() < 100) Thread.sleep(1)
            System.gc()
            holds(first!!.get() == null) { "the first body is kept while the work goes on" }
            it.close()
            worker.join()
        }
    }
}

/** What work gives that another thread stops: its progress, or the code of its error. */
private fun worked(fleet: Fleet): Any = try {
    fleet.workBlocking(600.0)
} catch (stopped: WispException) {
    stopped.code
}

private fun stoppingCases(t: Cases) {
    val url = "http://127.0.0.1:1"
    t.case("a fleet that is closed cannot be used, nor closed by its own callback") {
        Fleet.open(t.fleetOptions(url), Local()).apply {
            close()
            close()
            holds("closed" in thrown<IllegalStateException> { workBlocking(0.0) }.message.orEmpty()) { "no sentence" }
        }
        lateinit var open: Fleet
        for (use in listOf<(Fleet) -> Unit>({ it.close() }, { it.workBlocking(0.0) })) {
            val using = object : Local() {
                override fun sign(message: ByteArray) = super.sign(message).also { use(open) }
            }
            open = Fleet.open(t.fleetOptions(url), using)
            holds("callbacks" in thrown<IllegalStateException> { open.workBlocking(0.0) }.message.orEmpty()) { "used" }
            open.close()
        }
    }
    t.case("closing and cancelling end a pause at once, and a call that has not begun") {
        for (asks in listOf(true, false)) {
            val posted = Semaphore(0)
            val transport = object : Local() {
                override fun post(url: String, headers: Map<String, String>, body: ByteArray): FleetReply {
                    if (asks == "pull-messages" in url) posted.release()
                    if (!asks) Thread.sleep(300) // stopped meanwhile
                    return super.post(url, headers, body)
                }
            }
            val options = t.fleetOptions(url).copy(askSeconds = 600.0)
            val seen = CopyOnWriteArrayList<Any>()
            val begin = System.nanoTime()
            Fleet.open(options, transport).use { fleet ->
                runBlocking {
                    val work = GlobalScope.async(Dispatchers.Default) { fleet.work(600.0) }
                    posted.acquire()
                    work.cancel()
                    thrown<CancellationException> { work.await() }
                }
            }
            posted.drainPermits()
            val second = Fleet.open(options, transport)
            val worker = thread { seen += worked(second) }
            posted.acquire()
            Thread.sleep(100) // the pause has begun, mostly
            second.close()
            worker.join()
            holds(asks && seen[0] is FleetProgress || seen[0] == WispException.Code.CANCELLED) { "seen $seen" }
            holds(System.nanoTime() - begin < TimeUnit.SECONDS.toNanos(20)) { "it waited" }
        }
    }
}
