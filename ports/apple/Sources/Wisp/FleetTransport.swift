import CWisp
import Foundation

/// An app's HTTP client and key, for a fleet's device. `KeychainTransport` is one for Apple's systems.
/// One thread at a time calls it, the one that works.
public protocol FleetTransport: AnyObject, Sendable {
  /// The device's public key in PEM, the same bytes each time: the server knows a device by them.
  var publicKeyPEM: String { get }

  /// Posts `body`, follows no redirection, and returns when the answer has ended. An error means that trying again
  /// later may help, unless it is a `WispError` with another code than `.io`.
  /// - Parameter take: gets the next bytes of the answer, on any thread. False: there are too many, so stop and throw.
  func post(
    _ body: Data, to url: URL, headers: [String: String], take: @escaping @Sendable (Data) -> Bool
  ) throws -> FleetAnswer

  /// Signs with the device's key: ECDSA with SHA-256 on P-256 or P-384, in DER. Called once a minute at most.
  func sign(_ message: Data) throws -> Data

  /// Says whether the owner of a key, an operator of the fleet, signed the message. The signature is in DER.
  func verify(_ signature: Data, of message: Data, keyPEM: String) throws -> Bool
}

/// A server's answer without its bytes.
public struct FleetAnswer: Equatable, Sendable {
  public let status: Int
  /// The header Date; nil if it is missing.
  public let date: Date?

  public init(status: Int, date: Date?) {
    self.status = status
    self.date = date
  }
}

/// A transport and a logger in the form of wisp_fleet.h. It lives as long as the fleet.
final class FleetBridge {
  private let transport: FleetTransport
  private let say: (@Sendable (String) -> Void)?
  private var failure: Error?
  /// The work under way: it may be cancelled.
  private var steps = Steps(nil)

  init(_ transport: FleetTransport, _ say: (@Sendable (String) -> Void)?) {
    self.transport = transport
    self.say = say
  }

  func makeTransport(_ texts: Texts) throws -> wisp_fleet_transport {
    var made: wisp_fleet_transport = sized()
    made.user_data = Unmanaged.passUnretained(self).toOpaque()
    made.public_key_pem = try texts.of(transport.publicKeyPEM)
    made.post = { data, url, headers, body, count, sink, sinkData, status, time in
      guard let data = data, let url = url, let headers = headers, let sink = sink, let status = status,
        let time = time
      else { return Posted.never }
      let bytes = body.map { Data(bytes: $0, count: count) } ?? Data()
      let taking = Sink(sink, sinkData)
      defer { taking.close() }
      return FleetBridge.of(data).post(bytes, String(cString: url), String(cString: headers), taking, status, time)
    }
    made.sign = { data, message, count, der, capacity, length in
      guard let data = data, let message = message, let der = der, let length = length else { return 1 }
      return FleetBridge.of(data).sign(Data(bytes: message, count: count), into: der, capacity, length)
    }
    made.verify = { data, key, message, count, der, length in
      guard let data = data, let key = key, let message = message, let der = der else { return 1 }
      let signature = Data(bytes: der, count: length)
      return FleetBridge.of(data).verify(signature, Data(bytes: message, count: count), String(cString: key))
    }
    made.wait = { data, seconds in
      guard let data = data else { return 1 }
      return FleetBridge.of(data).steps.pause(seconds) ? 0 : 1
    }
    return made
  }

  /// nil: nobody reads what happens.
  func makeLogger() -> wisp_logger? {
    if say == nil { return nil }
    var made: wisp_logger = sized()
    made.data = Unmanaged.passUnretained(self).toOpaque()
    made.write = { data, _, sentence in
      guard let data = data, let sentence = sentence else { return }
      FleetBridge.of(data).say?(String(cString: sentence))
    }
    return made
  }

  /// The free function `check`, but the sentence also has the error that the transport threw.
  func checked(_ steps: Steps, _ call: (UnsafeMutablePointer<wisp_error>) -> wisp_code) throws {
    self.steps = steps
    failure = nil
    do {
      try check(call)
    } catch let error as WispError {
      guard let cause = failure else { throw error }
      throw WispError(error.code, "\(error.sentence): \(cause.localizedDescription)")
    }
  }

  private static func of(_ data: UnsafeMutableRawPointer) -> FleetBridge {
    Unmanaged<FleetBridge>.fromOpaque(data).takeUnretainedValue()
  }

  private enum Posted {
    static let done: Int32 = 0
    static let later: Int32 = 1
    static let never: Int32 = 2
  }

  private func post(
    _ body: Data, _ address: String, _ lines: String, _ sink: Sink, _ status: UnsafeMutablePointer<Int32>,
    _ time: UnsafeMutablePointer<Double>
  ) -> Int32 {
    failure = nil
    if steps.isCancelled { return Posted.later }
    var headers: [String: String] = [:]
    for line in lines.split(separator: "\n") {
      guard let colon = line.firstIndex(of: ":") else { continue }
      headers[String(line[..<colon])] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
    }
    do {
      guard let url = URL(string: address) else { throw WispError(.invalidArgument, "\(address) is no URL") }
      let answer = try transport.post(body, to: url, headers: headers) { sink.take($0) }
      status.pointee = Int32(clamping: answer.status)
      time.pointee = answer.date?.timeIntervalSince1970 ?? 0
      return Posted.done
    } catch {
      failure = error
      return (error as? WispError).map { $0.code == .io } ?? true ? Posted.later : Posted.never
    }
  }

  private func sign(
    _ message: Data, into der: UnsafeMutablePointer<UInt8>, _ capacity: Int, _ length: UnsafeMutablePointer<Int>
  ) -> Int32 {
    failure = nil
    do {
      let signature = try transport.sign(message)
      guard signature.count <= capacity else {
        throw WispError(.invalidData, "a signature has \(signature.count) bytes; allowed are \(capacity)")
      }
      signature.copyBytes(to: der, count: signature.count)
      length.pointee = signature.count
      return 0
    } catch {
      failure = error
      return 1
    }
  }

  private func verify(_ signature: Data, _ message: Data, _ key: String) -> Int32 {
    failure = nil
    do {
      return try transport.verify(signature, of: message, keyPEM: key) ? 0 : 1
    } catch {
      failure = error
      return 1
    }
  }
}

/// Where an answer's bytes go until the call has ended.
private final class Sink: @unchecked Sendable {
  private let lock = NSLock()
  private var sink: wisp_fleet_sink?
  private let data: UnsafeMutableRawPointer?

  init(_ sink: @escaping wisp_fleet_sink, _ data: UnsafeMutableRawPointer?) {
    self.sink = sink
    self.data = data
  }

  func take(_ bytes: Data) -> Bool {
    lock.lock()
    defer { lock.unlock() }
    guard let sink = sink else { return false }
    return bytes.isEmpty || bytes.withUnsafeBytes { sink(data, $0.baseAddress, $0.count) } == 0
  }

  func close() {
    lock.lock()
    sink = nil
    lock.unlock()
  }
}
