import ArgumentParser
import CarillonBasics
import CarillonClient
import CarillonWire
import Foundation

struct AttachmentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attachments", abstract: "Send files of any size through the server, sealed, and fetch them.",
        discussion: """
            `put` seals a file, sends it, and writes a manifest, which has its key: give it to those only who are to read the file. \
            `get` fetches and opens what a manifest is of. A transfer that was interrupted goes on where it was: `get` with the same \
            manifest, and `resume` for uploads.
            """,
        subcommands: [Put.self, Get.self, Resume.self])

    struct Put: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Seal a file, and leave it with the server for others.")

        @Argument(help: "The file.", completion: .file()) var file: String
        @Option(
            name: .customLong("for"), parsing: .upToNextOption,
            help: "Who may fetch it: ids of devices, or senders for whoever has a sender key of the app.")
        var readers: [String]
        @Option(help: "A new file for the manifest; without it, it is printed.", completion: .file()) var manifest: String?
        @Option(help: "How long the server keeps it, in seconds.") var ttl: Int = 7 * 86_400
        @Flag(help: "Remove the file when its sealed copy is on disk.") var move = false
        @OptionGroup var options: TransferOptions

        func validate() throws {
            guard (60...28 * 86_400).contains(ttl) else { throw ValidationError("--ttl is 60 to 2419200 seconds.") }
        }

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; `carillon attachments resume` goes on") {
                try await options.reporting {
                    if let manifest, FileManager.default.fileExists(atPath: manifest) {
                        throw PushError(.fileExists, "\(manifest) is there already; it was left as it is.")
                    }
                    let readers = readers.map { $0 == "senders" ? AttachmentReader.senders : .device($0) }
                    let upload = try await options.store.upload(file, for: readers, lifetime: .seconds(ttl), moves: move)
                    try options.notify(try await options.following(upload), in: manifest)
                    upload.confirm()
                }
            }
        }
    }

    struct Get: AsyncParsableCommand {
        static let configuration = CommandConfiguration(abstract: "Fetch what a manifest is of, and open it.")

        @Argument(help: "The manifest's file; - for standard input.", completion: .file()) var manifest: String
        @Option(help: "Where to put it: nothing may be there.", completion: .file()) var to: String
        @OptionGroup var options: TransferOptions

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; the same command goes on") {
                try await options.reporting {
                    let download = try await options.store.download(try read(), to: to)
                    let path = try await options.following(download)
                    options.printer.print(["event": "received", "path": .text(path)], otherwise: "received  \(path)")
                }
            }
        }

        private func read() throws -> AttachmentManifest {
            let data: Data
            do {
                data =
                    manifest == "-"
                    ? FileHandle.standardInput.readDataToEndOfFile() : try Data(contentsOf: URL(fileURLWithPath: manifest))
            } catch {
                throw CommandFault(ExitStatus.noInput, "\(PathPhrase.subject(manifest)) cannot be read")
            }
            guard let manifest = try? TransferOptions.decoder.decode(AttachmentManifest.self, from: data) else {
                throw CommandFault(ExitStatus.refused, "\(manifest) is not the manifest of an attachment")
            }
            return manifest
        }
    }

    struct Resume: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Go on with the uploads that were interrupted, one after the other; their manifests are printed.")

        @OptionGroup var options: TransferOptions

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; the same command goes on") {
                try await options.reporting {
                    for upload in try options.store.uploads() {
                        try options.notify(try await options.following(upload), in: nil)
                        upload.confirm()
                    }
                }
            }
        }
    }
}

struct TransferOptions: ParsableArguments {
    @Option(help: "The server's address, such as http://127.0.0.1:8080; CARILLON_SERVER in the environment does as well.")
    var server: String?
    @Option(help: "A device's credential, or a sender key of the app; CARILLON_KEY in the environment does as well.")
    var key: String?
    @Option(help: "A directory for transfers that are not done; it is made.", completion: .directory) var state: String
    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Print one JSON object a line.") var json = false

    var printer: Printer { Printer(isJSON: json) }

    var store: AttachmentStore {
        get throws {
            let server = try ServerChoice.url(server)
            guard let key = key ?? Environment["CARILLON_KEY"] else {
                throw CommandFault(.validationFailure, "say with --key (or CARILLON_KEY) who you are")
            }
            return try AttachmentStore(
                configuration: .init(
                    server: server, bearer: key, directory: state, trustRootsPath: authority.file,
                    logger: ClientLog.logger("carillon.attachments", printer)))
        }
    }

    /// Shows the progress of the transfer.
    func following<Value>(_ transfer: AttachmentTransfer<Value>) async throws -> Value {
        var shown = ContinuousClock.now - .seconds(1)
        let isShown = !json && isatty(STDERR_FILENO) == 1
        for await bytes in transfer.progress {
            guard bytes == transfer.length || shown.duration(to: .now) >= .seconds(json ? 1 : 0.1) else { continue }
            shown = .now
            if json {
                printer.print(
                    ["event": "progress", "bytes": .number(bytes), "of": .number(transfer.length)], otherwise: "")
            } else if isShown {
                StandardError.draw(
                    "\(bytes * 100 / max(1, transfer.length)) %  \(bytes >> 20) of \(transfer.length >> 20) MiB")
            }
        }
        if isShown { StandardError.clearLine() }
        return try await transfer.value
    }

    func notify(_ manifest: AttachmentManifest, in path: String?) throws {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        let text = try encoder.encode(manifest)
        guard let path else { return Printer.printJSON(Array(text)) }
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else {
            // The manifest must not be lost, even if the file cannot be written.
            Printer.printJSON(Array(text))
            throw CommandFault(ExitStatus.output, "\(path) cannot be written; the manifest was printed")
        }
        let handle = FileHandle(fileDescriptor: file, closeOnDealloc: true)
        try handle.write(contentsOf: text + [UInt8(ascii: "\n")])
        printer.print(["event": "sent", "manifest": .text(path)], otherwise: "sent  the manifest is in \(path)")
    }

    static let decoder: JSONDecoder = {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        return decoder
    }()

    /// Converts the library's errors to sentences and exit codes.
    func reporting(_ work: () async throws -> Void) async throws {
        do {
            try await work()
        } catch let error as PushError {
            throw CommandFault(error)
        }
    }
}
