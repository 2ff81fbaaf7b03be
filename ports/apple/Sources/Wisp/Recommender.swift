import CWisp
import Foundation

/// One item of a list, the best first.
public struct Recommendation: Equatable, Sendable {
  /// Its index in the model, from 0 on.
  public let item: Int32
  /// Its name in the app's own data; "" if the model has none.
  public let key: String
  /// Its name for people; "" if the model has none.
  public let name: String
  /// Comparable within one list only.
  public let score: Float
}

/// A model that recommends. Any thread may use it; one at a time does. It closes itself.
///
///     let wisp = try Recommender.open(contentsOf: Bundle.main.url(forResource: "cafe", withExtension: "wisp")!)
///     for best in try wisp.recommend(keys: ["tea-mint", "bagel-lentil"], count: 5) { print(best.name) }
public final class Recommender: @unchecked Sendable {
  public struct Options: Sendable {
    /// 8-bit integers instead of floats: faster, a quarter of the memory, slightly different scores.
    public var int8 = false
    /// Number of threads that share one history, the caller's included.
    public var threads: UInt32 = 1
    /// Opening fails if the model would hold more bytes beside its file; 0: no limit.
    public var maxBytes: UInt64 = 0
    /// An adapter that was trained for this model.
    public var adapter: URL?

    public init() {}
  }

  private let lock = NSLock()
  private let model: OpaquePointer
  private let bytes: UnsafeMutableRawPointer?

  private init(model: OpaquePointer, bytes: UnsafeMutableRawPointer?) {
    self.model = model
    self.bytes = bytes
  }

  deinit {
    wisp_model_close(model)
    bytes?.deallocate()
  }

  /// Maps the file and verifies it, weights included. It must not be changed in place while this object lives;
  /// replacing it is fine.
  public static func open(contentsOf url: URL, options: Options = Options()) throws -> Recommender {
    let texts = Texts()
    var choice = try openOptions(options, texts)
    var opened: OpaquePointer?
    let path = try texts.path(url)
    try check { wisp_model_open_with(path, &choice, &opened, $0) }
    withExtendedLifetime(texts) {}
    return Recommender(model: opened!, bytes: nil)
  }

  /// Opens a model in memory, which is copied. `name` is used in messages.
  public static func open(data: Data, name: String = "the model", options: Options = Options()) throws -> Recommender {
    let texts = Texts()
    var choice = try openOptions(options, texts)
    let copy = UnsafeMutableRawPointer.allocate(byteCount: max(data.count, 1), alignment: 64)
    data.withUnsafeBytes { from in
      if let start = from.baseAddress { copy.copyMemory(from: start, byteCount: from.count) }
    }
    do {
      var opened: OpaquePointer?
      let cName = try texts.of(name)
      try check { wisp_model_open_memory(cName, copy, data.count, &choice, &opened, $0) }
      withExtendedLifetime(texts) {}
      return Recommender(model: opened!, bytes: copy)
    } catch {
      copy.deallocate()
      throw error
    }
  }

  private static func openOptions(_ options: Options, _ texts: Texts) throws -> wisp_open_options {
    var choice: wisp_open_options = sized()
    choice.backend = options.int8 ? WISP_BACKEND_INT8 : WISP_BACKEND_SIMD
    choice.num_threads = options.threads
    choice.max_bytes = options.maxBytes
    choice.adapter_path = try texts.path(options.adapter)
    return choice
  }

  /// The number of items that the model knows.
  public var itemCount: Int { locked { wisp_model_num_items(model) } }

  /// The index of the item with that key, or nil if the model does not know it.
  public func item(forKey key: String) -> Int32? {
    if key.utf8.contains(0) { return nil }  // C would look for what comes before the zero
    let item = locked { wisp_model_find_item(model, key) }
    return item < 0 ? nil : item
  }

  /// At most `count` best items after a history, oldest first. An empty history (cold start) gets popular items.
  /// - Parameters:
  ///   - excluded: items that are never recommended.
  ///   - candidates: if given, only these are considered.
  ///   - allowSeen: whether items of the history may be recommended again; nil: as the model says.
  public func recommend(
    history: [Int32], count: Int, excluded: [Int32] = [], candidates: [Int32]? = nil, allowSeen: Bool? = nil
  ) throws -> [Recommendation] {
    guard count > 0, candidates.map({ !$0.isEmpty }) ?? true else { return [] }
    var best = [wisp_recommendation](repeating: wisp_recommendation(), count: min(count, itemCount))
    var found = best.count
    return try locked {
      try history.withUnsafeBufferPointer { history in
        try excluded.withUnsafeBufferPointer { excluded in
          try (candidates ?? []).withUnsafeBufferPointer { among in
            var options: wisp_recommend_options = sized()
            options.excluded = excluded.baseAddress
            options.num_excluded = excluded.count
            options.candidates = candidates == nil ? nil : among.baseAddress
            options.num_candidates = among.count
            options.allow_seen = allowSeen.map { $0 ? 1 : 2 } ?? 0
            try check {
              wisp_recommend(model, history.baseAddress, history.count, &options, &best, &found, $0)
            }
          }
        }
      }
      return best.prefix(found).map { recommendation($0) }
    }
  }

  /// `recommend` by the items' keys. Keys that the model does not know are left out.
  public func recommend(keys: [String], count: Int) throws -> [Recommendation] {
    try recommend(history: keys.compactMap { item(forKey: $0) }, count: count)
  }

  /// `recommend` on another thread, so that a view's thread does not wait.
  public func recommend(
    history: [Int32], count: Int, excluded: [Int32] = [], candidates: [Int32]? = nil, allowSeen: Bool? = nil
  ) async throws -> [Recommendation] {
    try await onThread(.userInitiated) {
      try self.recommend(
        history: history, count: count, excluded: excluded, candidates: candidates, allowSeen: allowSeen)
    }
  }

  public func recommend(keys: [String], count: Int) async throws -> [Recommendation] {
    try await onThread(.userInitiated) { try self.recommend(keys: keys, count: count) }
  }

  private func recommendation(_ best: wisp_recommendation) -> Recommendation {
    Recommendation(
      item: best.item, key: String(cString: wisp_model_item_key(model, best.item)),
      name: String(cString: wisp_model_item_name(model, best.item)), score: best.score)
  }

  /// Gives `body` the handle of the C interface while it runs.
  func withModel<Result>(_ body: (OpaquePointer) throws -> Result) rethrows -> Result {
    try locked { try body(model) }
  }

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }
}
