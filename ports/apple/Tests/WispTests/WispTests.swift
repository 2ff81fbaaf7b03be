import Foundation
import XCTest

@testable import Wisp

/// Keeps an anchor in memory, and counts its calls.
final class MemoryAnchor: Anchor, @unchecked Sendable {
  var kept: Data?
  var fails = false
  var writes = 0

  func read() throws -> Data? {
    if fails { throw WispError(.io, "the anchor is out of reach") }
    return kept
  }
  func write(_ bytes: Data) throws {
    kept = bytes
    writes += 1
  }
}

final class WispTests: XCTestCase {
  private var folder = URL(fileURLWithPath: "/")
  private var shipped: URL { Bundle.module.url(forResource: "cafe", withExtension: "wisp")! }
  private func file(_ name: String) -> URL { folder.appendingPathComponent(name) }

  override func setUpWithError() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }
  override func tearDownWithError() throws { try FileManager.default.removeItem(at: folder) }

  /// A log of forty guests who order five things each.
  private func makeLog() throws -> EventLog {
    let model = try Recommender.open(contentsOf: shipped)
    let log = try EventLog(contentsOf: file("log.db"))
    let items = try model.recommend(history: [], count: 40)
    for guest in 0..<40 {
      for order in 0..<5 {
        try log.append(
          user: "guest \(guest)", item: items[(guest + order * 3) % items.count].key,
          time: Int64(1_700_000_000 + guest * 100 + order))
      }
    }
    return log
  }
  private func shortRun() -> Personaliser {
    var run = Personaliser(
      model: shipped, log: file("log.db"), ledger: file("log.ledger"), output: file("mine.wisp"), unit: .user)
    run.epsilon = 4
    run.delta = 1e-4
    run.recordsPublic = 40
    run.epochs = 1
    run.threads = 1
    return run
  }
  private func refused(_ code: WispError.Code, _ words: String, _ body: () throws -> Void) {
    XCTAssertThrowsError(try body()) { error in
      let wisp = error as? WispError
      XCTAssertEqual(wisp?.code, code)
      XCTAssertTrue(error.localizedDescription.contains(words), error.localizedDescription)
    }
  }

  func testRecommendsTheSameFromAFileAndFromMemory() throws {
    let fromFile = try Recommender.open(contentsOf: shipped)
    let fromMemory = try Recommender.open(data: try Data(contentsOf: shipped))
    let best = try fromFile.recommend(history: [12, 7, 31], count: 5)
    XCTAssertEqual(best.count, 5)
    XCTAssertFalse(best[0].name.isEmpty)
    XCTAssertEqual(best, try fromMemory.recommend(history: [12, 7, 31], count: 5))
    XCTAssertEqual(best, try fromFile.recommend(keys: [12, 7, 31].map { try key(of: $0, in: fromFile) }, count: 5))
    XCTAssertEqual(fromFile.item(forKey: best[0].key), best[0].item)
    XCTAssertNil(fromFile.item(forKey: best[0].key + "\0more"))
    XCTAssertEqual(try fromFile.recommend(history: [], count: 0), [])
    XCTAssertEqual(try fromFile.recommend(history: [1], count: 5, candidates: []), [])
    let without = try fromFile.recommend(history: [12, 7, 31], count: 5, excluded: [best[0].item])
    XCTAssertFalse(without.contains { $0.item == best[0].item })
    // The shipped model allows items of the history; a call may overrule that.
    for (allowSeen, comes) in [(nil, true), (true, true), (false, false)] as [(Bool?, Bool)] {
      let all = try fromFile.recommend(history: [12], count: 480, allowSeen: allowSeen)
      XCTAssertEqual(all.contains { $0.item == 12 }, comes)
    }
  }
  private func key(of item: Int32, in model: Recommender) throws -> String {
    try model.recommend(history: [], count: 1, candidates: [item])[0].key
  }

  func testSaysWhatIsWrongInASentence() throws {
    refused(.io, "nothing.wisp") { _ = try Recommender.open(contentsOf: file("nothing.wisp")) }
    refused(.invalidData, "the model") { _ = try Recommender.open(data: Data("no model".utf8)) }
    refused(.invalidArgument, "a file URL") {
      _ = try Recommender.open(contentsOf: URL(string: "https://example.org/a")!)
    }
    let model = try Recommender.open(contentsOf: shipped)
    refused(.invalidArgument, "1000000") { _ = try model.recommend(history: [1_000_000], count: 3) }
    let log = try EventLog(contentsOf: file("log.db"))
    refused(.invalidArgument, "zero byte") { try log.append(user: "a\0b", item: "tea", time: 1) }
  }

  func testKeepsALog() throws {
    let log = try makeLog()
    XCTAssertEqual(try log.count(), 200)
    XCTAssertEqual(try log.countUnreadable(), 0)
    let model = try Recommender.open(contentsOf: shipped)
    XCTAssertEqual(try log.history(of: "guest 3", for: model).count, 5)
    XCTAssertEqual(try log.erase(user: "guest 3"), 5)
    XCTAssertEqual(try log.history(of: "guest 3", for: model), [])
  }

  func testPersonalisesAndStatesWhatItCost() async throws {
    _ = try makeLog()
    let anchor = MemoryAnchor()
    var personaliser = shortRun()
    personaliser.anchor = anchor
    let result = try await personaliser.personalise()
    XCTAssertGreaterThan(result.steps, 0)
    XCTAssertLessThanOrEqual(result.epsilon, 4)
    let mine = try Recommender.open(contentsOf: file("mine.wisp"))
    let best = try await mine.recommend(history: [12], count: 3)
    XCTAssertEqual(best.count, 3)
    let sameKeys = try await mine.recommend(keys: [key(of: 12, in: mine)], count: 3)
    XCTAssertEqual(best, sameKeys)
    XCTAssertGreaterThan(anchor.writes, 0)
    let ledger = Ledger(file("log.ledger"), anchor: anchor)
    XCTAssertTrue(try ledger.statement(delta: 1e-4).contains("epsilon"))
    XCTAssertTrue(try ledger.statement(delta: 1e-4, asJSON: true).hasPrefix("{"))
    XCTAssertGreaterThan(try ledger.budget(delta: 1e-4).epsilonStated, 0)
    anchor.kept = Data("somebody else's".utf8)
    refused(.invalidData, "anchor") { _ = try ledger.statement(delta: 1e-4) }
  }

  func testTheErrorOfAnAnchorIsWhatIsThrown() async throws {
    _ = try makeLog()
    let anchor = MemoryAnchor()
    anchor.fails = true
    var personaliser = shortRun()
    personaliser.anchor = anchor
    do {
      _ = try await personaliser.personalise()
      XCTFail("an anchor that cannot be read was passed over")
    } catch let error as WispError {
      XCTAssertEqual(error, WispError(.io, "the anchor is out of reach"))
    }
  }

  func testACancelledTaskStopsAtAStepAndGoesOn() async throws {
    _ = try makeLog()
    var personaliser = shortRun()
    personaliser.epochs = 100
    personaliser.checkpoint = file("run.checkpoint")
    let running = personaliser
    let (seen, saw) = AsyncStream<UInt64>.makeStream()
    let task = Task { try await running.personalise { saw.yield($0.step) } }
    for await step in seen where step >= 2 { break }
    task.cancel()
    do {
      _ = try await task.value
      XCTFail("a cancelled run ended as if nothing had happened")
    } catch is CancellationError {
    }
    XCTAssertFalse(FileManager.default.fileExists(atPath: file("mine.wisp").path))
    let result = try await running.personalise()
    XCTAssertGreaterThan(result.resumedFrom, 0)
  }

  func testWhoStopsReadingStepsStopsTheRun() async throws {
    _ = try makeLog()
    var personaliser = shortRun()
    personaliser.epochs = 100
    for try await progress in personaliser.steps() where progress.step >= 1 { break }
    XCTAssertFalse(FileManager.default.fileExists(atPath: file("mine.wisp").path))
  }

  func testADeploymentIsPlannedAndLived() async throws {
    _ = try makeLog()
    let deployment = Deployment(
      base: shipped, log: file("log.db"), ledger: file("log.ledger"), output: file("mine.wisp"), dataset: "guests")
    let plan = try deployment.plan(epsilon: 8, delta: 1e-4, recordsPublic: 40, runs: 3, unit: .user, stepsPerRun: 2)
    XCTAssertEqual(plan.runs, 3)
    XCTAssertEqual(plan.biasWeightReleases, 0)
    XCTAssertFalse(plan.wasThere)
    let plannedRun = try await deployment.runPlanned(threads: 1)
    XCTAssertTrue(plannedRun.changed)
    XCTAssertEqual(plannedRun.runsLeft, 2)
    XCTAssertEqual(try Ledger(file("log.ledger")).budget(delta: 1e-4).runsLeft, 2)
    XCTAssertTrue(try deployment.plan(epsilon: 8, delta: 1e-4, recordsPublic: 40, runs: 3, unit: .user).wasThere)
    refused(.privacyRefused, "has charges") {
      try deployment.plan(epsilon: 4, delta: 1e-4, recordsPublic: 40, runs: 3, unit: .user)
    }
  }
}
