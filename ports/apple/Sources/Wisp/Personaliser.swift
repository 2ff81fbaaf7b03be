import CWisp
import Foundation

/// One run of private fine-tuning on the log. For runs over years see Deployment.
///
///     var run = Personaliser(model: shipped, log: log, ledger: ledger, output: mine, unit: .user)
///     run.epsilon = 3
///     run.delta = 1e-5
///     run.recordsPublic = 2000
///     let result = try await run.personalise { print($0.step, $0.steps) }
public struct Personaliser: Sendable {
  /// The model to start from.
  public var model: URL
  /// The log of events.
  public var log: URL
  /// The data set's privacy ledger: created by the first charge if absent. Never delete it.
  public var ledger: URL
  /// The fine-tuned model. It may be `model`, which is then replaced atomically at the end.
  public var output: URL
  /// Epsilon of this run. Required.
  public var epsilon = 0.0
  /// Required: below 1 over `recordsPublic`.
  public var delta = 0.0
  /// A number of records that anybody may know. Required.
  public var recordsPublic: UInt32 = 0
  /// Limit over everything ever done with this data; 0: the limit already in the ledger, or none.
  public var budgetEpsilon = 0.0
  /// Definition of one record.
  public var unit: PrivacyUnit
  /// Passes over the records; 0: 20.
  public var epochs = 0.0
  /// 0: as many as the device has, at most 4.
  public var threads: UInt32 = 0
  /// The name of the data set, the same each time; nil: the log's file name.
  public var dataset: String?
  /// The file from which a stopped run resumes; nil: it must be paid for again.
  public var checkpoint: URL?
  public var anchor: Anchor?
  /// The anchor may still be missing although something was charged: for the first use.
  public var anchorBegins = false

  public init(model: URL, log: URL, ledger: URL, output: URL, unit: PrivacyUnit) {
    self.model = model
    self.log = log
    self.ledger = ledger
    self.output = output
    self.unit = unit
  }

  public struct Result: Sendable {
    public let steps: UInt64
    /// The epsilon that may be stated for this run, at its delta.
    public let epsilon: Double
    public let noiseMultiplier: Double
    /// The step of the checkpoint that the run resumed from; 0: none.
    public let resumedFrom: UInt64
  }

  /// Trains on a thread of its own. Cancelling the task ends it at the next step with CancellationError: no model is
  /// written, what was charged stays charged, and with `checkpoint` the next call resumes there.
  public func personalise(progress: TrainingCallback? = nil) async throws -> Result {
    let run = self
    return try await Steps.run(progress) { try run.personalise($0) }
  }

  /// Trains, and returns the steps as a stream. It ends when the model is written; to stop reading stops the run.
  public func steps() -> AsyncThrowingStream<TrainingProgress, Error> {
    let run = self
    return AsyncThrowingStream { stream in
      let task = Task {
        do {
          _ = try await run.personalise { stream.yield($0) }
          stream.finish()
        } catch {
          stream.finish(throwing: error)
        }
      }
      stream.onTermination = { _ in task.cancel() }
    }
  }

  private func personalise(_ steps: Steps) throws -> Result {
    let texts = Texts()
    let bridge = AnchorBridge(anchor, begins: anchorBegins)
    var options: wisp_personalise_options = sized()
    options.model_path = try texts.path(model)
    options.log_path = try texts.path(log)
    options.output_path = try texts.path(output)
    options.ledger_path = try texts.path(ledger)
    options.checkpoint_path = try texts.path(checkpoint)
    options.dataset = try texts.of(dataset)
    options.epsilon = epsilon
    options.delta = delta
    options.num_records_public = recordsPublic
    options.budget_epsilon = budgetEpsilon
    options.unit = unit.number
    options.session_gap = unit.gap
    options.epochs = epochs
    options.num_threads = threads
    options.anchor = UnsafePointer(bridge.pointer)
    options.progress = Steps.progress
    options.user_data = steps.pointer
    var result: wisp_personalise_result = sized()
    try withExtendedLifetime((texts, bridge, steps)) {
      try bridge.checked { wisp_personalise(&options, &result, $0) }
    }
    return Result(
      steps: result.num_steps, epsilon: result.epsilon, noiseMultiplier: result.noise_multiplier,
      resumedFrom: result.resumed_from)
  }
}
