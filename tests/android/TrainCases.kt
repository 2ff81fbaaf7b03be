package dev.wisp

import android.content.res.AssetManager
import dev.wisp.example.Cafe
import kotlinx.coroutines.CancellationException
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.GlobalScope
import kotlinx.coroutines.Job
import kotlinx.coroutines.async
import kotlinx.coroutines.launch
import kotlinx.coroutines.runBlocking
import java.io.File
import java.util.concurrent.CyclicBarrier
import java.util.concurrent.atomic.AtomicInteger
import kotlin.concurrent.thread

/** The shortest real run: two epochs over the log. */
fun Cases.options(folder: File, checkpointed: Boolean = false) = PersonaliseOptions(
    model = model.path,
    log = log.path,
    output = File(folder, "mine.wisp").path,
    ledger = File(folder, "log.ledger").path,
    epsilon = 3.0,
    delta = 1e-4,
    numRecordsPublic = 300,
    unit = PrivacyUnit.USER,
    budgetEpsilon = 8.0,
    epochs = 2.0,
    threads = 1,
    checkpoint = if (checkpointed) File(folder, "run.checkpoint").path else null,
    checkpointEvery = if (checkpointed) 1 else 0
)

fun trainCases(t: Cases) {
    t.case("a run writes a model, says what it cost, and calls back on the thread that works") {
        val options = t.options(t.folder())
        val seen = ArrayList<Progress>()
        val threads = HashSet<Thread>()
        val result = runBlocking { personalise(options) { seen += it; threads += Thread.currentThread() } }
        same(seen.map { it.step }, (1..result.steps).toList())
        same(threads.size, 1)
        holds(result.epsilon > 2 && result.epsilon <= 3) { "epsilon is ${result.epsilon}" }
        same(result.numRecords, 300L)
        Recommender.open(File(options.output)).use { same(it.info.numProvenance > 0, true) }
        holds(personaliseMemory(options) > 100_000) { "no memory" }
        val budget = Deployment.budget(options.ledger, 1e-4)
        same(budget.epsilonLimit, 8.0)
        holds(budget.epsilonStated >= result.epsilon) {
            "the ledger has ${budget.epsilonStated}, the run ${result.epsilon}"
        }
        holds("epsilon" in Deployment.statement(options.ledger, 1e-4)) { "no statement" }
        holds(Deployment.statement(options.ledger, 1e-4, json = true).startsWith("{")) { "no JSON" }
        holds(Deployment.evaluate(options.output, options.log).numUsers == 300L) { "no quality" }
    }
    t.case("a recommender answers on other threads while a run trains") {
        val options = t.options(t.folder())
        Recommender.open(t.model).use { model ->
            val before = model.recommend(intArrayOf(12, 7, 31), 10)
            var lists = 0
            var running = true
            val other = thread {
                while (running) {
                    same(model.recommend(intArrayOf(12, 7, 31), 10), before)
                    ++lists
                }
            }
            personaliseBlocking(options)
            running = false
            other.join()
            holds(lists > 10) { "only $lists lists" }
        }
    }
    cancelCases(t)
    ledgerCases(t)
    deploymentCases(t)
}

private fun cancelCases(t: Cases) {
    t.case("what was done whole before a cancellation is returned, and what was cancelled before does not begin") {
        var seen = 0
        var begun = false
        runBlocking {
            GlobalScope.launch(Dispatchers.Default) {
                val job = coroutineContext[Job]!!
                seen = whileActive({}) { job.cancel(); 7 }
                whileActive({}) { begun = true }
            }.join()
        }
        same(seen, 7)
        same(begun, false)
    }
    t.case("false of the callback stops the run, and the next call resumes from its checkpoint") {
        val options = t.options(t.folder(), checkpointed = true)
        refused(WispException.Code.CANCELLED, "") { personaliseBlocking(options) { it.step < 3 } }
        holds(!File(options.output).exists()) { "a model was written" }
        val result = personaliseBlocking(options)
        same(result.resumedFrom, 3L)
        holds(File(options.output).exists() && !File(options.checkpoint!!).exists()) {
            "no model, or a checkpoint that stayed"
        }
    }
    t.case("cancelling the coroutine stops the run after its step, and the next call resumes it") {
        val options = t.options(t.folder(), checkpointed = true)
        runBlocking {
            lateinit var stop: () -> Unit
            var last = 0L
            val run = GlobalScope.async(Dispatchers.Default) {
                personalise(options) { last = it.step; if (it.step == 2L) stop() }
            }
            stop = { run.cancel() }
            thrown<CancellationException> { run.await() }
            same(last, 2L)
            same(personalise(options).resumedFrom, 2L)
        }
    }
    t.case("what a callback throws ends the run, and comes out of it") {
        val options = t.options(t.folder())
        val failing: (Progress) -> Nothing = { throw IllegalStateException("mine") }
        val blocking = thrown<IllegalStateException> { personaliseBlocking(options, onProgress = failing) }
        val suspended = thrown<IllegalStateException> { runBlocking { personalise(options, onProgress = failing) } }
        same(listOf(blocking.message, suspended.message), listOf("mine", "mine"))
        holds(!File(options.output).exists()) { "a model was written" }
    }
}

