package dev.wisp

import java.io.File

/** A minimal test program. The name of a case says what must hold; a case that fails is printed. */
class Cases(val model: File, val log: File, private val work: File) {
    private var failures = 0
    private var passed = 0
    private var folders = 0

    fun case(name: String, body: () -> Unit) {
        try {
            body()
            ++passed
        } catch (broken: Throwable) {
            ++failures
            println("FAILED: $name: $broken")
            broken.stackTrace.take(6).forEach { println("    $it") }
        }
    }

    /** Returns another empty folder each time. */
    fun folder(): File = File(work, "case${++folders}").apply { check(mkdirs()) }

    fun finish(): Int {
        println("$passed passed, $failures failed")
        return if (failures == 0) 0 else 1
    }
}

fun holds(what: Boolean, sentence: () -> String) {
    if (!what) throw AssertionError(sentence())
}

fun <T> same(seen: T, wanted: T) = holds(seen == wanted) { "seen $seen, wanted $wanted" }

/** Returns the exception of that type that `body` must throw. */
inline fun <reified T : Throwable> thrown(body: () -> Unit): T {
    try {
        body()
    } catch (expected: Throwable) {
        if (expected is T) return expected
        throw AssertionError("thrown was $expected, not ${T::class.java.name}", expected)
    }
    throw AssertionError("nothing was thrown, ${T::class.java.name} was expected")
}

inline fun refused(code: WispException.Code, word: String, body: () -> Unit) {
    val refusal = thrown<WispException> { body() }
    holds(refusal.code == code && word in refusal.message.orEmpty()) {
        "refused with ${refusal.code}, '${refusal.message}', not with $code and '$word'"
    }
}
