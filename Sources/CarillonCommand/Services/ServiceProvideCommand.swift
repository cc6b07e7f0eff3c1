import ArgumentParser
import CarillonBasics
import CarillonClient
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

struct ServiceProvideCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "provide", abstract: "Provide services: answer requests of other apps until Ctrl-C.",
        discussion: """
            Each request is printed. Without --echo or --run the answer is null. --run starts a program for each request: \
            the program reads the request as one JSON object (id, app, device, service, version, method, parameters, \
            attachments, foreground, user), and prints the result, {"value": …, "attachments": ["path", …]}. If the program \
            ends with another status than 0, the status is the number of the service's error, and its standard error is the \
            text.
            """)

    @Option(help: "A service definition; can be repeated.", completion: .file()) var definition: [String] = []
    @Option(help: "A method, in place of a definition: com.example.echo/1.0/echo; can be repeated.") var method: [String] =
        []
    @Option(help: "The name of the app.") var name = "carillon"
    @Option(name: .customLong("app-version"), help: "The app's version.") var appVersion = "1.0"
    @Option(help: "The icon of the app, a PNG file of up to 32 KiB.", completion: .file()) var icon: String?
    @Flag(help: "Answer each request with its own parameters and files.") var echo = false
    @Option(name: .customLong("run"), help: "A program that answers each request.", completion: .file()) var program: String?
    @OptionGroup var options: ServiceOptions

    func validate() throws {
        guard !definition.isEmpty || !method.isEmpty else {
            throw ValidationError("Name the provided service with --definition FILE or --method SERVICE/VERSION/METHOD.")
        }
        guard program == nil || !echo else { throw ValidationError("Use either --echo or --run, not both.") }
    }

    func run() async throws {
        try await reportingFaults {
            try await ServiceOptions.reporting { try await provide() }
        }
    }

    private func provide() async throws {
        let definitions = try definition.map { try DefinitionFile.read($0) }
        let methods = try method.map { try ServiceMethod.parsed($0) } + definitions.flatMap(\.allMethods)
        let client = try await options.makeClient()
        let provider = client.serviceProvider
        let answer = answer
        let printer = options.printer
        for method in methods {
            await provider.handle(method) { request in
                Self.show(request, printer)
                return try await answer(request)
            }
        }
        for definition in definitions { await client.serviceClient.use(definition) }
        let picture = try icon.map { Data(try InputFile.bytes($0)) }
        try await provider.offer(name: name, version: appVersion, icon: picture, methods)
        // Both tasks end with the command.
        let events = client.serviceProvider.events
        let notifying = [
            Task { await Self.notifyDevice(of: client.serviceProvider, printer) },
            Task { await Self.notify(events, printer) },
        ]
        defer { for task in notifying { task.cancel() } }
        let interrupt = InterruptService()
        var group = ServiceGroupConfiguration(
            services: [
                .init(service: client),
                .init(service: interrupt, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            gracefulShutdownSignals: [.sigterm],
            logger: Logger(label: "carillon", factory: { _ in SwiftLogNoOpLogHandler() }))
        group.maximumGracefulShutdownDuration = .seconds(5)
        try await ServiceGroup(configuration: group).run()
        try interrupt.report("stopped; unanswered requests are answered at the next start")
    }

    private var answer: @Sendable (ServiceRequest) async throws -> ServiceReply {
        if let program { return { try await AnsweringProgram.run(program, $0) } }
        if echo { return { ServiceReply($0.parameters, attachments: $0.attachments) } }
        return { _ in ServiceReply() }
    }

    /// Reports the identity of this device, when the server knows the device and its user.
    private static func notifyDevice(of provider: ServiceProvider, _ printer: Printer) async {
        guard let fingerprint = await Self.fingerprint({ try await provider.fingerprint }) else { return }
        printer.print(
            ["event": "providing", "fingerprint": .text(fingerprint)], otherwise: "providing  fingerprint \(fingerprint)")
        let device = provider.application?.device ?? ""
        printer.print(["event": "device", "device": .text(device)], otherwise: "device  \(device)")
    }

    /// Reports apps that request this device to come to the foreground, and changed identities.
    private static func notify(_ events: AsyncStream<ServiceProviderEvent>, _ printer: Printer) async {
        for await event in events {
            switch event {
            case .frontRequested(let application):
                let from = "\(application.app)/\(application.device ?? "")"
                printer.print(["event": "front", "from": .text(from)], otherwise: "front  requested by \(from)")
            case .missed(let count):
                printer.print(["event": "missed", "count": .number(Int64(count))], otherwise: "missed  \(count) events")
            case .offerRefused(let error):
                printer.print(
                    ["event": "offerRefused", "error": .text(error.code.name), "text": .text(error.text)],
                    otherwise: "offer refused  \(error.code.name): \(error.text)")
            case .identityChanged(let application, let fingerprint):
                let from = "\(application.app)/\(application.device ?? "")"
                printer.print(
                    ["event": "identityChanged", "from": .text(from), "fingerprint": .text(fingerprint)],
                    otherwise: "identity changed  \(from)  \(fingerprint)")
            default: break
            }
        }
    }

    /// Reads the fingerprint of this device. Waits while the server cannot be reached, which the client reports, and while the
    /// storage fails, which is reported once.
    ///
    /// - Returns: Nil if the task is cancelled or the storage is unusable.
    static func fingerprint(
        retryingAfter wait: Duration = .seconds(1), _ read: () async throws -> String
    ) async -> String? {
        var isReported = false
        while true {
            do {
                return try await read()
            } catch let error as ServiceError where error.code == .serverUnavailable {
                continue
            } catch let error as PushError {
                if !isReported { StandardError.print("carillon: \(error.message)") }
                isReported = true
                guard error.code == .storageUnavailable else { return nil }
                // The task was cancelled because the command ends.
                do { try await Task.sleep(for: wait) } catch { return nil }
            } catch {
                return nil
            }
        }
    }

    private static func show(_ request: ServiceRequest, _ printer: Printer) {
        let from = "\(request.consumer.app)/\(request.consumer.device ?? "")"
        let method = "\(request.method.service)/\(request.method.version)/\(request.method.name)"
        printer.print(
            [
                "event": "request", "id": .text(request.id), "from": .text(from), "method": .text(method),
                "parameters": .text(request.parameters.plainText),
                "attachments": .list(request.attachments.map { .text($0) }),
                "foreground": .text(request.foreground.rawValue), "user": .text(request.user ?? ""),
            ],
            lines: ["request  \(request.id)  \(method)  from \(from)", "  " + request.parameters.plainText]
                + request.attachments.map { "  " + $0 })
    }
}

/// Runs a program that answers a request.
enum AnsweringProgram {
    static func run(_ path: String, _ request: ServiceRequest) async throws -> ServiceReply {
        let input: JSONValue = [
            "id": .string(request.id), "app": .string(request.consumer.app),
            "device": .string(request.consumer.device ?? ""), "service": .string(request.method.service),
            "version": .string(request.method.version), "method": .string(request.method.name),
            "parameters": request.parameters.plainJSON,
            "attachments": .array(request.attachments.map(JSONValue.string)),
            "foreground": .string(request.foreground.rawValue), "user": .string(request.user ?? ""),
        ]
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        let (standardInput, output, errors) = (Pipe(), Pipe(), Pipe())
        (process.standardInput, process.standardOutput, process.standardError) = (standardInput, output, errors)
        try process.run()
        return try await withTaskCancellationHandler {
            async let said = Task.detached { output.fileHandleForReading.readDataToEndOfFile() }.value
            async let complained = Task.detached { errors.fileHandleForReading.readDataToEndOfFile() }.value
            try? standardInput.fileHandleForWriting.write(contentsOf: input.bytes)
            try? standardInput.fileHandleForWriting.close()
            let (text, complaint) = await (said, complained)
            process.waitUntilExit()
            guard process.terminationStatus == 0 else {
                try Task.checkCancellation()
                throw ServiceError(
                    number: Int(process.terminationStatus), String(decoding: complaint.prefix(1000), as: UTF8.self))
            }
            guard let json = JSONValue(parsing: Array(text)), case .object = json else {
                if let number = NumberOutOfRange(in: Array(text)) {
                    throw ServiceError(.serviceFailed, "The answer of the program is not valid: \(number.clause).")
                }
                throw ServiceError(.serviceFailed, "The program did not answer with a JSON object.")
            }
            var paths: [String] = []
            if case .array(let list)? = json["attachments"] {
                paths = list.compactMap { if case .string(let path) = $0 { AbsolutePath.of(path) } else { nil } }
            }
            let value = try json["value"].map {
                try ServiceValue.parsed(String(decoding: $0.bytes, as: UTF8.self))
            }
            return ServiceReply(value ?? .null, attachments: paths)
        } onCancel: {
            process.terminate()
        }
    }
}
