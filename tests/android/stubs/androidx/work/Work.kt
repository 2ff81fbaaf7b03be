@file:Suppress("UNUSED_PARAMETER")

package androidx.work

import android.content.Context
import java.util.concurrent.TimeUnit

class WorkerParameters

abstract class ListenableWorker(val applicationContext: Context, parameters: WorkerParameters) {
    abstract class Result {
        companion object {
            @JvmStatic
            fun success(): Result = object : Result() {}

            @JvmStatic
            fun retry(): Result = object : Result() {}

            @JvmStatic
            fun failure(): Result = object : Result() {}
        }
    }
}

abstract class CoroutineWorker(context: Context, parameters: WorkerParameters) : ListenableWorker(context, parameters) {
    abstract suspend fun doWork(): Result
}

class Constraints {
    class Builder {
        fun setRequiresCharging(charging: Boolean): Builder = this
        fun setRequiresDeviceIdle(idle: Boolean): Builder = this
        fun build(): Constraints = Constraints()
    }
}

class PeriodicWorkRequest {
    class Builder(worker: Class<out ListenableWorker>, every: Long, unit: TimeUnit) {
        fun setConstraints(constraints: Constraints): Builder = this
        fun build(): PeriodicWorkRequest = PeriodicWorkRequest()
    }
}

enum class ExistingPeriodicWorkPolicy { KEEP }

abstract class WorkManager {
    abstract fun enqueueUniquePeriodicWork(name: String, policy: ExistingPeriodicWorkPolicy, work: PeriodicWorkRequest)

    companion object {
        @JvmStatic
        fun getInstance(context: Context): WorkManager = throw UnsupportedOperationException()
    }
}
