// Builds the example. Like the library's build file it is never run by our tests.
plugins {
    id("com.android.application")
    kotlin("android")
}

android {
    namespace = "dev.wisp.example"
    compileSdk = 35
    defaultConfig {
        applicationId = "dev.wisp.example"
        minSdk = 28
        targetSdk = 35
    }
    // An asset that is not compressed is opened in place.
    androidResources { noCompress += "wisp" }
    sourceSets["main"].assets.srcDir(layout.buildDirectory.dir("models"))
    buildTypes { release { isMinifyEnabled = true } }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_1_8
        targetCompatibility = JavaVersion.VERSION_1_8
    }
    kotlinOptions { jvmTarget = "1.8" }
}

val models by tasks.registering(Copy::class) {
    from(rootDir.resolve("../../models")) { include("cafe.wisp") }
    into(layout.buildDirectory.dir("models"))
}
tasks.named("preBuild") { dependsOn(models) }

dependencies {
    implementation(rootProject)
    implementation("androidx.work:work-runtime-ktx:2.9.1")
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.9.0")
}
