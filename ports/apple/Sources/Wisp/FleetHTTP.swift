import Foundation

#if canImport(FoundationNetworking)
  import FoundationNetworking
#endif

/// The HTTP client of a fleet's device, over URLSession, for a `FleetTransport`. It stores no cookie and no answer.
public final class FleetHTTP: Sendable {
  private let calls = Calls()
  private let session: URLSession

  /// - Parameter idleSeconds: how long the server may be silent.
  public init(idleSeconds: Double = 60) {
    let configuration = URLSessionConfiguration.ephemeral
    configuration.timeoutIntervalForRequest = idleSeconds
    configuration.timeoutIntervalForResource = 900
    configuration.httpCookieAcceptPolicy = .never
    configuration.httpShouldSetCookies = false
    configuration.urlCache = nil
    // In place of what URLSession says about the app and its user's languages.
    configuration.httpAdditionalHeaders = [
      "Accept-Encoding": "identity", "Accept-Language": "*", "User-Agent": "wisp",
    ]
    session = URLSession(configuration: configuration, delegate: calls, delegateQueue: nil)
  }

  deinit { session.invalidateAndCancel() }

  /// `FleetTransport.post`. Not for the main thread, which would wait.
  public func post(
    _ body: Data, to url: URL, headers: [String: String], take: @escaping @Sendable (Data) -> Bool
  ) throws -> FleetAnswer {
    var request = URLRequest(url: url)
    request.httpMethod = "POST"
    request.httpBody = body
    for (name, value) in headers { request.setValue(value, forHTTPHeaderField: name) }
    let task = session.dataTask(with: request)
    let call = Call(take)
    calls.add(call, for: task)
    task.resume()
    call.ended.wait()
    if call.isRefused { throw WispError(.invalidData, "\(url.absoluteString): the answer is too large") }
    if let error = call.error {
      if let error = error as? URLError, Self.final.contains(error.code) {
        throw WispError(.invalidArgument, "\(url.absoluteString): \(error.localizedDescription)")
      }
      throw error
    }
    guard let response = task.response as? HTTPURLResponse else {
      throw WispError(.io, "\(url.absoluteString): this is no answer of HTTP")
    }
    return FleetAnswer(
      status: response.statusCode, date: response.value(forHTTPHeaderField: "Date").flatMap(Self.date))
  }

  /// Trying again cannot change these.
  private static let final: Set<URLError.Code> = [
    .badURL, .unsupportedURL, .appTransportSecurityRequiresSecureConnection, .serverCertificateUntrusted,
    .serverCertificateHasBadDate, .serverCertificateNotYetValid, .serverCertificateHasUnknownRoot,
    .clientCertificateRejected, .clientCertificateRequired,
  ]

  private static func date(_ text: String) -> Date? {
    let format = DateFormatter()
    format.locale = Locale(identifier: "en_US_POSIX")
    format.timeZone = TimeZone(secondsFromGMT: 0)
    format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss zzz"
    return format.date(from: text)
  }
}

/// A call under way. The session's queue writes it, and who waits for `ended` reads it then.
private final class Call: @unchecked Sendable {
  let take: @Sendable (Data) -> Bool
  let ended = DispatchSemaphore(value: 0)
  var isRefused = false
  var error: Error?

  init(_ take: @escaping @Sendable (Data) -> Bool) { self.take = take }
}

private final class Calls: NSObject, URLSessionDataDelegate, @unchecked Sendable {
  private let lock = NSLock()
  private var running: [Int: Call] = [:]

  func add(_ call: Call, for task: URLSessionTask) {
    lock.lock()
    running[task.taskIdentifier] = call
    lock.unlock()
  }

  func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive data: Data) {
    lock.lock()
    let call = running[dataTask.taskIdentifier]
    lock.unlock()
    guard let call = call, !call.isRefused, !call.take(data) else { return }
    call.isRefused = true
    dataTask.cancel()
  }

  func urlSession(_ session: URLSession, task: URLSessionTask, didCompleteWithError error: Error?) {
    lock.lock()
    let call = running.removeValue(forKey: task.taskIdentifier)
    lock.unlock()
    call?.error = error
    call?.ended.signal()
  }

  func urlSession(
    _ session: URLSession, task: URLSessionTask, willPerformHTTPRedirection response: HTTPURLResponse,
    newRequest request: URLRequest, completionHandler: @escaping @Sendable (URLRequest?) -> Void
  ) {
    completionHandler(nil)
  }
}
