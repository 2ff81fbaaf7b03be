// The library's worker, and a count of its requests, which the page's own count lacks. Its name is that of the channel.
import "./wisp/worker.js";

const channel = new BroadcastChannel(self.name);
new PerformanceObserver((list) => channel.postMessage(list.getEntries().map(({name}) => name)))
    .observe({type: "resource"});
