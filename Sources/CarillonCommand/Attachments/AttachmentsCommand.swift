import ArgumentParser
import CarillonBasics
import CarillonClient
import CarillonWire
import Foundation

struct AttachmentsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "attachments", abstract: "Send encrypted files of any size through the server, and fetch them.",
        discussion: """
            `put` encrypts a file, sends it, and writes a manifest, which contains the file's key: send the manifest only \
            to the readers of the file. `get` fetches and decrypts the file of a manifest. To continue an interrupted \
            transfer, run `get` with the same manifest, or `resume` for uploads.
            """,
        subcommands: [Put.self, Get.self, Resume.self])

    struct Put: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Encrypt a file, and send it to the server for its readers.")

        @Argument(help: "The file.", completion: .file()) var file: String
        @Option(
            name: .customLong("for"), parsing: .upToNextOption,
            help: "The readers: IDs of devices, or senders for all sender keys of the app.")
        var readers: [String]
        @Option(help: "A new file for the manifest. Default: the manifest is printed.", completion: .file()) var manifest:
            String?
        @Option(help: "How long the server stores the file, in seconds.") var ttl: Int = 7 * 86_400
        @Flag(help: "Remove the file when its encrypted copy is on disk.") var move = false
        @OptionGroup var options: TransferOptions

        func validate() throws {
            guard (60...28 * 86_400).contains(ttl) else {
                throw ValidationError("--ttl must be from 60 to 2419200 seconds.")
            }
        }

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; `carillon attachments resume` continues the upload") {
                try await options.reporting {
                    if let manifest, FileManager.default.fileExists(atPath: manifest) {
                        throw PushError(.fileExists, "\(manifest) already exists and was not changed; choose another file.")
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
        static let configuration = CommandConfiguration(abstract: "Fetch the file of a manifest, and decrypt it.")

        @Argument(help: "The manifest's file; - for standard input.", completion: .file()) var manifest: String
        @Option(help: "The path for the file, which must not exist yet.", completion: .file()) var to: String
        @OptionGroup var options: TransferOptions

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; run the same command to continue") {
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
            abstract: "Continue interrupted uploads, one after the other, and print their manifests.")

        @OptionGroup var options: TransferOptions

        func run() async throws {
            try await reportingFaults(interrupted: "interrupted; run the same command to continue") {
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
    @Option(help: "The server's address, such as http://127.0.0.1:8080; or CARILLON_SERVER in the environment.")
    var server: String?
    @Option(help: "A device credential, or a sender key of the app; or CARILLON_KEY in the environment.")
    var key: String?
    @Option(help: "A directory for unfinished transfers; created if it is missing.", completion: .directory) var state:
        String
    @OptionGroup var authority: AuthorityOption
    @Flag(help: "Print one JSON object per line.") var json = false

    var printer: Printer { Printer(isJSON: json) }

    var store: AttachmentStore {
        get throws {
            let server = try ServerChoice.url(server)
            guard let key = key ?? Environment["CARILLON_KEY"] else {
                throw CommandFault(
                    .validationFailure, "name a device credential or a sender key with --key (or CARILLON_KEY)")
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
