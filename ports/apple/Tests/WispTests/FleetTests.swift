import Foundation
import XCTest

@testable import Wisp

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// A list that any thread may add to.
private final class Kept<Element>: @unchecked Sendable {
  private let lock = NSLock()
  private var elements: [Element] = []
  func add(_ element: Element) { lock.withLock { elements.append(element) } }
  var all: [Element] { lock.withLock { elements } }
}

final class FleetTests: XCTestCase {
  private var folder = URL(fileURLWithPath: "/")
  private func file(_ name: String) -> URL { folder.appendingPathComponent(name) }
  private func resource(_ name: String, _ kind: String) -> URL {
    Bundle.module.url(forResource: name, withExtension: kind)!
  }

  override func setUpWithError() throws {
    folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
  }
  override func tearDownWithError() throws { try FileManager.default.removeItem(at: folder) }

  private func options() -> Fleet.Options {
    var options = Fleet.Options(
      policy: resource("policy", "json"), model: resource("cafe", "wisp"), log: file("log.db"),
      ledger: file("fleet.ledger"))
    options.output = file("fleet.wisp")
    options.askSeconds = 8
    return options
  }
  private func refused(_ code: WispError.Code, _ words: String, _ body: () throws -> Void) {
    XCTAssertThrowsError(try body()) { error in
      XCTAssertEqual((error as? WispError)?.code, code)
      XCTAssertTrue(error.localizedDescription.contains(words), error.localizedDescription)
    }
  }
  private let joining = ["activate-node", "register-node", "activate-node", "pull-messages"]

  func testJoinsAndFindsNothingToDo() throws {
    let transport = FakeTransport()
    let fleet = try Fleet(options(), transport: transport)
    let result = try fleet.work()
    XCTAssertEqual(result.answers, 0)
    XCTAssertEqual(result.participations, 0)
    XCTAssertEqual(result.mostParticipations, 1)
    XCTAssertTrue((4...12).contains(result.waitSeconds), "\(result.waitSeconds)")
    XCTAssertEqual(transport.server.routes, joining)
    _ = try fleet.work()
    XCTAssertEqual(transport.server.routes, joining + ["pull-messages"])
    // The first call is signed for the device's clock, all later ones for the server's.
    XCTAssertEqual(transport.signatures, 2)
    XCTAssertTrue(transport.server.timestamps.contains("2030-01-01T00:00:00+00:00"))
    XCTAssertTrue(try Ledger(file("fleet.ledger")).statement(delta: 1e-6).contains("epsilon"))
  }

  func testALedgerIsOpenOnce() throws {
    let fleet = try Fleet(options(), transport: FakeTransport())
    refused(.io, "fleet.ledger") { _ = try Fleet(options(), transport: FakeTransport()) }
    withExtendedLifetime(fleet) {}
  }

  func testAFleetIsClosedAndTheNumberOfTheNodeIsKept() async throws {
    let transport = FakeTransport()
    for _ in 0..<20 {
      let result = try await Fleet(options(), transport: transport).work()
      XCTAssertEqual(result.answers, 0)
    }
    let again = [[String]](repeating: ["send-node-heartbeat", "pull-messages"], count: 19)
    XCTAssertEqual(transport.server.routes, joining + again.joined())
  }

  func testATransportThatFailsIsAnErrorOfIO() throws {
    let transport = FakeTransport()
    let fleet = try Fleet(options(), transport: transport)
    transport.refusesToSign = true
    refused(.io, "the key is locked") { _ = try fleet.work() }
    transport.refusesToSign = false
    transport.fault = URLError(.notConnectedToInternet)
    refused(.io, "cannot be reached") { _ = try fleet.work() }
    transport.fault = WispError(.io, "the tunnel is closed")
    refused(.io, "the tunnel is closed") { _ = try fleet.work() }
    transport.fault = WispError(.invalidArgument, "the certificate is not trusted")
    refused(.invalidArgument, "the certificate is not trusted") { _ = try fleet.work() }
    transport.fault = nil
    XCTAssertEqual(try fleet.work().answers, 0)
    XCTAssertEqual(transport.server.routes, joining)
  }

  func testTheErrorOfAnAnchorIsWhatIsThrown() throws {
    let anchor = MemoryAnchor()
    anchor.fails = true
    var anchored = options()
    anchored.anchor = anchor
    XCTAssertThrowsError(try Fleet(anchored, transport: FakeTransport())) {
      XCTAssertEqual($0 as? WispError, WispError(.io, "the anchor is out of reach"))
    }
  }

