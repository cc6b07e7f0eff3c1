import ArgumentParser
import CarillonAPNsSimulator
import CarillonClient
import CarillonServer
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo", abstract: "Show each feature with one server, then keep the server running for your own tests.",
        discussion:
            "The data is in a temporary directory, which is removed at the end. With --data it stays in your directory.")

    @Option(help: "The address to listen on.") var listen = "127.0.0.1:8080"
    @Option(help: "A directory for the demo's data.") var data: String?
    @Flag(help: "Stop after the demo instead of keeping the server running.") var once = false

    func run() async throws {
        try await reportingFaults {
            let directory =
                data ?? FileManager.default.temporaryDirectory.appendingPathComponent("carillon-demo-\(getpid())").path
            defer {
                if data == nil { try? FileManager.default.removeItem(atPath: directory) }
            }
            try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
            try await run(in: directory)
        }
    }

    private func run(in directory: String) async throws {
        var flags = ["listen": listen, "data": directory + "/server", "dev": "true"]
        flags["log"] = "warning"
        flags["shortest-ping-seconds"] = "1"
        var simulation = APNsSimulator.Configuration(ports: [.init(.push, .production)])
        simulation.dataDirectory = directory + "/apns"
        let simulator = try APNsSimulator(simulation)
        try await simulator.start()
        flags["key-file"] = directory + "/key-file"
        flags["apns-ca"] = directory + "/apns/authority.pem"
        flags["apns-production"] = "127.0.0.1:\(simulator.port(.push, .production) ?? 0)"
        let options = try ServeOptions(flags: flags, file: nil, environment: [:])
        OpenFiles.raiseLimit()
        let (running, began) = AsyncStream.makeStream(of: CarillonServer.Running.self)
        let server = CarillonServer(
            settings: try options.settings(), stores: Composition.stores, logger: options.logger
        ) { began.yield($0) }
        let scenario = DemoScenario(server: running, simulator: simulator, directory: directory, staysUp: !once)
        let interrupt = InterruptService()
        let configuration = ServiceGroupConfiguration(
            services: [
                .init(service: server), .init(service: scenario, successTerminationBehavior: .gracefullyShutdownGroup),
                .init(service: interrupt, successTerminationBehavior: .gracefullyShutdownGroup),
            ],
            gracefulShutdownSignals: [.sigterm],
            logger: Logger(label: "carillon", factory: { _ in SwiftLogNoOpLogHandler() }))
        do {
            try await ServiceGroup(configuration: configuration).run()
            try interrupt.report(data == nil ? "the demo ended; its data was removed" : "the demo ended")
        } catch let fault as ListenFault {
            throw CommandFault(ExitStatus.unreachable, fault.sentence)
        } catch let error as PushError {
            throw CommandFault(error)
        }
    }
}
