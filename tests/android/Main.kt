package dev.wisp

import java.io.File
import kotlin.system.exitProcess

/** MODEL LOG WORK_FOLDER HISTORY EXPECTED_LINES, or MODEL LOG WORK_FOLDER alone for the one case of missing memory. */
fun main(args: Array<String>) {
    val t = Cases(File(args[0]), File(args[1]), File(args[2]))
    if (args.size == 3) {
        memoryCase(t)
    } else {
        val expected = File(args[4]).readLines().map { it.trim().replace(Regex(" +"), " ") }
        t.case("the version is the project's") {
            holds(Regex("[0-9]+\\.[0-9]+\\.[0-9]+").matches(wispVersion())) { wispVersion() }
        }
        recommendCases(t, args[3].split(","), expected)
        misuseCases(t)
        trainCases(t)
        anchorCases(t)
        fleetCases(t)
    }
    exitProcess(t.finish())
}
