// An app for iOS that learns at night, while the device charges: BGProcessingTask, an anchor in the keychain, and all
// files in one folder that is in no backup. Info.plist needs the identifier below in
// BGTaskSchedulerPermittedIdentifiers, and "processing" in UIBackgroundModes. Call NightlyLearning.register() before
// the app has finished launching.
#if os(iOS)
  import BackgroundTasks
  import Foundation
  import Wisp

  enum NightlyLearning {
    static let identifier = "com.example.cafe.learn"

    static var folder: URL {
      get throws {
        var folder = try FileManager.default.url(
          for: .applicationSupportDirectory, in: .userDomainMask, appropriateFor: nil, create: true)
        folder.appendPathComponent("wisp", isDirectory: true)
        try FileManager.default.createDirectory(
          at: folder, withIntermediateDirectories: true,
          // Runs run while the device is locked.
          attributes: [.protectionKey: FileProtectionType.completeUntilFirstUserAuthentication])
        try Ledger.exclude(fromBackups: folder)
        return folder
      }
    }

    static func deployment() throws -> Deployment {
      let folder = try self.folder
      var deployment = Deployment(
        base: try base(in: folder),
        log: folder.appendingPathComponent("log.db"), ledger: folder.appendingPathComponent("log.ledger"),
        output: folder.appendingPathComponent("mine.wisp"), dataset: "orders")
      deployment.anchor = KeychainAnchor(service: "com.example.cafe", account: "log.ledger")
      return deployment
    }

    /// A copy of the bundle's model. An update of the app replaces the bundle, and the old base is needed to carry over
    /// what was learned. If the app ends before the file is replaced, both steps are repeated.
    static func base(in folder: URL) throws -> URL {
      let files = FileManager.default
      let shipped = Bundle.main.url(forResource: "cafe", withExtension: "wisp")!
      let base = folder.appendingPathComponent("base.wisp")
      if files.fileExists(atPath: base.path), files.contentsEqual(atPath: base.path, andPath: shipped.path) {
        return base
      }
      let next = folder.appendingPathComponent("next.wisp")
      try? files.removeItem(at: next)
      try files.copyItem(at: shipped, to: next)
      if files.fileExists(atPath: base.path) {
        do {
          try Deployment.rebase(
            from: base, to: next, output: folder.appendingPathComponent("mine.wisp"),
            ledger: folder.appendingPathComponent("log.ledger"))
        } catch let refused as WispError where refused.code == .invalidArgument {
          return base  // the new base could never serve what was learned
        }
        _ = try files.replaceItemAt(base, withItemAt: next)
      } else {
        try files.moveItem(at: next, to: base)
      }
      return base
    }

    /// Plans at each start what a year of runs may cost. The first call makes the plan, later ones find it.
    static func plan() throws {
      try Self.deployment().plan(epsilon: 8, delta: 1e-6, recordsPublic: 365, runs: 365, unit: .day)
    }

    static func register() {
      BGTaskScheduler.shared.register(forTaskWithIdentifier: identifier, using: nil) { task in
        guard let task = task as? BGProcessingTask else { return task.setTaskCompleted(success: false) }
        schedule()  // the next run
        let learning = Task {
          do {
            let plannedRun = try await Self.deployment().runPlanned(threads: 2)
            if plannedRun.changed {
                await MainActor.run { NotificationCenter.default.post(name: .modelChanged, object: nil) }
            }
            task.setTaskCompleted(success: true)
          } catch {
            // CancellationError: the time was up. The next run resumes.
            task.setTaskCompleted(success: false)
          }
        }
        task.expirationHandler = { learning.cancel() }
      }
    }

    static func schedule() {
      let request = BGProcessingTaskRequest(identifier: identifier)
      request.requiresExternalPower = true
      request.requiresNetworkConnectivity = false
      try? BGTaskScheduler.shared.submit(request)
    }
  }

  extension Notification.Name {
    static let modelChanged = Notification.Name("modelChanged")
  }
#endif
