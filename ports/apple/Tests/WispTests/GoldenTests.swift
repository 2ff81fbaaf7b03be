import Foundation
import XCTest

import Wisp

/// Opens the files that every port of wisp opens, and answers as their `answers.txt` says: lists, histories and counts
/// are equal; numbers may differ by the rounding of another processor.
final class GoldenTests: XCTestCase {
  private var folder = URL(fileURLWithPath: "/")

  override func setUpWithError() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.copyItem(at: Bundle.module.url(forResource: "golden", withExtension: nil)!, to: folder)
  }
  override func tearDownWithError() throws { try FileManager.default.removeItem(at: folder) }

  func testFilesThatEveryPortOpensAreAnsweredAlike() throws {
    let text = try String(contentsOf: folder.appendingPathComponent("answers.txt"), encoding: .utf8)
    let questions = text.split(separator: "\n")
    XCTAssertEqual(questions.count, 11)
    for question in questions { try answer(question) }
  }

  private func answer(_ question: Substring) throws {
    var words = question.split(separator: " ").map(String.init)[...]
    func next() throws -> String { try XCTUnwrap(words.popFirst(), "\(question): the line is too short") }
    func nextFile() throws -> URL { folder.appendingPathComponent(try next()) }
    func near(_ seen: Double) throws {
      let told = try XCTUnwrap(Double(try next()))
      XCTAssertEqual(told, seen, accuracy: 1e-5 * (1 + abs(told)), String(question))
    }
    switch try next() {
    case let verb where verb == "recommend" || verb == "adapter":
      let file = try nextFile()
      var options = Recommender.Options()
      if verb == "adapter" { options.adapter = try nextFile() }
      let model = try Recommender.open(contentsOf: file, options: options)
      let history = try next().split(separator: ",").map { try XCTUnwrap(model.item(forKey: String($0))) }
      for best in try model.recommend(history: history, count: 7, allowSeen: true) {
        XCTAssertEqual(best.key, try next(), String(question))
        try near(Double(best.score))
      }
    case "history":
      let log = try EventLog(contentsOf: try nextFile())
      let model = try Recommender.open(contentsOf: try nextFile())
      let best = try model.recommend(history: [], count: 7)
      for item in try log.history(of: try next(), for: model) {
        XCTAssertEqual(best.first { $0.item == item }?.key, try next(), String(question))
      }
    case "events":
      try near(Double(try EventLog(contentsOf: try nextFile()).count()))
    case "epsilon":
      let ledger = Ledger(try nextFile())
      let delta = try XCTUnwrap(Double(try next()))
      let statement = try ledger.privacyStatement(delta: delta)
      XCTAssertEqual(statement.definition.privacyUnit, "user")
      XCTAssertEqual(statement, try JSONDecoder().decode(PrivacyStatement.self, from: JSONEncoder().encode(statement)))
      let stated = try XCTUnwrap(statement.accounting.epsilon)
      XCTAssertEqual(stated, try ledger.budget(delta: delta).epsilonStated, accuracy: 1e-5)
      try near(stated)
    default:
      XCTFail("\(question): no such question")
    }
    XCTAssertTrue(words.isEmpty, "\(question): it says more than was answered")
  }
}
