// swift-tools-version:6.0
// The package that ports/apple/package assembles, with everything that is listed here (docs/apple.md).
import PackageDescription

let package = Package(
  name: "Wisp",
  platforms: [.iOS(.v16), .macOS(.v13)],
  products: [.library(name: "Wisp", targets: ["Wisp"])],
  targets: [
    // Debian's libsodium without the results of its configure script: the portable code, which gives the same bits.
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
    // The amalgamation, which unit.cc includes. SQLite comes from the system.
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
    .testTarget(
      name: "WispTests", dependencies: ["Wisp"],
      resources: [.copy("cafe.wisp"), .copy("policy.json"), .copy("golden")]),
  ],
  cxxLanguageStandard: .cxx20
)
