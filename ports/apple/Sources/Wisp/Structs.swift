import CWisp
import Foundation

/// A struct of wisp.h that may grow: it begins with its size, and zero is the default of every other field.
protocol SizedStruct {
  init()
  var size: Int { get set }
}

extension wisp_open_options: SizedStruct {}
extension wisp_recommend_options: SizedStruct {}
extension wisp_model_info: SizedStruct {}
extension wisp_personalise_options: SizedStruct {}
extension wisp_personalise_result: SizedStruct {}
extension wisp_plan_options: SizedStruct {}
extension wisp_plan: SizedStruct {}
extension wisp_run_options: SizedStruct {}
extension wisp_run_result: SizedStruct {}
extension wisp_rebase_options: SizedStruct {}
extension wisp_rebase_result: SizedStruct {}
extension wisp_budget: SizedStruct {}
extension wisp_log_counts: SizedStruct {}
extension wisp_anchor: SizedStruct {}
extension wisp_logger: SizedStruct {}
extension wisp_fleet_transport: SizedStruct {}
extension wisp_fleet_options: SizedStruct {}
extension wisp_fleet_result: SizedStruct {}

/// WISP_INIT of wisp.h, a macro that Swift does not see.
func sized<Struct: SizedStruct>() -> Struct {
  var made = Struct()
  made.size = MemoryLayout<Struct>.stride
  return made
}

/// Texts for the fields of a struct of wisp.h. They are valid as long as this object.
final class Texts {
  private var kept: [UnsafeMutablePointer<CChar>] = []

  deinit { kept.forEach { free($0) } }

  func of(_ text: String?) throws -> UnsafePointer<CChar>? {
    guard let text = text else { return nil }
    guard !text.utf8.contains(0) else {
      throw WispError(.invalidArgument, "a text with a zero byte in it was given: C would read it to there alone")
    }
    guard let copy = strdup(text) else { throw WispError(.internalError, "out of memory") }
    kept.append(copy)
    return UnsafePointer(copy)
  }

  func path(_ url: URL?) throws -> UnsafePointer<CChar>? {
    guard let url = url else { return nil }
    guard url.isFileURL else {
      throw WispError(.invalidArgument, "\(url.absoluteString) is no file of this device: a file URL is needed")
    }
    return try of(url.path)
  }
}

/// The text that a zero ends.
func text(in bytes: UnsafeRawBufferPointer) -> String {
  String(decoding: bytes.prefix(while: { $0 != 0 }), as: UTF8.self)
}

/// Reads a text of unknown length: asks for the size, then for the text, and again if it has grown.
func readText(_ read: (UnsafeMutablePointer<CChar>, Int, UnsafeMutablePointer<Int>) throws -> Void) throws -> String {
  var room = [CChar](repeating: 0, count: 1024)
  while true {
    var needed = 0
    try read(&room, room.count, &needed)
    if needed <= room.count { return room.withUnsafeBytes { text(in: $0) } }
    room = [CChar](repeating: 0, count: needed)
  }
}
