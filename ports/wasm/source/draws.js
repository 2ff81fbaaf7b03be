// Private draws: items are sampled instead of ranked, and the ledger is charged before each.

export class Draws {
  // `text` tells the user of this object by which options it was opened. `base` is the public model, or null. Both
  // models must stay open until close().
  constructor(library, text, model, base, {publicDatasets = [], ...options}) {
    this.library = library;
    this.text = text;
    this.model = model;
    this.address = library.within((scope) => {
      const out = scope.allocate(4), labels = scope.texts(publicDatasets, "publicDatasets");
      const how = library.struct(
          scope, "wisp_private_options", {...options, numPublicDatasets: publicDatasets.length},
          {publicDatasets: labels, baseModel: base === null ? 0 : base.opened()});
      library.call(scope, "wisp_private_recommender_open", model.opened(), how, out);
      return library.view().getUint32(out, true);
    });
  }

  // Returns { free, items }: whether nothing was charged, and at most `count` items in the order of sampling.
  recommend(history, options) {
    const {library, model} = this;
    return library.within((scope) => {
      const {count, how, out, found} = model.prepared(scope, "recommendPrivately", options);
      const [historyAt, numHistory] = model.items(scope, history, "history");
      library.view().setUint32(found, count, true);
      library.call(scope, "wisp_private_recommend", this.address, historyAt, numHistory, how, out, found);
      const view = library.view();
      return {
        free: library.ask("wisp_private_recommender_is_free", this.address) === 1,
        items:
            Array.from({length: view.getUint32(found, true)}, (_, i) => model.named(view.getInt32(out + 4 * i, true)))
      };
    });
  }

  close() { this.library.ask("wisp_private_recommender_close", this.address); }
}
