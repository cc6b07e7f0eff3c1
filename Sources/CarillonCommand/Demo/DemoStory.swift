import CarillonClient
import CarillonCore
import CarillonServer
import CarillonWire
import Foundation
import NIOHTTP1
import ServiceLifecycle

/// The main job in front of the user's eyes: an app opens a channel, a backend sends to it, the app acknowledges, and
/// the backend is told.
struct DemoStory: Service {
    let server: AsyncStream<CarillonServer.Running>
    let directory: String
    let staysUp: Bool

    private static let app = "com.example.demo"
    private static let channel = "com.example.demo.hello"

    func run() async throws {
        try await cancelWhenGracefulShutdown {
            for await running in server {
                try await tell(running)
                break
            }
        }
        if staysUp { try? await gracefulShutdown() }
    }

    private func tell(_ running: CarillonServer.Running) async throws {
        let address = running.addresses.base
        say("The server listens at \(address).")
        let app = try AppID.checked(Self.app)
        if try await running.core.apps.serial(of: app) == nil { _ = try await running.core.apps.create(app) }
        let key = try await running.core.keys.createKey(role: .client, app: app, name: "demo").secret.text
        let endpoint = try await push(address, key)
        if staysUp { showCommands(address, key, endpoint) }
    }

    /// Opens a channel as an app, sends one message as a backend, and shows its way. Answers the endpoint.
    private func push(_ address: String, _ key: String) async throws -> String {
        let client = try PushClient(
            configuration: .init(server: address, app: Self.app, clientKey: key, storageDirectory: directory + "/app"))
        try client.start()
        let channel = try client.channel(Self.channel)
        if channel.state != .open { try await channel.connect() }
        var sending: Task<[Moment], any Error>?
        var moments: [Moment] = []
        var endpoint = channel.endpoint
        if let endpoint { sending = send(to: endpoint) }
        for try await event in channel.events {
            if case .opened = event, let opened = channel.endpoint {
                say("The app registered its device, opened the channel \(Self.channel), and was given the endpoint")
                say("  \(opened)")
                endpoint = opened
                sending = send(to: opened)
            }
            if case .message(let message) = event {
                moments.append(
                    Moment(.now, "offered       the app has it on its live connection: \"\(message.text ?? "")\""))
                try await message.acknowledge()
                moments.append(Moment(.now, "acknowledged  the app says that it has handled it"))
                break
            }
        }
        moments += try await sending?.value ?? []
        show(moments)
        await client.stop()
        return endpoint ?? ""
    }

    private struct Moment {
        var at: ContinuousClock.Instant
        var text: String
        init(_ at: ContinuousClock.Instant, _ text: String) {
            self.at = at
            self.text = text
        }
    }

    /// Ends with the server's answer; its value is awaited above.
    private func send(to endpoint: String) -> Task<[Moment], any Error> {
        Task {
            let client = APIClient(server: "", key: nil)
            let sent = ContinuousClock.now
            let answer = try client.accepted(
                try await client.send(
                    .POST, endpoint, headers: [("ttl", "60"), ("content-encoding", "identity")],
                    body: Array("Hello from the backend".utf8)))
            let outcome = answer.headers.first(name: HeaderNames.outcome) ?? ""
            return [
                Moment(sent, "sent          the backend posts a message to the endpoint"),
                Moment(.now, "accepted      the backend is answered \(answer.status); outcome so far: \(outcome)"),
            ]
        }
    }

    private func show(_ moments: [Moment]) {
        let sorted = moments.sorted { $0.at < $1.at }
        guard let first = sorted.first else { return }
        say("One push:")
        for moment in sorted {
            let milliseconds = (moment.at - first.at) / .milliseconds(1)
            say("  \(String(format: "%7.1f", milliseconds)) ms  \(moment.text)")
        }
    }

    private func showCommands(_ address: String, _ key: String, _ endpoint: String) {
        let program = Bundle.main.executablePath ?? "carillon"
        say("")
        say("The server stays up until Ctrl-C. Do the same by hand, in two more terminals:")
        say("")
        say("  \(program) listen --server \(address) --app \(Self.app) --channel \(Self.channel) \\")
        say("      --state \(directory)/app --key \(key)")
        say("")
        say("  \(program) send \(endpoint) --wait \"Hello\"")
    }

    private func say(_ line: String) { FileHandle.standardOutput.write(Data((line + "\n").utf8)) }
}
