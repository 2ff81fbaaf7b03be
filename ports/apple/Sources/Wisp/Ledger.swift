import CWisp
import Foundation

/// Reads a ledger: what the privacy of the data has cost so far.
public struct Ledger: Sendable {
  public var file: URL
  public var anchor: Anchor?

  public init(_ file: URL, anchor: Anchor? = nil) {
    self.file = file
    self.anchor = anchor
  }

  public struct Budget: Sendable {
    /// An upper bound of everything so far; infinite if it cannot be bounded.
    public let epsilonStated: Double
    public let delta: Double
    /// nil: the ledger has no limit.
    public let epsilonLimit: Double?
    /// Runs that the plan has left; nil: there is no plan.
    public let runsLeft: UInt64?
  }

  /// The budget that is left. Reading it costs nothing.
  /// - Parameter delta: used if the ledger has no limit.
  public func budget(delta: Double) throws -> Budget {
    let texts = Texts()
    let bridge = AnchorBridge(anchor, begins: false)
    let path = try texts.path(file)
    var budget: wisp_budget = sized()
    try withExtendedLifetime((texts, bridge)) {
      try bridge.checked { wisp_budget_read(path, bridge.pointer, delta, &budget, $0) }
    }
    return Budget(
      epsilonStated: budget.epsilon_stated, delta: budget.delta,
      epsilonLimit: budget.epsilon_limit.isNaN ? nil : budget.epsilon_limit,
      runsLeft: budget.has_plan == 0 ? nil : budget.runs_left)
  }

  /// The privacy statement over everything in the ledger: for people, or as JSON.
  public func statement(delta: Double, asJSON: Bool = false) throws -> String {
    let texts = Texts()
    let bridge = AnchorBridge(anchor, begins: false)
    let path = try texts.path(file)
    return try withExtendedLifetime((texts, bridge)) {
      try readText { text, capacity, needed in
        try bridge.checked {
          wisp_privacy_statement_anchored(
            path, bridge.pointer, delta, asJSON ? WISP_STATEMENT_JSON : WISP_STATEMENT_TEXT, text, capacity, needed, $0)
        }
      }
    }
  }

  #if os(iOS) || os(macOS) || os(tvOS) || os(watchOS)
    /// Keeps a file, or a folder with its content, out of backups. Restoring a backup would bring an old ledger back
    /// and forget what was spent since: keep ledger, log and models in one such folder.
    public static func exclude(fromBackups url: URL) throws {
      var file = url
      var values = URLResourceValues()
      values.isExcludedFromBackup = true
      try file.setResourceValues(values)
    }
  #endif
}