private fun ledgerCases(t: Cases) {
    t.case("a budget that is used up refuses the next run, with numbers") {
        val options = t.options(t.folder()).copy(budgetEpsilon = 3.5)
        personaliseBlocking(options)
        refused(WispException.Code.PRIVACY_REFUSED, "3.5") { personaliseBlocking(options) }
    }
    t.case("options that the library refuses are exceptions with its sentence") {
        val options = t.options(t.folder())
        refused(WispException.Code.INVALID_ARGUMENT, "epsilon") { personaliseBlocking(options.copy(epsilon = 0.0)) }
        refused(WispException.Code.INVALID_ARGUMENT, "session gap is 0") {
            personaliseBlocking(options.copy(unit = PrivacyUnit.SESSION))
        }
        refused(WispException.Code.INVALID_ARGUMENT, "numRecordsPublic is -1") {
            personaliseBlocking(options.copy(numRecordsPublic = -1))
        }
        refused(WispException.Code.IO, "none.db") {
            personaliseBlocking(options.copy(log = File(t.folder(), "none.db").path))
        }
        refused(WispException.Code.IO, "no.ledger") { Deployment.statement(File(t.folder(), "no.ledger").path, 1e-4) }
        holds(!File(options.ledger).exists()) { "something was charged" }
    }
}

private fun deploymentCases(t: Cases) {
    t.case("the example's app plans, cancels and resumes runs with an anchor, and states what they cost") {
        val folder = t.folder()
        val assets = t.folder()
        File(assets, "cafe.wisp.64").writeBytes(ByteArray(64) + t.model.readBytes())
        t.log.copyTo(File(folder, "log.db"))
        val cafe = Cafe(AssetManager(assets), folder, SealedAnchor(File(folder, "log.anchor"), MemoryKeys()))
        cafe.ordered("anna", "tea-mint", 1_795_000_000)
        same(cafe.list("anna", 5).size, 5)
        same(cafe.runsLeft(), null)
        runBlocking {
            val run = GlobalScope.async(Dispatchers.Default) {
                cafe.runPlanned { if (it.step == 1L) throw CancellationException("the charger was pulled out") }
            }
            thrown<CancellationException> { run.await() }
            val first = cafe.runPlanned()
            holds(first.steps > 0 && first.runsLeft < 365) { "${first.steps} steps, ${first.runsLeft} runs left" }
            same(first.served == Served.BASE || first.changed, true)
            same(cafe.runsLeft(), first.runsLeft)
        }
        holds("epsilon" in cafe.statement()) { "no statement" }
        same(cafe.list("anna", 5).size, 5)
    }
    t.case("the example's app unpacks its base once though several begin, and another when an update brings it") {
        val folder = t.folder()
        val assets = t.folder()
        val base = File(folder, "cafe.wisp")
        val ring = MemoryKeys()
        fun cafe() = Cafe(AssetManager(assets), folder, SealedAnchor(File(folder, "log.anchor"), ring))
        File(assets, "cafe.wisp.0").writeBytes(t.model.readBytes())
        val lists = AtomicInteger()
        val start = CyclicBarrier(8)
        List(8) {
            thread {
                val cafe = cafe().also { start.await() }
                if (cafe.list("anna", 5).size == 5) lists.incrementAndGet()
            }
        }.forEach { it.join() }
        same(lists.get(), 8)
        val newer = File(t.log.absoluteFile.parentFile, "newer.wisp").readBytes()
        t.log.copyTo(File(folder, "log.db"), overwrite = true)
        runBlocking { cafe().runPlanned() }
        File(assets, "cafe.wisp.0").writeBytes(newer)
        val after = runBlocking { cafe().runPlanned() }
        holds(base.readBytes().contentEquals(newer)) { "the base is not the update's" }
        holds(after.steps > 0) { "no step on the new base" }
        same(cafe().list("anna", 5).size, 5)
        same(folder.list()!!.filter { it.startsWith("base") }, emptyList<String>())
    }
    t.case("a run that may not hold its memory is refused before it is charged, and says sentences") {
        val folder = t.folder()
        val mine = File(folder, "mine.wisp").path
        val options = PlannedRunOptions(t.model.path, t.log.path, mine, File(folder, "log.ledger").path)
        val plan = PlanOptions(t.model.path, options.ledger, "a log", 4.0, 1e-4, 300, 10, PrivacyUnit.USER)
        holds(Deployment.plan(plan.copy(dryRun = true)).bytes > 100_000 && !File(options.ledger).exists()) {
            "a dry run wrote"
        }
        same(Deployment.plan(plan).wasThere, false)
        same(Deployment.plan(plan).wasThere, true)
        refused(WispException.Code.PRIVACY_REFUSED, "the number of runs is 10, asked for is 9") {
            Deployment.plan(plan.copy(runs = 9))
        }
        runBlocking {
            refused(WispException.Code.INVALID_ARGUMENT, "bytes") { runPlanned(options.copy(maxBytes = 1000)) }
            val sentences = ArrayList<String>()
            Deployment.runPlanned(options, onSentence = { _, sentence -> sentences += sentence })
            holds(sentences.isNotEmpty()) { "a run said nothing" }
        }
        val newer = File(t.log.absoluteFile.parentFile, "newer.wisp")
        same(Deployment.rebase(t.model.path, newer.path, options.output, options.ledger).sharedItems, 480)
        refused(WispException.Code.INVALID_ARGUMENT, "nothing is to be carried") {
            Deployment.rebase(newer.path, newer.path, options.output, options.ledger)
        }
    }
}

private suspend fun runPlanned(options: PlannedRunOptions) = Deployment.runPlanned(options)
