import CarillonClient
import NIOHTTP1

/// The story of a back end that is looked after: it is stopped, and the channel is told why; it comes back, says that it
/// lost the token, and gets it again.
struct DemoWatch {
    let channel: PushChannel
    let backEnd = DemoBackEnd()
    let say: @Sendable (String) -> Void

    func notify() async throws {
        try await backEnd.start()
        let deliver: @Sendable (String) async throws -> Void = { [backEnd] endpoint in
            let client = APIClient(server: "", key: nil)
            _ = try client.accepted(
                try await client.send(.POST, "\(backEnd.address)/token", body: Array(endpoint.utf8)),
                as: { _ in true })
        }
        if channel.isTokenDelivered, let endpoint = channel.endpoint { try await deliver(endpoint) }
        channel.setTokenDelivery { try await deliver($0.endpoint) }
        for await _ in backEnd.answeredPings { break }
        say(
            "The app sent the endpoint to its backend. The backend registered a watch: the server pings it every second, and it answers."
        )
        try await backEnd.stop()
        say("The backend stops.")
        try await follow()
        channel.setTokenDelivery(nil)
        if let endpoint = channel.endpoint {
            _ = try await APIClient(server: "", key: nil).send(.DELETE, "\(endpoint)/watch")
        }
        try await backEnd.stop()
    }

    private func follow() async throws {
        for try await event in channel.events {
            switch event {
            case .pingFailed(.tokenLost):
                say("  pingFailed 605: the backend has lost the token. The client library sends the token again.")
            case .pingFailed(let failure):
                say("  pingFailed \(failure.code): the channel receives the reason, and stays open.")
                try await backEnd.start()
                say("The backend starts again, without its data.")
            case .recovered:
                return say("  recovered: the backend has the token, and answers.")
            default:
                continue
            }
        }
    }
}
