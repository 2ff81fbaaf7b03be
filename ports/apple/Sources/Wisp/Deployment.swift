import CWisp
import Foundation

/// Nightly training: one plan, one run at a time, and a personalised model only if it was found better.
///
///     var deployment = Deployment(base: shipped, log: log, ledger: ledger, output: mine, dataset: "my shop")
///     try deployment.plan(epsilon: 8, delta: 1e-5, recordsPublic: 2000, runs: 365, unit: .user)   // at each start
///     if try await deployment.runPlanned().changed { recommender = try Recommender.open(contentsOf: mine) }
public struct Deployment: Sendable {
  /// The base, as shipped.
  public var base: URL
  public var log: URL
  public var ledger: URL
  /// The model that people are served: the base at first.
  public var output: URL
  /// The name of the data set, the same each time.
  public var dataset: String
  public var anchor: Anchor?
  public var anchorBegins = false

  public init(base: URL, log: URL, ledger: URL, output: URL, dataset: String) {
    self.base = base
    self.log = log
    self.ledger = ledger
    self.output = output
    self.dataset = dataset
  }

  public struct Plan: Sendable {
    public let runs: UInt32
    public let stepsPerRun: UInt64
    /// At this noise the base is the better model.
    public let isHopeless: Bool
    /// Releases of the counts of which item follows which; 0: none. They take this share of the plan's budget.
    public let successionReleases: UInt64
    public let successionShare: Double
    /// The noise multiplier of a release.
    public let successionNoise: Double
    /// Releases of the weight of the output bias; 0: none. They take this share of the plan's budget.
    public let biasWeightReleases: UInt64
    public let biasWeightShare: Double
    /// The noise multiplier of a release.
    public let biasWeightNoise: Double
    /// Bytes that a run holds while it steps, beside the log.
    public let bytes: UInt64
    /// The ledger already had the plan, and nothing was written.
    public let wasThere: Bool
  }

  /// Finds the noise and writes the plan into the ledger, or finds the existing plan: call it at each start. A plan
  /// that differs from the existing one is refused, unless `replacing` and nothing was charged. A new plan is also
  /// refused if the ledger is gone and runs trained beside `output`. Reads no event.
  @discardableResult
  public func plan(
    epsilon: Double, delta: Double, recordsPublic: UInt32, runs: UInt32, unit: PrivacyUnit, stepsPerRun: UInt64 = 0,
    replacing: Bool = false, dryRun: Bool = false
  ) throws -> Plan {
    let texts = Texts()
    let bridge = AnchorBridge(anchor, begins: anchorBegins)
    var options: wisp_plan_options = sized()
    options.model_path = try texts.path(base)
    options.ledger_path = try texts.path(ledger)
    options.dataset = try texts.of(dataset)
    options.epsilon = epsilon
    options.delta = delta
    options.num_records_public = recordsPublic
    options.runs = runs
    options.steps_per_run = stepsPerRun
    options.unit = unit.number
    options.session_gap = unit.gap
    options.dry_run = dryRun ? 1 : 0
    options.replace = replacing ? 1 : 0
    options.output_path = try texts.path(output)
    options.anchor = UnsafePointer(bridge.pointer)
    var plan: wisp_plan = sized()
    try withExtendedLifetime((texts, bridge)) {
      try bridge.checked { wisp_plan_make(&options, &plan, $0) }
    }
    return Plan(
      runs: plan.runs, stepsPerRun: plan.steps_per_run, isHopeless: plan.outlook == WISP_OUTLOOK_HOPELESS,
      successionReleases: plan.succession_releases, successionShare: plan.succession_share,
      successionNoise: plan.succession_noise, biasWeightReleases: plan.bias_weight_releases,
      biasWeightShare: plan.bias_weight_share, biasWeightNoise: plan.bias_weight_noise, bytes: plan.bytes,
      wasThere: plan.was_there != 0)
  }

  public struct PlannedRun: Sendable {
    /// The file at `output` was replaced: open it again.
    public let changed: Bool
    /// Steps of this run; 0: the plan has none left.
    public let steps: UInt64
    public let runsLeft: UInt64
  }

  /// One run of the plan, on a thread of its own. Cancelling the task, or the system ending the app, loses only what
  /// came after the last charge: the next call resumes.
  public func runPlanned(
    threads: UInt32 = 0, maxBytes: UInt64 = 0, progress: TrainingCallback? = nil
  ) async throws -> PlannedRun {
    let deployment = self
    return try await Steps.run(progress) { try deployment.runPlanned(threads, maxBytes, $0) }
  }

  /// Carries what was learned over to the new base of an app's update. `from` is the previous base, which must still
  /// exist. No run may run meanwhile. If what was learned would be lost, `.invalidArgument` says why and nothing
  /// changes: keep the previous base. `startOver` gives up what was learned.
  public static func rebase(
    from old: URL, to new: URL, output: URL, ledger: URL, startOver: Bool = false
  ) throws {
    let texts = Texts()
    var options: wisp_rebase_options = sized()
    options.from_path = try texts.path(old)
    options.to_path = try texts.path(new)
    options.output_path = try texts.path(output)
    options.ledger_path = try texts.path(ledger)
    options.start_over = startOver ? 1 : 0
    var result: wisp_rebase_result = sized()
    try withExtendedLifetime(texts) {
      try check { wisp_rebase(&options, &result, $0) }
    }
  }

  private func runPlanned(_ threads: UInt32, _ maxBytes: UInt64, _ steps: Steps) throws -> PlannedRun {
    let texts = Texts()
    let bridge = AnchorBridge(anchor, begins: anchorBegins)
    var options: wisp_run_options = sized()
    options.model_path = try texts.path(base)
    options.log_path = try texts.path(log)
    options.output_path = try texts.path(output)
    options.ledger_path = try texts.path(ledger)
    options.dataset = try texts.of(dataset)
    options.num_threads = threads
    options.max_bytes = maxBytes
    options.anchor = UnsafePointer(bridge.pointer)
    options.progress = Steps.progress
    options.user_data = steps.pointer
    var result: wisp_run_result = sized()
    try withExtendedLifetime((texts, bridge, steps)) {
      try bridge.checked { wisp_run_planned(&options, &result, $0) }
    }
    return PlannedRun(changed: result.changed != 0, steps: result.steps, runsLeft: result.runs_left)
  }
}
