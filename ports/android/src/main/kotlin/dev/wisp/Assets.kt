package dev.wisp

import android.content.res.AssetManager
import java.io.FileNotFoundException

/**
 * Opens a model that the app carries as an asset, in place: nothing is unpacked. For that the package must store it
 * uncompressed: `androidResources { noCompress += "wisp" }` in the app's build.gradle.kts.
 */
@JvmOverloads
fun Recommender.Companion.open(assets: AssetManager, name: String, options: OpenOptions = OpenOptions()): Recommender {
    val found = try {
        assets.openFd(name)
    } catch (hidden: FileNotFoundException) {
        val sentence = "there is no asset '$name' that is held as it is; if it is there, it is compressed: " +
            "androidResources { noCompress += \"wisp\" } keeps it whole"
        throw WispException(WispException.Code.IO, sentence).apply { initCause(hidden) }
    }
    return found.use {
        Recommender.openDescriptor(name, it.parcelFileDescriptor.fd, it.startOffset, it.length, options)
    }
}
