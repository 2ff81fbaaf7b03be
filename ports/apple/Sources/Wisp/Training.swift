import CWisp
import Foundation

/// Progress after a step of training.
public struct TrainingProgress: Equatable, Sendable {
  public let step: UInt64
  public let steps: UInt64
  /// Spent by this run so far; nil while unknown.
  public let epsilon: Double?
}

/// Called after each step, on the thread that trains.
public typealias TrainingCallback = @Sendable (TrainingProgress) -> Void

/// The privacy unit, which is protected as a whole.
public enum PrivacyUnit: Equatable, Sendable {
  /// Everything that one user of the log did.
  case user
  /// Events of one user without a pause longer than so many seconds: a public constant, such as 1800.
  case session(gap: Int64)
  /// Events of one user on one UTC day.
  case day

  var number: wisp_unit {
    switch self {
    case .user: return WISP_UNIT_USER
    case .session: return WISP_UNIT_SESSION
    case .day: return WISP_UNIT_DAY
    }
  }
  var gap: Int64 {
    if case .session(let gap) = self { return gap }
    return 0
  }
}

/// Reports steps to the app, and stops them if its task was cancelled.
final class Steps: @unchecked Sendable {
  private let lock = NSCondition()
  private let callback: TrainingCallback?
  private var cancelled = false

  init(_ callback: TrainingCallback?) { self.callback = callback }

  func cancel() {
    lock.lock()
    cancelled = true
    lock.broadcast()
    lock.unlock()
  }
  /// Waits so long. False, and at once: the task was cancelled.
  func pause(_ seconds: Double) -> Bool {
    let end = Date(timeIntervalSinceNow: seconds)
    lock.lock()
    defer { lock.unlock() }
    while !cancelled, lock.wait(until: end) {}
    return !cancelled
  }
  var isCancelled: Bool {
    lock.lock()
    defer { lock.unlock() }
    return cancelled
  }

  /// A pointer for `user_data`; this object must outlive the call.
  var pointer: UnsafeMutableRawPointer { Unmanaged.passUnretained(self).toOpaque() }

  static let progress: wisp_progress_callback = { at, data in
    guard let at = at, let data = data else { return 1 }
    let steps = Unmanaged<Steps>.fromOpaque(data).takeUnretainedValue()
    if steps.isCancelled { return 1 }
    let now = at.pointee
    steps.callback?(
      TrainingProgress(step: now.step, steps: now.num_steps, epsilon: now.epsilon.isNaN ? nil : now.epsilon))
    return 0
  }

  /// Runs work of minutes on a thread of its own. If the caller's task is cancelled, it ends at the next step and
  /// throws CancellationError. What was paid for stays paid.
  static func run<Result: Sendable>(
    _ progress: TrainingCallback?, _ body: @escaping @Sendable (Steps) throws -> Result
  ) async throws -> Result {
    let steps = Steps(progress)
    return try await withTaskCancellationHandler {
      try Task.checkCancellation()
      do {
        return try await onThread(.utility) { try body(steps) }
      } catch let error as WispError where error.code == .cancelled {
        throw CancellationError()
      }
    } onCancel: {
      steps.cancel()
    }
  }
}

/// Runs blocking work outside Swift's own few threads.
func onThread<Result: Sendable>(
  _ quality: DispatchQoS.QoSClass, _ body: @escaping @Sendable () throws -> Result
) async throws -> Result {
  try await withCheckedThrowingContinuation { continuation in
    DispatchQueue.global(qos: quality).async { continuation.resume(with: Swift.Result(catching: body)) }
  }
}
