import CarillonClient
import NIOHTTP1

/// The scenario of a watch: the backend is stopped, and the channel reports the reason. When it restarts, it reports the loss of
/// the token, and receives the token again.
struct DemoWatch {
    let channel: PushChannel
    let backend = DemoBackend()
    let say: @Sendable (String) -> Void

    func notify() async throws {
        try await backend.start()
        let deliver: @Sendable (String) async throws -> Void = { [backend] endpoint in
            let client = APIClient(server: "", key: nil)
            _ = try client.accepted(
                try await client.send(.POST, "\(backend.address)/token", body: Array(endpoint.utf8)),
                as: { _ in true })
        }
        if channel.isTokenDelivered, let endpoint = channel.endpoint { try await deliver(endpoint) }
        channel.setTokenDelivery { try await deliver($0.endpoint) }
        for await _ in backend.answeredPings { break }
        say(
            "The app sent the endpoint to its backend. The backend registered a watch: the server pings it every second, and it answers."
        )
        try await backend.stop()
        say("The backend stops.")
        try await follow()
        channel.setTokenDelivery(nil)
        if let endpoint = channel.endpoint {
            _ = try await APIClient(server: "", key: nil).send(.DELETE, "\(endpoint)/watch")
        }
        try await backend.stop()
    }

    private func follow() async throws {
        for try await event in channel.events {
            switch event {
            case .pingFailed(.tokenLost):
                say("  pingFailed 605: the backend has lost the token. The client library sends the token again.")
            case .pingFailed(let failure):
                say("  pingFailed \(failure.code): the channel receives the reason, and stays open.")
                try await backend.start()
                say("The backend starts again, without its data.")
            case .recovered:
                return say("  recovered: the backend has the token, and answers.")
            default:
                continue
            }
        }
    }
}
