import CWisp
import Foundation

/// A device of a fleet, which trains one model with many others. What it does follows from its policy, a file of the
/// app. Each participation is charged to the ledger before the first byte of an update leaves.
///
///     let options = Fleet.Options(policy: policy, model: shipped, log: log, ledger: ledger)
///     let fleet = try Fleet(options, transport: KeychainTransport(tag: "com.example.cafe.fleet"))   // at each start
///     let result = try await fleet.work()                                                           // now and then
///
/// Any thread may use it; one at a time does. It closes itself.
public final class Fleet: @unchecked Sendable {
  public struct Options: Sendable {
    /// policy.json, which comes with the app.
    public var policy: URL
    /// The base, as shipped.
    public var model: URL
    /// The log of events. If it is missing or damaged, zeros are sent.
    public var log: URL
    /// The ledger of fleets alone: created if absent, with the policy's plan. Beside it lie files of unfinished work.
    public var ledger: URL
    /// Where a model of the fleet is kept, if it is not worse here; nil: nowhere.
    public var output: URL?
    /// How events are grouped for training. If the policy protects records, they are these.
    public var unit = PrivacyUnit.user
    /// The log's times in a second.
    public var timesPerSecond: UInt32 = 1
    /// The mean time between two questions for work while the server has no work; 0: 30.
    public var askSeconds = 0.0
    /// The ledger's anchor; nil: participations are counted for an installation, not a device.
    public var anchor: Anchor?
    /// The anchor may still be missing although something was charged: for the first use.
    public var anchorBegins = false
    /// The ledger that runs on records charge, if the policy protects records. Otherwise nil.
    public var recordsLedger: URL?
    /// The name of the data for that ledger, the same each time.
    public var dataset: String?
    public var recordsAnchor: Anchor?
    public var recordsAnchorBegins = false

    public init(policy: URL, model: URL, log: URL, ledger: URL) {
      self.policy = policy
      self.model = model
      self.log = log
      self.ledger = ledger
    }
  }

  public struct Result: Sendable {
    /// The answers that the server has got in this call.
    public let answers: UInt32
    /// The participations of this device, in all.
    public let participations: UInt32
    /// The most that the policy allows.
    public let mostParticipations: UInt32
    /// Call again after so many seconds.
    public let waitSeconds: Double
  }

  private let lock = NSLock()
  private let fleet: OpaquePointer
  // The library calls these until the fleet is closed.
  private let bridge: FleetBridge
  private let anchor: AnchorBridge
  private let recordsAnchor: AnchorBridge
  private let texts: Texts

  /// Reads the files but for the log. `.io`: the ledger is open as a fleet's already. `.privacyRefused`: something else
  /// charged the ledger, or the anchor knows more than it.
  /// - Parameter say: gets what happened, in sentences, for the device alone.
  public init(_ options: Options, transport: FleetTransport, say: (@Sendable (String) -> Void)? = nil) throws {
    let texts = Texts()
    let bridge = FleetBridge(transport, say)
    let anchor = AnchorBridge(options.anchor, begins: options.anchorBegins)
    let recordsAnchor = AnchorBridge(options.recordsAnchor, begins: options.recordsAnchorBegins)
    var given: wisp_fleet_options = sized()
    given.policy_path = try texts.path(options.policy)
    given.model_path = try texts.path(options.model)
    given.log_path = try texts.path(options.log)
    given.ledger_path = try texts.path(options.ledger)
    given.output_path = try texts.path(options.output)
    given.unit = options.unit.number
    given.session_gap = options.unit.gap
    given.times_per_second = options.timesPerSecond
    given.ask_seconds = options.askSeconds
    given.records_ledger_path = try texts.path(options.recordsLedger)
    given.dataset = try texts.of(options.dataset)
    given.anchor = UnsafePointer(anchor.pointer)
    given.records_anchor = UnsafePointer(recordsAnchor.pointer)
    var made = try bridge.makeTransport(texts)
    var logger = bridge.makeLogger() ?? sized()
    var opened: OpaquePointer?
    try withUnsafePointer(to: &made) { made in
      try withUnsafePointer(to: &logger) { logger in
        given.transport = made
        given.logger = say == nil ? nil : logger
        try anchor.rethrowing {
          try recordsAnchor.rethrowing {
            try bridge.checked(Steps(nil)) { wisp_fleet_open(&given, &opened, $0) }
          }
        }
      }
    }
    fleet = opened!
    self.bridge = bridge
    self.anchor = anchor
    self.recordsAnchor = recordsAnchor
    self.texts = texts
  }

  deinit { wisp_fleet_close(fleet) }

  /// Joins, asks for work, does it, and sends the answer. An answer that the server has not got is kept over errors and
  /// crashes. `.io`: the server cannot be reached, or a file cannot be written. Call again later, each time later than
  /// before.
  /// - Parameter seconds: about how long to work and wait; 0: until nothing is there to do now.
  public func work(seconds: Double = 0) throws -> Result { try work(seconds, Steps(nil)) }

  /// `work` on a thread of its own. Cancelling the task ends it at the next call of the server or pause with
  /// CancellationError; the next call resumes.
  public func work(seconds: Double = 0) async throws -> Result {
    // The thread does not own the fleet. Otherwise it could close it after this call.
    defer { withExtendedLifetime(self) {} }
    return try await Steps.run(nil) { [unowned self] in try self.work(seconds, $0) }
  }

  private func work(_ seconds: Double, _ steps: Steps) throws -> Result {
    lock.lock()
    defer { lock.unlock() }
    var result: wisp_fleet_result = sized()
    do {
      try anchor.rethrowing {
        try recordsAnchor.rethrowing {
          try bridge.checked(steps) { wisp_fleet_work(fleet, seconds, &result, $0) }
        }
      }
    } catch let error {
      throw steps.isCancelled ? WispError(.cancelled, error.localizedDescription) : error
    }
    if steps.isCancelled { throw WispError(.cancelled, "the work was cancelled") }
    return Result(
      answers: result.answers, participations: result.participations,
      mostParticipations: result.most_participations, waitSeconds: result.wait_seconds)
  }
}
