import CarillonAPNsSimulator
import CarillonClient
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import ServiceLifecycle

/// Runs the scenarios of the demo in this order: a push from a backend to an app, a watch, an audience update, a service request
/// between apps, a wake of an app without a connection, and an item subscription.
struct DemoScenario: Service {
    let server: AsyncStream<CarillonServer.Running>
    let simulator: APNsSimulator
    let directory: String
    let staysUp: Bool

    private static let app = "com.example.demo"
    private static let channel = "com.example.demo.hello"

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            for await running in server {
                try await notify(running)
                break
            }
        }
        if staysUp { try? await gracefulShutdown() }
    }

    private func notify(_ running: CarillonServer.Running) async throws {
        let address = running.addresses.base
        say("The server listens at \(address).")
        let app = try AppID.checked(Self.app)
        if try await running.domain.apps.serial(of: app) == nil { _ = try await running.domain.apps.create(app) }
        let key = try await running.domain.keys.createKey(role: .client, app: app, name: "demo").secret.text
        // A stored endpoint contains the server's address, which can differ between runs.
        let state = directory + "/app-" + String(address.map { $0.isLetter || $0.isNumber ? $0 : "-" })
        let endpoint = try await live(running, app, key, state)
        await simulator.stop()
        if staysUp { showCommands(address, key, endpoint, state) }
    }

    /// Runs the scenarios of one app and channel, and then the others. Returns the endpoint.
    private func live(
        _ running: CarillonServer.Running, _ app: AppID, _ key: String, _ state: String
    ) async throws -> String {
        let client = try PushClient(
            configuration: .init(
                server: running.addresses.base, app: Self.app, clientKey: key, storageDirectory: state))
        try client.start()
        let channel = try client.channel(Self.channel)
        try await DemoPush(channel: channel, say: say).notify()
        say("")
        try await DemoWatch(channel: channel, say: say).notify()
        say("")
        try await DemoUpdates(client: client, domain: running.domain, app: app, say: say).notify()
        say("")
        await client.stop()
        try await DemoServices(
            server: running.addresses.base, domain: running.domain, app: app, key: key,
            directory: directory + "/services-\(UUID().uuidString)", say: say
        ).notify()
        say("")
        try await sleep(running, app, key)
        return channel.endpoint ?? ""
    }

    /// Uses a new device each time, because a device that was woken is not woken again for a while.
    private func sleep(_ running: CarillonServer.Running, _ app: AppID, _ key: String) async throws {
        let state = directory + "/phone-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: state) }
        let client = try PushClient(
            configuration: .init(
                server: running.addresses.base, app: Self.app, clientKey: key, storageDirectory: state))
        try client.start()
        let channel = try client.channel(Self.channel)
        _ = try await channel.ensureOpen()
        let sleep = DemoSleep(
            client: client, channel: channel, simulator: simulator, domain: running.domain, app: app, say: say)
        try await sleep.notify()
        await client.stop()
        say("")
        try await DemoAlert(
            client: client, token: sleep.token, simulator: simulator, domain: running.domain, app: app, say: say
        ).notify()
    }

    private func showCommands(_ address: String, _ key: String, _ endpoint: String, _ state: String) {
        let program = Bundle.main.executablePath ?? "carillon"
        say("")
        say("The server runs until Ctrl-C. To do the same yourself, use two more terminals:")
        say("")
        say("  \(program) listen --server \(address) --app \(Self.app) --channel \(Self.channel) \\")
        say("      --state \(state) --key \(key)")
        say("")
        say("  \(program) send \(endpoint) --wait \"Hello\"")
    }

    @Sendable private func say(_ line: String) { Printer.printLine(line) }
}
