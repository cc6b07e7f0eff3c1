import ArgumentParser
import CarillonCore
import CarillonServer
import Foundation

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write all data of a server to one file.",
        discussion: """
            The server can be running, and keeps running. The file has the state of one moment, with every request that was \
            answered before. It contains the keys of all channel tokens: keep it as secret as the data directory. Complete \
            attachments are in a directory next to the file, with the same name and the suffix .attachments. `carillon \
            restore` creates a data directory from both.
            """)

    @Argument(help: "The file to write, which must not exist yet.", completion: .file()) var to: String
    @OptionGroup var directory: DataDirectory
    @Flag(help: "Print one JSON object per line.") var json = false

    func run() async throws {
        let draft = to + ".partial"
        try await reportingFaults(interrupted: "interrupted; no backup was written", cleanUp: { unlink(draft) }) {
            let path = try directory.path
            try await Composition.stores.backUp(path, to: to)
            let size = try FileManager.default.attributesOfItem(atPath: to)[.size] as? Int64 ?? 0
            Printer(isJSON: json).print(
                ["event": "backedUp", "path": .text(to), "bytes": .number(size)],
                otherwise: "backed up  \(path)  to \(to)  \(size.grouped) bytes")
        }
    }
}

struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore", abstract: "Create a data directory from a backup.",
        discussion: """
            The directory must contain no data: move existing data away first. All changes after the backup are lost: the \
            page about backups describes what this means for devices and senders. Updates that were withdrawn after the \
            backup are live again: with --hold-updates the server delivers none until `carillon updates resume`.
            """)

    @Argument(help: "The file that `carillon backup` wrote.", completion: .file()) var from: String
    @Flag(help: "Pause all live updates. The server delivers a paused update when it is resumed.") var holdUpdates = false
    @OptionGroup var directory: DataDirectory
    @Flag(help: "Print one JSON object per line.") var json = false

    func run() async throws {
        try await reportingFaults(interrupted: "interrupted; nothing was restored") {
            let path = try directory.path
            let updates: LiveUpdateCount
            do {
                updates = try await Composition.stores.restore(
                    from, to: path, holdsUpdates: holdUpdates, at: TimeSource.system.now())
            } catch let fault as StoreOpenFault where fault.kind == .missing {
                throw CommandFault(ExitStatus.noInput, fault.description)
            }
            Printer(isJSON: json).print(
                [
                    "event": "restored", "data": .text(path), "liveUpdates": .number(Int64(updates.live)),
                    "pausedUpdates": .number(Int64(updates.paused)),
                ],
                otherwise: "restored  \(from)  to \(path)\n\(Self.sentence(of: updates))")
        }
    }

    /// Returns a sentence with the number of live audience updates and the command that lists them.
    static func sentence(of updates: LiveUpdateCount) -> String {
        let what = "\(updates.live) live update\(updates.live == 1 ? "" : "s")"
        guard updates.live > 0 else { return what }
        let paused = "\(updates.paused) paused until `carillon updates resume`"
        let status = updates.paused > 0 ? "paused" : "live"
        return
            "\(what), \(paused); list those of an app with `carillon updates list --status \(status) --app APP --key ADMIN-KEY`"
    }
}

/// The directory in which a server stores all its data.
struct DataDirectory: ParsableArguments {
    @Option(help: "The server's data directory; or CARILLON_DATA in the environment.") var data: String?

    var path: String {
        get throws {
            guard let path = data ?? Environment["CARILLON_DATA"] else {
                throw CommandFault(.validationFailure, "name the data directory with --data DIR (or CARILLON_DATA)")
            }
            return path
        }
    }
}
