import CarillonClient
import CarillonWire
import Foundation
import NIOHTTP1

/// The scenario of one push, from the backend to the app and back.
struct DemoPush {
    let channel: PushChannel
    let say: @Sendable (String) -> Void

    /// Opens the channel as an app, sends one message as a backend, and shows each step.
    func notify() async throws {
        if channel.state != .open { try await channel.connect() }
        var sending: Task<[Moment], any Error>?
        var moments: [Moment] = []
        if let endpoint = channel.endpoint { sending = send(to: endpoint) }
        for try await event in channel.events {
            if case .opened = event, let opened = channel.endpoint {
                say("The app registered its device, opened the channel \(channel.identifier), and received the endpoint")
                say("  \(opened)")
                sending = send(to: opened)
            }
            if case .message(let message) = event {
                moments.append(
                    Moment(.now, "offered       the app received it on its live connection: \"\(message.text ?? "")\""))
                try await message.acknowledge()
                moments.append(Moment(.now, "acknowledged  the app confirms that it handled the message"))
                break
            }
        }
        moments += try await sending?.value ?? []
        show(moments)
    }

    private struct Moment {
        var at: ContinuousClock.Instant
        var text: String
        init(_ at: ContinuousClock.Instant, _ text: String) {
            self.at = at
            self.text = text
        }
    }

    /// The task ends with the server's answer. The caller awaits its value.
    private func send(to endpoint: String) -> Task<[Moment], any Error> {
        Task {
            let client = APIClient(server: "", key: nil)
            let sent = ContinuousClock.now
            let answer = try client.accepted(
                try await client.send(
                    .POST, endpoint, headers: [("ttl", "60"), ("content-encoding", "identity")],
                    body: Array("Hello from the backend".utf8)),
                as: { $0.isReceipt })
            let outcome = answer.headers.first(name: HeaderNames.outcome) ?? ""
            return [
                Moment(sent, "sent          the backend posts a message to the endpoint"),
                Moment(.now, "accepted      the backend receives status \(answer.status); outcome so far: \(outcome)"),
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
}
