package dev.wisp.example

import android.content.Context
import androidx.work.Constraints
import androidx.work.CoroutineWorker
import androidx.work.ExistingPeriodicWorkPolicy
import androidx.work.PeriodicWorkRequest
import androidx.work.WorkManager
import androidx.work.WorkerParameters
import dev.wisp.KeyStoreAnchor
import dev.wisp.WispException
import java.util.concurrent.TimeUnit

/** Runs one run of the plan, once a day, while the device charges and is idle. Android stops it when that ends. */
class PlannedRunWorker(context: Context, parameters: WorkerParameters) : CoroutineWorker(context, parameters) {
    override suspend fun doWork(): Result = try {
        cafe(applicationContext).runPlanned()
        Result.success()
    } catch (refused: WispException) {
        // An error of the disk may be gone tomorrow. A refused plan, budget or file stays refused, so the failure must
        // be visible.
        if (refused.code == WispException.Code.IO) Result.retry() else Result.failure()
    }

    companion object {
        fun schedule(context: Context) {
            val quiet = Constraints.Builder().setRequiresCharging(true).setRequiresDeviceIdle(true).build()
            val nightly = PeriodicWorkRequest.Builder(PlannedRunWorker::class.java, 1, TimeUnit.DAYS)
            WorkManager.getInstance(context).enqueueUniquePeriodicWork(
                "wisp run", ExistingPeriodicWorkPolicy.KEEP, nightly.setConstraints(quiet).build()
            )
        }
    }
}

fun cafe(context: Context): Cafe = Cafe(context.assets, context.filesDir, KeyStoreAnchor.of(context))
