// Of the project on its own. An app that includes it as `:wisp` has its own settings.
pluginManagement {
    repositories {
        google()
        mavenCentral()
        gradlePluginPortal()
    }
    plugins {
        id("com.android.library") version "9.0.0"
        id("com.android.application") version "9.0.0"
    }
}

dependencyResolutionManagement {
    repositories {
        google()
        mavenCentral()
    }
}

rootProject.name = "wisp"
include(":example")
