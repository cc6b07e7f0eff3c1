import ArgumentParser
import CarillonCore
import CarillonServer
import Foundation

struct BackupCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup", abstract: "Write everything that a server keeps to one file.",
        discussion: """
            The server may be running, and goes on. The file is as all was at one moment, with everything that was answered \
            before. It holds the keys of all channel tokens: keep it as secret as the data directory. Attachments that are whole \
            are beside it, in a directory of the same name with .attachments behind. `carillon restore` makes a data directory of \
            both.
            """)

    @Argument(help: "The file to write; it must not be there yet.", completion: .file()) var to: String
    @OptionGroup var directory: DataDirectory
    @Flag(help: "Print one JSON object a line.") var json = false

    func run() async throws {
        let draft = to + ".partial"
        try await reportingFaults(interrupted: "interrupted; there is no backup", cleanUp: { unlink(draft) }) {
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
        commandName: "restore", abstract: "Make a data directory of a backup.",
        discussion: """
            The directory must hold no data yet: move away what is there. What happened after the backup is forgotten: see \
            the page about backups for what that means to devices and senders. Updates that were withdrawn after the backup are live \
            again: with --hold-updates the server delivers none until `carillon updates resume`.
            """)

    @Argument(help: "The file that `carillon backup` wrote.", completion: .file()) var from: String
    @Flag(help: "Pause all live updates. The server delivers a paused update when it is resumed.") var holdUpdates = false
    @OptionGroup var directory: DataDirectory
    @Flag(help: "Print one JSON object a line.") var json = false

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
    @Option(help: "The server's data directory; CARILLON_DATA in the environment does as well.") var data: String?

    var path: String {
        get throws {
            guard let path = data ?? Environment["CARILLON_DATA"] else {
                throw CommandFault(.validationFailure, "say with --data DIR (or CARILLON_DATA) which directory is meant")
            }
            return path
        }
    }
}
