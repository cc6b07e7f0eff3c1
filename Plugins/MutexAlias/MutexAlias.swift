import Foundation
import PackagePlugin

/// Adds `Sources/SanitizedMutex/Alias/MutexAlias.swift` to a module.
@main
struct MutexAlias: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: any Target) throws -> [Command] {
        let alias = context.package.directoryURL.appending(path: "Sources/SanitizedMutex/Alias/MutexAlias.swift")
        let copy = context.pluginWorkDirectoryURL.appending(path: alias.lastPathComponent)
        return [
            .buildCommand(
                displayName: "Copying \(alias.lastPathComponent)", executable: URL(filePath: "/bin/cp"),
                arguments: [alias.path, copy.path], inputFiles: [alias], outputFiles: [copy])
        ]
    }
}
