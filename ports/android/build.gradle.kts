// Builds the library. This file is never run by our tests, because the machine has no Gradle for Android.
// ports/android/aar makes the same layout.
plugins {
    id("com.android.library") version "8.7.3"
    id("com.android.application") version "8.7.3" apply false
    kotlin("android") version "2.0.21"
    `maven-publish`
}

group = "dev.wisp"

val root = rootDir.resolve("../..")
val wispVersion =
    Regex("""project\(wisp VERSION ([0-9.]+)""").find(root.resolve("CMakeLists.txt").readText())!!.groupValues[1]

android {
    namespace = "dev.wisp"
    compileSdk = 35
    ndkVersion = "27.2.12479018"
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
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    kotlinOptions { jvmTarget = "1.8" }
    buildFeatures { prefabPublishing = true }
    prefab { create("wisp") { headers = layout.buildDirectory.dir("headers").get().asFile.path } }
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

dependencies { api("org.jetbrains.kotlinx:kotlinx-coroutines-core:1.9.0") }

publishing {
    publications {
        register<MavenPublication>("release") {
            artifactId = "wisp"
            version = wispVersion
            afterEvaluate { from(components["release"]) }
        }
    }
}
