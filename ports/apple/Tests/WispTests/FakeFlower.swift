import Foundation
import XCTest

@testable import Wisp

/// Flower's server, as it answers a node's calls for joining and for work while it has none.
final class FakeFlower: @unchecked Sendable {
  /// The server's clock: 2030-01-01T00:00:00Z.
  static let date = Date(timeIntervalSince1970: 1_893_456_000)

  private let lock = NSLock()
  private var called: [String] = []
  private var signed: Set<String> = []
  private var nodes: [String: UInt64] = [:]
  private var online: Set<String> = []

  var routes: [String] { locked { called } }
  var timestamps: Set<String> { locked { signed } }

  /// In place of ECDSA.
  static func signature(of message: String, key: String) -> Data { Data("signed \(message) by \(key)".utf8) }

  func answer(_ path: String, _ headers: [String: String], _ body: Data) -> (status: Int, body: Data) {
    locked {
      let route = String(path.dropFirst("/v1/fleet/".count))
      called.append(route)
      func bytes(_ name: String) -> Data { headers[name].flatMap { Data(base64Encoded: $0) } ?? Data() }
      let key = String(decoding: bytes("flwr-public-key"), as: UTF8.self)
      let timestamp = headers["flwr-timestamp"] ?? ""
      signed.insert(timestamp)
      guard path.hasPrefix("/v1/fleet/"), headers["content-type"] == "application/protobuf" else {
        return (415, Data())
      }
      guard bytes("flwr-signature") == Self.signature(of: timestamp, key: key) else { return (401, Data()) }
      // Each body begins with field 1, of fewer than 128 bytes: the key, or a node with its number as field 1.
      guard body.count > 2, body[body.startIndex] == 0x0A else { return (400, Data()) }
      let first = Data(body.dropFirst(2).prefix(Int(body[body.startIndex + 1])))
      switch route {
      case "register-node" where nodes[key] == nil && first == Data(key.utf8):
        nodes[key] = 1001 + UInt64(nodes.count)
        return (200, Self.number(nodes[key]!))
      case "activate-node" where nodes[key] != nil && !online.contains(key) && first == Data(key.utf8):
        online.insert(key)
        return (200, Self.number(nodes[key]!))
      case "send-node-heartbeat" where nodes[key].map(Self.number) == first:
        online.insert(key)
        return (200, Data([0x08, 0x01]))
      case "pull-messages" where nodes[key].map(Self.number) == first && online.contains(key):
        return (200, Data())
      default:
        return (412, Data())
      }
    }
  }

  /// Field 1, a number from 128 to 16383.
  private static func number(_ value: UInt64) -> Data {
    Data([0x08, UInt8(value & 0x7F) | 0x80, UInt8(value >> 7)])
  }

  private func locked<Result>(_ body: () -> Result) -> Result {
    lock.lock()
    defer { lock.unlock() }
    return body()
  }
}

/// A device's transport in memory, or over HTTP to a server of this machine.
final class FakeTransport: FleetTransport, @unchecked Sendable {
  let publicKeyPEM = "-----BEGIN PUBLIC KEY-----\nfirst\n-----END PUBLIC KEY-----\n"
  let server = FakeFlower()
  var http: FleetHTTP?
  var fault: Error?
  var refusesToSign = false
  /// The bytes of an answer in place of the server's, given in pieces of 1000.
  var answer: Data?
  private(set) var signatures = 0
  private(set) var taken = 0

  func post(
    _ body: Data, to url: URL, headers: [String: String], take: @escaping @Sendable (Data) -> Bool
  ) throws -> FleetAnswer {
    if let fault = fault { throw fault }
    if let http = http { return try http.post(body, to: url, headers: headers, take: take) }
    XCTAssertEqual(url.host, "fleet.example.org")
    let (status, bytes) = server.answer(url.path, headers, body)
    var rest = answer ?? bytes
    while !rest.isEmpty {
      guard take(rest.prefix(1000)) else { throw URLError(.dataLengthExceedsMaximum) }
      taken += 1
      rest = rest.dropFirst(1000)
    }
    return FleetAnswer(status: status, date: FakeFlower.date)
  }
  func sign(_ message: Data) throws -> Data {
    signatures += 1
    if refusesToSign { throw WispError(.io, "the key is locked") }
    return FakeFlower.signature(of: String(decoding: message, as: UTF8.self), key: publicKeyPEM)
  }
  func verify(_ signature: Data, of message: Data, keyPEM: String) throws -> Bool {
    signature == FakeFlower.signature(of: String(decoding: message, as: UTF8.self), key: keyPEM)
  }
}

/// Answers HTTP on a port of this machine, one connection after the other. Each is closed after its answer.
final class LocalServer: Sendable {
  typealias Answer = @Sendable (_ path: String, _ headers: [String: String], _ body: Data) -> Data
  let port: UInt16
  private let listening: Int32

  init(_ answer: @escaping Answer) throws {
    #if canImport(Darwin)
      let stream = SOCK_STREAM
    #else
      let stream = Int32(SOCK_STREAM.rawValue)
    #endif
    signal(SIGPIPE, SIG_IGN)
    let listening = socket(AF_INET, stream, 0)
    self.listening = listening
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var size = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failed = withUnsafeMutablePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        bind(listening, $0, size) != 0 || listen(listening, 8) != 0 || getsockname(listening, $0, &size) != 0
      }
    }
    port = UInt16(bigEndian: address.sin_port)
    if failed { throw POSIXError(.EADDRNOTAVAIL) }
    Thread.detachNewThread {
      while case let connection = accept(listening, nil, nil), connection >= 0 {
        Self.serve(connection, answer)
        close(connection)
      }
    }
  }

  deinit {
    shutdown(listening, Int32(SHUT_RDWR))
    close(listening)
  }

  static func response(_ status: Int, _ body: Data, more: String = "") -> Data {
    Data(
      """
      HTTP/1.1 \(status) Test\r\nDate: Tue, 01 Jan 2030 00:00:00 GMT\r\n\(more)Content-Length: \(body.count)\r
      Connection: close\r\n\r\n
      """.utf8) + body
  }

  private static func serve(_ connection: Int32, _ answer: Answer) {
    var bytes = Data()
    let end = Data("\r\n\r\n".utf8)
    func more() -> Bool {
      var buffer = [UInt8](repeating: 0, count: 65536)
      let count = recv(connection, &buffer, buffer.count, 0)
      if count > 0 { bytes.append(contentsOf: buffer.prefix(count)) }
      return count > 0
    }
    while bytes.range(of: end) == nil { guard more() else { return } }
    let head = bytes.range(of: end)!
    let lines = String(decoding: bytes[..<head.lowerBound], as: UTF8.self).components(separatedBy: "\r\n")
    var headers: [String: String] = [:]
    for line in lines.dropFirst() {
      let parts = line.split(separator: ":", maxSplits: 1)
      if parts.count == 2 { headers[parts[0].lowercased()] = parts[1].trimmingCharacters(in: .whitespaces) }
    }
    let length = Int(headers["content-length"] ?? "") ?? 0
    while bytes.count < head.upperBound + length { guard more() else { return } }
    var rest = answer(lines[0].components(separatedBy: " ")[1], headers, Data(bytes[head.upperBound...]))
    while !rest.isEmpty {
      let sent = rest.withUnsafeBytes { send(connection, $0.baseAddress, $0.count, 0) }
      if sent <= 0 { return }
      rest = rest.dropFirst(sent)
    }
  }
}
