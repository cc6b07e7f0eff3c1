import ArgumentParser
import CarillonAPNsSimulator
import CarillonCore
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

struct SimulateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "simulate", abstract: "Run a simulated Apple push service, for tests.",
        discussion: """
            The simulator listens for pushes on 127.0.0.1:2197 and for channel management on 127.0.0.1:2195, over HTTP/2 \
            and TLS, and is as strict as the real service. The data directory contains authority.pem, which clients must \
            trust, and the signing key, with which they sign. The page on 127.0.0.1:2180 shows the requests; its JSON API \
            manages the device book and causes faults: see docs/apns-simulator.md.
            """)

    @Option(help: "The address for pushes and broadcasts.") var listen = "127.0.0.1:2197"
    @Option(help: "The address for broadcast channels, or \"none\".") var manage = "127.0.0.1:2195"
    @Option(help: "The address of the page and the JSON API, which have no access control; or \"none\".")
    var http = "127.0.0.1:2180"
    @Option(help: "The directory of the authority and the signing key; created if it is missing.") var data: String?
    @Option(help: "sandbox, production, or both. With both, production uses the next port of each address.")
    var environment = "sandbox"
    @Option(help: "What happens with device tokens that are not in the book: refuse, register or accept.")
    var unknownDevices = "refuse"
    @Option(help: "The seed of random choices: the same requests get the same faults again.") var seed: UInt64 = 1
    @Option(help: "An additional name or address for the certificate.") var host: [String] = []
    @Option(help: "The number of threads for connections.") var threads = 1
    @Option(help: "A device for the book, as TOKEN:TOPIC or TOKEN:TOPIC:production.") var device: [String] = []
    @Flag(help: "Use HTTP/2 with prior knowledge, without TLS.") var plain = false
    @Flag(help: "For benchmarks: accept every device token, record nothing, and allow many streams from the start.")
    var acceptAll = false
    @Flag(help: "Print one JSON object per line.") var json = false

    func run() async throws {
        try await reportingFaults {
            let simulator: APNsSimulator
            do {
                simulator = try APNsSimulator(try configuration())
                for device in device { try simulator.add(try Self.device(device, environments[0])) }
            } catch {
                throw Self.fault(error)
            }
            var group = ServiceGroupConfiguration(
                services: [
                    .init(
                        service: SimulatorService(simulator: simulator, announce: announce),
                        successTerminationBehavior: .gracefullyShutdownGroup)
                ],
                gracefulShutdownSignals: [.sigterm, .sigint],
                logger: Logger(label: "carillon", factory: { _ in SwiftLogNoOpLogHandler() }))
            group.maximumGracefulShutdownDuration = .seconds(10)
            do {
                try await ServiceGroup(configuration: group).run()
            } catch let error as APNsSimulator.SimulatorError {
                throw Self.fault(error)
            }
        }
    }

    private func configuration() throws -> APNsSimulator.Configuration {
        guard let unknown = APNsSimulator.UnknownDevices(rawValue: unknownDevices) else {
            throw CommandFault(
                .validationFailure, "--unknown-devices must be refuse, register or accept, not \"\(unknownDevices)\"")
        }
        guard (1...64).contains(threads) else { throw CommandFault(.validationFailure, "--threads must be from 1 to 64") }
        guard let push = try Self.address(listen, "--listen") else {
            throw CommandFault(.validationFailure, "--listen must be an address, not none")
        }
        let management = try Self.address(manage, "--manage")
        var ports: [APNsSimulator.Port] = []
        for (offset, environment) in try environments.enumerated() {
            func add(_ service: APNsSimulator.Port.Service, _ place: (host: String, port: Int)) {
                let port = place.port == 0 ? 0 : place.port + offset
                ports.append(.init(service, environment, host: place.host, port: port, isSecure: !plain))
            }
            add(.push, push)
            if let management { add(.management, management) }
        }
        var configuration =
            acceptAll ? APNsSimulator.Configuration.acceptingAll(ports: ports) : APNsSimulator.Configuration(ports: ports)
        if !acceptAll { configuration.rules.unknownDevices = unknown }
        configuration.control = try Self.address(http, "--http").map { .init(host: $0.host, port: $0.port) }
        configuration.dataDirectory = data
        configuration.seed = seed
        configuration.extraHosts = host
        configuration.eventLoops = threads
        return configuration
    }

    private var environments: [APNsSimulator.Environment] {
        get throws {
            if environment == "both" { return [.sandbox, .production] }
            guard let only = APNsSimulator.Environment(rawValue: environment) else {
                throw CommandFault(
                    .validationFailure, "--environment must be sandbox, production or both, not \"\(environment)\"")
            }
            return [only]
        }
    }

    /// Reads `HOST:PORT`, `[v6]:PORT`, or `none`. Port 0 is any free port.
    private static func address(_ text: String, _ option: String) throws -> (host: String, port: Int)? {
        if text == "none" { return nil }
        let isAnyPort = text.hasSuffix(":0")
        do {
            let place = try HostPort(isAnyPort ? "\(text.dropLast())1" : text)
            return (place.host, isAnyPort ? 0 : place.port)
        } catch {
            throw CommandFault(
                .validationFailure, "\(option) must be HOST:PORT, such as 127.0.0.1:2197: it \(error.reason).")
        }
    }

    private static func device(
        _ text: String, _ environment: APNsSimulator.Environment
    ) throws -> APNsSimulator.Device {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false).map(String.init)
        let named = parts.count == 3 ? APNsSimulator.Environment(rawValue: parts[2]) : environment
        guard (2...3).contains(parts.count), let named else {
            throw CommandFault(
                .validationFailure, "--device must be TOKEN:TOPIC, or TOKEN:TOPIC:production, not \"\(text)\"")
        }
        return APNsSimulator.Device(token: parts[0], topic: parts[1], environment: named)
    }

    private static func fault(_ error: any Error) -> any Error {
        guard let error = error as? APNsSimulator.SimulatorError else { return error }
        switch error.code {
        case .addressUnavailable: return CommandFault(ExitStatus.unreachable, error.message)
        case .storageUnavailable: return CommandFault(ExitStatus.dataDirectory, error.message)
        case .identifierInvalid, .settingInvalid: return CommandFault(.validationFailure, error.message)
        default: return CommandFault(.failure, error.message)
        }
    }

    @Sendable private func announce(_ simulator: APNsSimulator) {
        let printer = Printer(isJSON: json)
        for port in simulator.ports {
            let scheme = port.isSecure ? "https" : "http"
            printer.print(
                [
                    "event": "listening", "service": .text(port.service.rawValue), "host": .text(port.host),
                    "port": .number(Int64(port.port)), "environment": .text(port.environment.rawValue),
                    "tls": .flag(port.isSecure),
                ],
                otherwise: "\(port.service.rawValue) (\(port.environment.rawValue)): \(scheme)://\(port.host):\(port.port)")
        }
        if let port = simulator.controlPort, let host = simulator.controlHost {
            printer.print(
                ["event": "listening", "service": "control", "host": .text(host), "port": .number(Int64(port))],
                otherwise: "page and JSON API: http://\(host):\(port)/")
        }
        let key = simulator.signingKey
        printer.print(
            ["event": "ready", "keyID": .text(key.id), "teamID": .text(key.teamID)],
            otherwise: data.map { "trust \($0)/authority.pem; sign with \($0)/AuthKey_\(key.id).p8 of team \(key.teamID)" }
                ?? "ready; sign with key \(key.id) of team \(key.teamID)")
    }
}

/// Runs the simulator as long as its service group.
private struct SimulatorService: Service {
    let simulator: APNsSimulator
    let announce: @Sendable (APNsSimulator) -> Void

    func run() async throws {
        try await simulator.start()
        announce(simulator)
        try? await gracefulShutdown()
        await simulator.stop()
    }
}
