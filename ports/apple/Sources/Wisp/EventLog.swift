import CWisp
import Foundation

/// The events of this device: one SQLite file of user, item and time. Any thread may use it. It closes itself.
public final class EventLog: @unchecked Sendable {
  private let lock = NSLock()
  private let log: OpaquePointer

  /// Opens the file, or creates it.
  public init(contentsOf url: URL) throws {
    let texts = Texts()
    var opened: OpaquePointer?
    let path = try texts.path(url)
    try check { wisp_log_open(path, &opened, $0) }
    withExtendedLifetime(texts) {}
    log = opened!
  }

  deinit { wisp_log_close(log) }

  /// Appends one event, which is on the disk when this returns.
  /// - Parameter time: in any unit that increases; seconds since 1970 if records are sessions or days.
  public func append(user: String, item: String, time: Int64) throws {
    let texts = Texts()
    let cUser = try texts.of(user)
    let cItem = try texts.of(item)
    try locked { try check { wisp_log_append(log, cUser, cItem, time, $0) } }
    withExtendedLifetime(texts) {}
  }

  /// The newest items of a user that the model knows, oldest first; at most 2^24 of them.
  public func history(of user: String, for model: Recommender, count: Int = 200) throws -> [Int32] {
    guard count > 0 else { return [] }
    let texts = Texts()
    let cUser = try texts.of(user)
    let room = min(count, 1 << 24)
    var items = [Int32](repeating: 0, count: room)
    var found = room
    try model.withModel { model in
      try locked { try check { wisp_log_history(log, model, cUser, &items, &found, $0) } }
    }
    withExtendedLifetime(texts) {}
    return Array(items.prefix(found))
  }

  /// The number of events. Local only: do not send it anywhere.
  public func count() throws -> UInt64 { try counts().events }

  /// The number of events whose user, item or time training cannot read. Local only: do not send it anywhere.
  public func countUnreadable() throws -> UInt64 { try counts().unreadable }

  private func counts() throws -> wisp_log_counts {
    var counts: wisp_log_counts = sized()
    try locked { try check { wisp_log_count(log, &counts, $0) } }
    return counts
  }

  /// Deletes all events of a user, overwrites them, and returns their number. Models keep what they learned from them.
  @discardableResult
  public func erase(user: String) throws -> UInt64 {
    let texts = Texts()
    let cUser = try texts.of(user)
    var erased: UInt64 = 0
    try locked { try check { wisp_log_erase(log, cUser, &erased, $0) } }
    withExtendedLifetime(texts) {}
    return erased
  }

  private func locked<Result>(_ body: () throws -> Result) rethrows -> Result {
    lock.lock()
    defer { lock.unlock() }
    return try body()
  }
}
