package dev.wisp

/** A refusal or failure of the library: its code, and its sentence as the message. */
class WispException(val code: Code, sentence: String) : RuntimeException(sentence) {
    /** Called by the library. A code that this package does not know is [Code.INTERNAL]. */
    @Suppress("unused")
    internal constructor(number: Int, sentence: String) : this(Code.of(number), sentence)

    enum class Code(val number: Int) {
        /** Out of memory, or a defect of the library. */
        INTERNAL(1),

        /** The request names something that does not exist or is out of range. */
        INVALID_ARGUMENT(2),

        /** A file or a record is malformed. */
        INVALID_DATA(3),

        /** The request has no guarantee, or would pass the budget. */
        PRIVACY_REFUSED(4),

        /** The operating system refused. */
        IO(5),

        /** From a newer version, or not in this build. */
        UNSUPPORTED(6),

        /** The progress callback asked to stop. */
        CANCELLED(7),

        /** A planned run came before its time. */
        TOO_EARLY(8);

        internal companion object {
            fun of(number: Int): Code = values().firstOrNull { it.number == number } ?: INTERNAL
        }
    }
}
