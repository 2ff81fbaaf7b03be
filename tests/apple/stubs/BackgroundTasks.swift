// A stand-in for Apple's module of this name, with the parts that ports/apple/Examples uses, by its documentation.
import Foundation

open class BGTask {
  public var expirationHandler: (() -> Void)?
  public func setTaskCompleted(success: Bool) {}
}
public final class BGProcessingTask: BGTask {}
public class BGTaskRequest {}
public final class BGProcessingTaskRequest: BGTaskRequest {
  public var requiresExternalPower = false
  public var requiresNetworkConnectivity = false
  public init(identifier: String) {}
}
public class BGTaskScheduler {
  public class var shared: BGTaskScheduler { BGTaskScheduler() }
  @discardableResult
  public func register(
    forTaskWithIdentifier: String, using: DispatchQueue?, launchHandler: @escaping (BGTask) -> Void
  ) -> Bool { true }
  public func submit(_ request: BGTaskRequest) throws {}
}
