// swift-tools-version:5.9
// The package as ports/apple/package makes it: what is listed here is put together there (docs/apple.md).
import PackageDescription

let package = Package(
  name: "Wisp",
  platforms: [.iOS(.v16), .macOS(.v13)],
  products: [.library(name: "Wisp", targets: ["Wisp"])],
  targets: [
    // Debian's libsodium without the answers of its configure script: the portable code, whose bits are the same.
    .target(
      name: "CSodium",
      sources: ["src"],
      publicHeadersPath: "include",
      cSettings: [
        .define("CONFIGURED", to: "1"), .define("SODIUM_STATIC"), .define("NATIVE_LITTLE_ENDIAN", to: "1"),
        .headerSearchPath("include/sodium"),
      ]),
    .target(
      name: "CUtf8proc",
      exclude: ["utf8proc_data.c"],
      publicHeadersPath: "include",
      cSettings: [.define("UTF8PROC_STATIC")]),
    // The amalgamation. unit.cc includes it; the system has SQLite.
    .target(
      name: "CWisp",
      dependencies: ["CSodium", "CUtf8proc"],
      exclude: ["wisp.cc", "vendor"],
      publicHeadersPath: "include",
      cxxSettings: [
        .define("WISP_TRAINING"), .define("SODIUM_STATIC"), .define("UTF8PROC_STATIC"),
        .headerSearchPath("vendor/eigen3"),
      ],
      linkerSettings: [.linkedLibrary("sqlite3")]),
    .target(name: "Wisp", dependencies: ["CWisp"], resources: [.copy("PrivacyInfo.xcprivacy")]),
    .testTarget(name: "WispTests", dependencies: ["Wisp"], resources: [.copy("cafe.wisp")]),
  ],
  cxxLanguageStandard: .cxx20
)