  func testSaysWhatHappened() throws {
    try Data("nothing whole".utf8).write(to: file("fleet.ledger.reply"))
    let sentences = Kept<String>()
    _ = try Fleet(options(), transport: FakeTransport()) { sentences.add($0) }.work()
    XCTAssertEqual(sentences.all.count, 1)
    XCTAssertTrue(sentences.all.joined().contains("damaged"), sentences.all.joined())
  }

  func testTheTransportVerifiesForTheLibrary() throws {
    let bridge = FleetBridge(FakeTransport(), nil)
    let texts = Texts()
    let made = try bridge.makeTransport(texts)
    let message = Array("a round".utf8)
    let right = Array(FakeFlower.signature(of: "a round", key: "the operator's"))
    let verify = try XCTUnwrap(made.verify)
    XCTAssertEqual(verify(made.user_data, "the operator's", message, message.count, right, right.count), 0)
    XCTAssertNotEqual(verify(made.user_data, "another's", message, message.count, right, right.count), 0)
    XCTAssertNotEqual(verify(made.user_data, "the operator's", message, message.count, right, right.count - 1), 0)
    withExtendedLifetime((bridge, texts)) {}
  }

  func testAnAnswerThatIsTooLongIsNotTakenWhole() throws {
    let transport = FakeTransport()
    transport.answer = Data(count: 10_000_000)
    refused(.invalidData, "bytes") { _ = try Fleet(options(), transport: transport).work() }
    XCTAssertGreaterThan(transport.taken, 0)
    XCTAssertLessThan(transport.taken, 5000)
  }

  func testWhatAPolicyDoesNotAllowIsRefused() throws {
    var without = options()
    without.policy = file("nothing.json")
    refused(.io, "nothing.json") { _ = try Fleet(without, transport: FakeTransport()) }
    var asks = options()
    asks.askSeconds = 4000
    refused(.invalidArgument, "ask_seconds") { _ = try Fleet(asks, transport: FakeTransport()) }
    var records = options()
    records.recordsLedger = file("guests.ledger")
    records.dataset = "guests"
    refused(.invalidArgument, "records") { _ = try Fleet(records, transport: FakeTransport()) }
    var sessions = options()
    sessions.unit = .session(gap: 0)
    refused(.invalidArgument, "gap") { _ = try Fleet(sessions, transport: FakeTransport()) }
  }

  func testACancelledTaskStopsAtAPauseAndTheNextCallResumes() async throws {
    let transport = FakeTransport()
    let fleet = try Fleet(options(), transport: transport)
    let task = Task { try await fleet.work(seconds: 3600) }
    while transport.server.routes.last != "pull-messages" { try await Task.sleep(nanoseconds: 10_000_000) }
    task.cancel()
    do {
      _ = try await task.value
      XCTFail("a cancelled task ended as if nothing had happened")
    } catch is CancellationError {
    }
    let result = try await fleet.work()
    XCTAssertEqual(result.participations, 0)
    XCTAssertEqual(transport.server.routes, joining + ["pull-messages"])
  }

  func testWorksOverHTTP() async throws {
    let transport = FakeTransport()
    let flower = transport.server
    let server = try LocalServer { path, headers, body in
      let (status, bytes) = flower.answer(path, headers, body)
      return LocalServer.response(status, bytes)
    }
    transport.http = FleetHTTP(idleSeconds: 10)
    var local = options()
    local.policy = file("policy.json")
    let policy = try String(contentsOf: resource("policy", "json"), encoding: .utf8)
    try policy.replacingOccurrences(of: "https://fleet.example.org", with: "http://127.0.0.1:\(server.port)")
      .write(to: local.policy, atomically: true, encoding: .utf8)
    let result = try await Fleet(local, transport: transport).work()
    XCTAssertEqual(result.answers, 0)
    XCTAssertEqual(flower.routes, joining)
    XCTAssertEqual(transport.signatures, 2)
  }

