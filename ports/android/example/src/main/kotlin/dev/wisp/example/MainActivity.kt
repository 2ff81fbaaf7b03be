package dev.wisp.example

import android.app.Activity
import android.os.Bundle
import android.widget.ArrayAdapter
import android.widget.ListView
import dev.wisp.Recommendation
import kotlinx.coroutines.CoroutineScope
import kotlinx.coroutines.Dispatchers
import kotlinx.coroutines.Job
import kotlinx.coroutines.launch
import kotlinx.coroutines.withContext

/** A list of what the guest may like. A touch orders an item and updates the list. Runs learn from the orders. */
class MainActivity : Activity() {
    private val job = Job()
    private val scope = CoroutineScope(Dispatchers.Main + job)
    private var shown: List<Recommendation> = emptyList()

    override fun onCreate(state: Bundle?) {
        super.onCreate(state)
        val view = ListView(this)
        setContentView(view)
        PlannedRunWorker.schedule(this)
        view.setOnItemClickListener { _, _, place, _ -> show(view, shown[place].key) }
        show(view, null)
    }

    override fun onDestroy() {
        job.cancel()
        super.onDestroy()
    }

    private fun show(view: ListView, ordered: String?) {
        scope.launch {
            shown = withContext(Dispatchers.IO) {
                val cafe = cafe(applicationContext)
                if (ordered != null) cafe.ordered(GUEST, ordered)
                cafe.list(GUEST, 20)
            }
            view.adapter = ArrayAdapter(this@MainActivity, android.R.layout.simple_list_item_1, shown.map { it.name })
        }
    }

    private companion object {
        const val GUEST = "guest"
    }
}
