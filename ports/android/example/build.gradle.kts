// Builds the example. Like the library's build file it is never run by our tests.
plugins {
    id("com.android.application")
}

android {
    namespace = "dev.wisp.example"
    compileSdk = 36
    defaultConfig {
        applicationId = "dev.wisp.example"
        minSdk = 28
        targetSdk = 36
    }
    // An asset that is not compressed is opened in place.
    androidResources { noCompress += "wisp" }
    sourceSets["main"].assets.srcDir(layout.buildDirectory.dir("models"))
    buildTypes { release { isMinifyEnabled = true } }
    compileOptions {
        sourceCompatibility = JavaVersion.VERSION_11
        targetCompatibility = JavaVersion.VERSION_11
    }
}

val models by tasks.registering(Copy::class) {
    from(projectDir.resolve("../../../models")) { include("cafe.wisp") }
    into(layout.buildDirectory.dir("models"))
}
tasks.named("preBuild") { dependsOn(models) }

dependencies {
    implementation(project(":"))
    implementation("androidx.work:work-runtime-ktx:2.10.1")
    implementation("org.jetbrains.kotlinx:kotlinx-coroutines-android:1.10.2")
}