  func testHTTPFollowsNoRedirectionAndStopsWhatIsTooLong() throws {
    let paths = Kept<String>()
    let server = try LocalServer { path, headers, body in
      paths.add("\(path) \(headers["a-name"] ?? "") \(String(decoding: body, as: UTF8.self))")
      XCTAssertEqual(headers["user-agent"], "wisp")
      switch path {
      case "/moved": return LocalServer.response(307, Data("elsewhere".utf8), more: "Location: /long\r\n")
      case "/long": return LocalServer.response(200, Data(count: 20_000_000))
      default: return LocalServer.response(404, Data())
      }
    }
    let http = FleetHTTP(idleSeconds: 10)
    let taken = Kept<Data>()
    func post(_ path: String, take: @escaping @Sendable (Data) -> Bool) throws -> FleetAnswer {
      let url = URL(string: "http://127.0.0.1:\(server.port)\(path)")!
      return try http.post(Data("body".utf8), to: url, headers: ["a-name": "value"], take: take)
    }
    let moved = try post("/moved") {
      taken.add($0)
      return true
    }
    XCTAssertEqual(moved, FleetAnswer(status: 307, date: FakeFlower.date))
    XCTAssertEqual(taken.all.reduce(Data(), +), Data("elsewhere".utf8))
    XCTAssertEqual(paths.all, ["/moved value body"])
    refused(.invalidData, "too large") {
      _ = try post("/long") {
        taken.add($0)
        return false
      }
    }
    XCTAssertLessThan(taken.all.reduce(0) { $0 + $1.count }, 10_000_000)
    XCTAssertEqual(try post("/none") { _ in true }.status, 404)
  }

  func testHTTPThrowsWhereNobodyAnswers() throws {
    let port = try LocalServer { _, _, _ in Data() }.port  // nobody listens there any more
    let http = FleetHTTP(idleSeconds: 10)
    XCTAssertThrowsError(
      try http.post(Data(), to: URL(string: "http://127.0.0.1:\(port)/")!, headers: [:]) { _ in true }
    ) { XCTAssertTrue($0 is URLError, "\($0)") }
    refused(.invalidArgument, "unknown") {
      _ = try http.post(Data(), to: URL(string: "unknown://127.0.0.1/")!, headers: [:]) { _ in true }
    }
    let silent = try LocalServer { _, _, _ in
      Thread.sleep(forTimeInterval: 10)
      return Data()
    }
    let url = URL(string: "http://127.0.0.1:\(silent.port)/")!
    XCTAssertThrowsError(try FleetHTTP(idleSeconds: 1).post(Data(), to: url, headers: [:]) { _ in true }) {
      XCTAssertEqual(($0 as? URLError)?.code, .timedOut)
    }
  }

  func testAPublicKeyIsReadAndWritten() throws {
    // By OpenSSL, as PEM and without what DER puts before the point.
    let keys = [
      """
      -----BEGIN PUBLIC KEY-----
      MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEVBhUJMv1QH2WzKTsqm/RmJFEtEAv
      WvHth9ofwNwhYG+ZveVpGTZKqYScQ+qDUF9quoD+UX8ImsoERj++hlzIgA==
      -----END PUBLIC KEY-----

      """: "BFQYVCTL9UB9lsyk7Kpv0ZiRRLRAL1rx7YfaH8DcIWBvmb3laRk2SqmEnEPqg1BfarqA/lF/CJrKBEY/voZcyIA=",
      """
      -----BEGIN PUBLIC KEY-----
      MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAE8M9bGOGMHy2zWphdKmw8xPRCytsx3e9h
      BdjL3WBo+oDwlHbELzFmQVr4a2JnNv5ilsLZevlhsE9J02Et6AsXMOpB2DGfaGN8
      LT98J0NDbCFXyAFW/1871oa/a59X/RXh
      -----END PUBLIC KEY-----

      """: "BPDPWxjhjB8ts1qYXSpsPMT0QsrbMd3vYQXYy91gaPqA8JR2xC8xZkFa+GtiZzb+YpbC2Xr5YbBPSdNhLegLFzDqQdgxn2hjfC0/fCdDQ2"
        + "whV8gBVv9fO9aGv2ufV/0V4Q==",
    ]
    for (pem, text) in keys {
      let point = Data(base64Encoded: text)!
      XCTAssertEqual(PublicKey.point(in: pem), point)
      XCTAssertEqual(PublicKey.pem(of: point), pem)
      XCTAssertEqual(PublicKey.point(in: pem.replacingOccurrences(of: "\n", with: "\r\n")), point)
      XCTAssertNil(PublicKey.point(in: pem.replacingOccurrences(of: "PUBLIC", with: "PRIVATE")))
      XCTAssertNil(PublicKey.point(in: pem.replacingOccurrences(of: "-----BEGIN PUBLIC KEY-----\nM", with: "")))
      XCTAssertNil(PublicKey.point(in: pem.replacingOccurrences(of: "HKoZ", with: "HKoY")))
      XCTAssertNil(PublicKey.pem(of: point.dropLast()))
    }
    XCTAssertNil(PublicKey.point(in: "-----BEGIN PUBLIC KEY-----\n-----END PUBLIC KEY-----\n"))
  }
}
