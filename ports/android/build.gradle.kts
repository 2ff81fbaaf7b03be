// Builds the library: as a project of its own, or as the project `:wisp` of an app (docs/android.md). The plugin's
// version is the app's. For the Android Gradle plugin 9, which compiles Kotlin itself. Never run by our tests, which
// have no Gradle: they read it (tests/android_package.sh). ports/android/aar makes the same layout without Gradle.
plugins {
    id("com.android.library")
    id("com.android.application") apply false // the example's
    `maven-publish`
}

group = "dev.wisp"

val root = projectDir.resolve("../..")
val wispVersion =
    Regex("""project\(wisp VERSION ([0-9.]+)""").find(root.resolve("CMakeLists.txt").readText())!!.groupValues[1]
version = wispVersion

android {
    namespace = "dev.wisp"
    compileSdk = 36
    ndkVersion = "28.2.13676358"
    defaultConfig {
        // Android 9 is the first version whose C library has getentropy, the source of noise.
        minSdk = 28
        consumerProguardFiles("consumer-rules.pro")
        ndk { abiFilters += listOf("arm64-v8a", "x86_64") }
        externalNativeBuild { cmake { arguments += "-DANDROID_STL=c++_static" } }
    }
    externalNativeBuild {
        cmake {
            path = file("CMakeLists.txt")
            version = "3.25.0+"
        }
    }
    compileOptions { // Kotlin's bytecode follows
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
    buildFeatures { prefabPublishing = true }
    // The module has the name of the CMake target, by which the plugin finds the library.
    prefab {
        create("libwisp") { headers = layout.buildDirectory.dir("headers").get().asFile.path; libraryName = "libwisp" }
    }
    publishing { singleVariant("release") { withSourcesJar() } }
}

// An app's own C and C++ include <wisp/wisp.h>.
val headers by tasks.registering(Copy::class) {
    from(root.resolve("ports/c")) {
        include("wisp.h", "wisp_embed.h", "wisp_deployment.h", "wisp_fleet.h", "wisp_text.h")
    }
    from(root.resolve("ports/cpp")) { include("wisp.hpp") }
    into(layout.buildDirectory.dir("headers/wisp"))
}
tasks.named("preBuild") { dependsOn(headers) }

// The plugin writes that the library has a static C++ library, and prefab then refuses it to every app with C++. No
// symbol of that library is imported or exported, so the app may have any: "none".
tasks.matching { it.name.startsWith("prefab") && it.name.endsWith("ConfigurePackage") }.configureEach {
    dependsOn(headers)
    doLast {
        outputs.files.asFileTree.filter { it.name == "abi.json" }.forEach { abi ->
            abi.writeText(abi.readText().replace("\"c++_static\"", "\"none\""))
        }
    }
}

dependencies { api("org.jetbrains.kotlinx:kotlinx-coroutines-core:1.10.2") }

publishing {
    publications {
        register<MavenPublication>("release") {
            artifactId = "wisp"
            version = wispVersion
            afterEvaluate { from(components["release"]) }
        }
    }
}
